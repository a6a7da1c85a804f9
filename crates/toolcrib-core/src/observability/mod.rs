//! Observability for operators: statistics, spans, the audit log.

pub mod audit;
pub(crate) mod models;
pub(crate) mod remote_trace;
pub(crate) mod spans;
pub(crate) mod statistics;
