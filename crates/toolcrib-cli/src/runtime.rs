//! The runtime that a command runs on.

/// Runs a command that calls tools, on a runtime of its own.
pub(crate) fn block_on<T>(command: impl Future<Output = T>) -> anyhow::Result<T> {
    crate::logging::serve();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    // A thread that reads a terminal, or a tool's that nobody waits for any more, cannot be
    // stopped; it ends with the process.
    runtime.shutdown_background();
    Ok(outcome)
}
