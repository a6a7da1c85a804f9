//! Where no program is started: what holds one on Linux (process handles, `/proc`, sealed files) is
//! not there, and one that nobody can end for certain is better not begun.
#![expect(
    clippy::unused_async,
    clippy::needless_pass_by_value,
    reason = "as where they are started"
)]

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use crate::{Captured, Command, Ended, Enforced, Finished, SpawnError};

fn refused(command: &Command) -> SpawnError {
    SpawnError::Unsupported { program: command.program.to_string_lossy().into_owned() }
}

/// Fails: [`SpawnError::Unsupported`].
pub async fn run(
    command: Command,
    _stop: impl Future<Output = ()>,
) -> Result<Finished, SpawnError> {
    Err(refused(&command))
}

/// Fails: [`SpawnError::Unsupported`].
pub fn run_blocking(command: Command, _limit: Duration) -> Result<Finished, SpawnError> {
    Err(refused(&command))
}

/// Fails: [`SpawnError::Unsupported`].
pub async fn keep(command: &Command) -> Result<Kept, SpawnError> {
    Err(refused(command))
}

/// There is nothing to sweep: no program has had a scratch directory.
pub fn sweep_scratch() -> usize {
    0
}

/// There is nothing to wait for.
pub fn finish_kills(_timeout: Duration) -> bool {
    true
}

/// A program that has just been started. There is none.
#[derive(Debug)]
#[non_exhaustive]
pub struct Kept {
    /// The process.
    pub process: KeptProcess,
    /// Its standard input.
    pub input: KeptInput,
    /// Its standard output.
    pub output: KeptOutput,
}

/// A program that is running. There is none.
#[derive(Debug)]
pub struct KeptProcess(Infallible);

impl KeptProcess {
    /// Completes when the program itself has ended.
    pub async fn ended(&self) {
        match self.0 {}
    }

    /// What the kernel holds it to.
    pub fn enforced(&self) -> &Enforced {
        match self.0 {}
    }

    /// Whether the program itself has ended.
    pub fn has_ended(&self) -> bool {
        match self.0 {}
    }

    /// What has been kept of its standard error so far.
    pub fn stderr(&self) -> Captured {
        match self.0 {}
    }

    /// Ends the program and everything it started.
    pub async fn stop(self, _patience: Duration) -> Ended {
        match self.0 {}
    }
}

/// The way into a kept program's standard input.
pub type KeptInput = tokio::io::Sink;

/// The way out of a kept program's standard output.
pub type KeptOutput = tokio::io::Empty;

/// A file in memory that was written once and is sealed. There is none.
#[derive(Debug, Clone)]
pub struct SealedFile(Infallible);

impl SealedFile {
    /// Fails: nothing seals a file here.
    pub fn new(_bytes: &[u8]) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no files that are sealed"))
    }
}
