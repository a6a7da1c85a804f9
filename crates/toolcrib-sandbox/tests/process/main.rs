//! What `run` promises, seen from the program that is run.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod arguments;
mod confine;
mod environment;
mod kill;
mod output;
mod sealed;
mod spawning;
mod start;

use std::future::{Future, pending};
use std::time::Duration;

use toolcrib_sandbox::{Command, Finished, SpawnError, run};

/// Runs to the end, bounded.
async fn finish(command: Command) -> Finished {
    try_finish(command).await.unwrap()
}

async fn try_finish(command: Command) -> Result<Finished, SpawnError> {
    bounded(run(command, pending())).await
}

async fn bounded<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("the test's own time limit")
}

/// A command that runs this shell text.
fn sh(text: &str) -> Command {
    Command::new("/bin/sh").args(["-c", text])
}
