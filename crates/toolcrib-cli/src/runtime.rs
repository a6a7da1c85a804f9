//! The runtime of a command.

/// Runs a command that calls tools, on a runtime of its own.
pub(crate) fn block_on<T>(command: impl Future<Output = T>) -> anyhow::Result<T> {
    crate::logging::serve();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    // A thread that reads from a terminal, or runs an abandoned tool, cannot be stopped; it ends
    // with the process.
    runtime.shutdown_background();
    Ok(outcome)
}
