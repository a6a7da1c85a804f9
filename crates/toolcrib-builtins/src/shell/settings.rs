//! The operator's settings for `bash`.

use std::path::PathBuf;
use std::time::Duration;

use toolcrib_sandbox::ConfinementDefaults;

/// How `bash` runs commands. Lend it to the calls as a service; without it, the defaults apply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BashSettings {
    /// The time limit of a command. Default: 30 s. A call can ask for less.
    pub timeout: Duration,
    /// Whether a nonzero exit code fails the call. Default `false`: the call succeeds, and its text and data contain
    /// the code.
    pub nonzero_is_error: bool,
    /// Files and folders that commands may read and execute in addition to the workspace and the system's own, for
    /// example software that a version manager installed in a home folder. Default: none.
    pub read: Vec<PathBuf>,
    /// The operator's settings for all confined programs. Default: the profile must be enforced, and a command has 2
    /// GiB of memory.
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
    /// Sets the time limit of a command.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets whether a nonzero exit code fails the call.
    #[must_use]
    pub fn with_nonzero_is_error(self, nonzero_is_error: bool) -> Self {
        Self { nonzero_is_error, ..self }
    }

    /// Sets the operator's settings for all confined programs.
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
