//! Observability of requests: log lines, counters, metrics.

pub(crate) mod metrics;
pub(crate) mod request_log;
pub(crate) mod traffic;
