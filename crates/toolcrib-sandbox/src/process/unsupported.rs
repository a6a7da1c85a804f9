//! Stand-ins for systems on which programs are not started. They lack what contains a program on
//! Linux (process handles, `/proc`, sealed files), so its processes could not be ended reliably.
#![expect(
    clippy::unused_async,
    clippy::needless_pass_by_value,
    reason = "same signatures as on Linux"
)]

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::time::Duration;

use crate::{Captured, ChildExit, Command, Enforced, Finished, SpawnError};

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
pub async fn spawn(command: &Command) -> Result<Child, SpawnError> {
    Err(refused(command))
}

/// Fails: [`SpawnError::Unsupported`].
pub fn scratch_folder() -> Result<std::path::PathBuf, SpawnError> {
    Err(SpawnError::Unsupported { program: "any program".to_owned() })
}

/// Does nothing: no program has a scratch directory.
pub fn sweep_scratch() -> usize {
    0
}

/// Does nothing: there is nothing to wait for.
pub fn finish_kills(_timeout: Duration) -> bool {
    true
}

/// A program that has just been started. None exists on this system.
#[derive(Debug)]
#[non_exhaustive]
pub struct Child {
    /// The process.
    pub process: ChildProcess,
    /// Its standard input.
    pub input: ChildStdin,
    /// Its standard output.
    pub output: ChildStdout,
}

/// A child process. None exists on this system.
#[derive(Debug)]
pub struct ChildProcess(Infallible);

impl ChildProcess {
    /// Completes when the program itself has ended.
    pub async fn ended(&self) {
        match self.0 {}
    }

    /// The restrictions that the kernel enforces on it.
    pub fn enforced(&self) -> &Enforced {
        match self.0 {}
    }

    /// Whether the program itself has ended.
    pub fn has_ended(&self) -> bool {
        match self.0 {}
    }

    /// The captured part of its standard error so far.
    pub fn stderr(&self) -> Captured {
        match self.0 {}
    }

    /// Ends the program and everything it started.
    pub async fn stop(self, _patience: Duration) -> ChildExit {
        match self.0 {}
    }
}

/// The standard input of a child program.
pub type ChildStdin = tokio::io::Sink;

/// The standard output of a child program.
pub type ChildStdout = tokio::io::Empty;

/// A sealed file in memory. None exists on this system.
#[derive(Debug, Clone)]
pub struct SealedFile(Infallible);

impl SealedFile {
    /// Fails: this system cannot seal files.
    pub fn new(_bytes: &[u8]) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no sealed files"))
    }
}

pub(crate) mod scratch_parents {
    //! No program has a scratch directory.

    /// Empty.
    pub(crate) fn paths() -> &'static [std::path::PathBuf] {
        &[]
    }
}
