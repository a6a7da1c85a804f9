//! Clients that stay: connections, HTTP sessions, and what they were sent.

pub(crate) mod connection;
pub(crate) mod event_log;
pub(crate) mod http;
pub(crate) mod registry;
pub(crate) mod streams;
