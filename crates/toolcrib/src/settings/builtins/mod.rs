//! Settings of the built-in tools: their names, their folders, and the places that they refuse.

mod code_execution;
#[cfg(feature = "databases")]
mod data_analysis;
#[cfg(feature = "databases")]
mod databases;
#[cfg(feature = "crawler")]
mod web;

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_builtins::shell::BashSettings;
use toolcrib_builtins::{NameProfile, PROTECTED_NAMES, Projects};
use toolcrib_core::Pattern;
use toolcrib_tool::units::TimeLimit;

use super::Config;

pub use code_execution::{CodeExecution, ExtraModules, Timeouts};
#[cfg(feature = "databases")]
pub use data_analysis::DataAnalysis;
#[cfg(feature = "databases")]
pub(crate) use databases::lend_secrets;
#[cfg(feature = "databases")]
pub use databases::{DatabaseEntry, DatabaseUrl, DbQuery};
#[cfg(feature = "crawler")]
pub use web::{Images, Network, SearchEntry, Web};

/// The built-in tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Builtins {
    /// The names under which the file tools are offered.
    pub profile: NameProfile,
    /// Whether `tool_search`, `tool_describe` and `tool_call` are offered: for clients that cannot handle thousands of
    /// tools, or do not reload the list when it changes. They reach exactly the tools that the client itself can reach.
    pub meta: bool,
    /// The built-in tools that are offered, by names or patterns (`file_*`). `null`: all of them.
    pub enabled: Option<Vec<Pattern>>,
    /// The shell.
    pub bash: Bash,
}

/// Settings of the commands of `bash`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-renamed" = {"read": "`builtins.bash.read` is now `paths.bash_read`"}))]
#[serde(default, deny_unknown_fields)]
pub struct Bash {
    /// The time limit of a command; a call can ask for less. `none` for no limit except that of every call.
    pub timeout: TimeLimit,
    /// Whether an exit code other than 0 fails the call. Otherwise the call succeeds and reports the code.
    pub nonzero_is_error: bool,
}

impl Default for Bash {
    fn default() -> Self {
        let BashSettings { timeout, nonzero_is_error, .. } = BashSettings::default();
        Self { timeout: TimeLimit(Some(timeout)), nonzero_is_error }
    }
}

/// A time limit in the form of the tools, in which `none` is longer than any limit.
pub(super) fn without_limit(limit: TimeLimit) -> Duration {
    limit.0.unwrap_or(Duration::MAX)
}

/// The files and folders that the built-in file tools and `bash` may use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Paths {
    /// Places that no file tool reads, lists or changes, with everything below them, in addition to `~/.ssh`, `~/.aws`,
    /// `~/.kube`, `~/.gnupg`, `~/.netrc` and `~/.config/gcloud`; relative to the config file, `~/` is the server's home
    /// folder. The config file, `state.dir`, `audit.file` and the files of `secrets` are always included.
    pub sensitive_extra: Vec<PathBuf>,
    /// Names that file tools may read but not change, in any folder; `/` separates folders. `registry.lock_file`,
    /// `manifests.dirs` and everything that a manifest runs are always included.
    pub protected: Vec<PathBuf>,
    /// Files and folders outside the workspace and the system folders that `bash` may read and execute, such as
    /// `~/.pyenv`; relative to the config file, `~/` is the server's home folder. Missing ones are skipped.
    pub bash_read: Vec<PathBuf>,
}

impl Default for Paths {
    fn default() -> Self {
        let protected = PROTECTED_NAMES.map(PathBuf::from).into();
        Self { sensitive_extra: Vec::new(), protected, bash_read: Vec::new() }
    }
}

impl Config {
    /// The settings of the built-in tools: the folders of `projects`, or else `workspace.root`, and the places to
    /// refuse in them besides the [control plane](Self::own_places). Nothing is opened before a call needs it.
    pub fn builtin_tools(&self) -> toolcrib_builtins::Builtins {
        let projects = if self.projects.is_empty() {
            Projects::in_folder(&self.workspace.root)
        } else {
            Projects::named(&self.projects)
        };
        let absolute = |place: &PathBuf| std::path::absolute(place).ok();
        // The other places that no tool accesses belong to the control plane.
        let sensitive = self.paths.sensitive_extra.iter().filter_map(absolute);
        let projects =
            projects.sensitive(sensitive).protected_names(self.paths.protected.iter().cloned());
        let bash = BashSettings::default()
            .with_timeout(without_limit(self.builtins.bash.timeout))
            .with_nonzero_is_error(self.builtins.bash.nonzero_is_error)
            .with_confinement(self.confinement_defaults());
        let bash =
            self.paths.bash_read.iter().filter_map(absolute).fold(bash, BashSettings::with_read);
        let builtins = toolcrib_builtins::Builtins::new()
            .profile(self.builtins.profile)
            .projects(projects)
            .bash(bash)
            .python(self.code_execution.settings().with_confinement(self.confinement_defaults()));
        #[cfg(feature = "databases")]
        let builtins = self.with_databases(builtins);
        builtins
    }
}
