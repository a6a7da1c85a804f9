//! One call from its request to its answer: turns, the executor, the pipeline, batches, nested calls.

pub(crate) mod batch;
pub(crate) mod cancellation;
pub(crate) mod executor;
pub(crate) mod host;
pub(crate) mod middleware;
pub(crate) mod nested;
pub(crate) mod panics;
pub(crate) mod pipeline;
pub(crate) mod retry;
pub(crate) mod tool_run;
#[cfg(feature = "tower")]
pub(crate) mod tower_service;
pub(crate) mod turn;
