//! What an operator says of `bash`.

use std::path::PathBuf;
use std::time::Duration;

/// How `bash` runs commands. Lend it to the calls as a service; without it the tool answers that it
/// has no workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BashSettings {
    /// Where commands run, and below which they may write.
    pub workspace: PathBuf,
    /// How long a command may run. Default: 30 s. A call can ask for less.
    pub timeout: Duration,
    /// Whether an exit code other than 0 fails the call. Default `false`: the call succeeds, and its
    /// text and data say the code.
    pub nonzero_is_error: bool,
}

impl BashSettings {
    /// Commands run in this directory.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            timeout: Duration::from_secs(30),
            nonzero_is_error: false,
        }
    }

    /// Sets how long a command may run.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets whether an exit code other than 0 fails the call.
    #[must_use]
    pub fn with_nonzero_is_error(self, nonzero_is_error: bool) -> Self {
        Self { nonzero_is_error, ..self }
    }
}
