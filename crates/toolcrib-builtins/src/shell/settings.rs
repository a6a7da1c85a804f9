//! What an operator says of `bash`.

use std::path::PathBuf;
use std::time::Duration;

use toolcrib_sandbox::ConfinementDefaults;

/// How `bash` runs commands. Lend it to the calls as a service; without it, the defaults hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BashSettings {
    /// How long a command may run. Default: 30 s. A call can ask for less.
    pub timeout: Duration,
    /// Whether an exit code other than 0 fails the call. Default `false`: the call succeeds, and its
    /// text and data say the code.
    pub nonzero_is_error: bool,
    /// Files and folders that commands may read and execute beside the workspace and the system's
    /// own: what a version manager has installed in a home folder, for example. Default: none.
    pub read: Vec<PathBuf>,
    /// What the operator decides for all confined programs. Default: the profile has to be enforced,
    /// and a command has 2 GiB of memory.
    pub confinement: ConfinementDefaults,
}

impl Default for BashSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            nonzero_is_error: false,
            read: Vec::new(),
            confinement: ConfinementDefaults::default(),
        }
    }
}

impl BashSettings {
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

    /// Sets what the operator decides for all confined programs.
    #[must_use]
    pub fn with_confinement(self, confinement: ConfinementDefaults) -> Self {
        Self { confinement, ..self }
    }

    /// Adds a file or a folder that commands may read and execute.
    #[must_use]
    pub fn with_read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }
}
