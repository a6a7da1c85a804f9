//! What operators learn of requests: a log line, counts, metrics.

pub(crate) mod metrics;
pub(crate) mod request_log;
pub(crate) mod traffic;
