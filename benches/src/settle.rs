//! Quiet before a measurement.

use std::time::Duration;

use toolcrib_core::{Executor, ExecutorConfig, Registry};

use crate::call::runtime;

/// Waits until the tools of registries that were dropped are closed: a hundred thousand of them keep
/// threads busy for seconds, and whatever is measured meanwhile takes twice its time.
pub fn settle() {
    let registry = Registry::scratch().build().expect("a registry without tools");
    let executor = Executor::new(registry, ExecutorConfig::default());
    runtime().block_on(executor.shutdown(Duration::ZERO));
}
