//! Transports, from bytes to messages and back: stdio, HTTP, revisions, exact numbers.

pub(crate) mod exact_numbers;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod malformed;
pub(crate) mod open_requests;
pub(crate) mod revision;
pub(crate) mod stdio;
