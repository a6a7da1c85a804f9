//! What a check knows beside the file: the secrets and limits of a config, and what is on the disk.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

/// What [`lint_with`](crate::lint_with) knows beside the file it checks. Nothing by default: then only
/// what the file says is checked.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub(super) secrets: Option<BTreeSet<String>>,
    pub(super) max_timeout: Option<Duration>,
    pub(super) files: bool,
    pub(super) path: Option<OsString>,
}

impl Known {
    /// The names of the secrets that the config has. A reference to any other secret is a warning.
    #[must_use]
    pub fn secrets<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.secrets = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The longest time that the executor gives a call. A longer `timeout` is a warning.
    #[must_use]
    pub fn max_timeout(mut self, longest: Duration) -> Self {
        self.max_timeout = Some(longest);
        self
    }

    /// Whether to look for scripts and the files of workers beside the manifest.
    #[must_use]
    pub fn files(mut self, look: bool) -> Self {
        self.files = look;
        self
    }

    /// The value of `PATH` on which programs are looked for. A program that is not there is a hint,
    /// because the server may run on another machine.
    #[must_use]
    pub fn programs(mut self, path: impl Into<OsString>) -> Self {
        self.path = Some(path.into());
        self
    }
}
