//! Connections and HTTP sessions, and the events sent in them.

pub(crate) mod answers;
pub(crate) mod connection;
pub(crate) mod event_log;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod streams;
