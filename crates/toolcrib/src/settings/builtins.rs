//! Settings of the built-in tools: by which names, in which folders, and what is refused there.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_builtins::shell::BashSettings;
use toolcrib_builtins::{NameProfile, PROTECTED_NAMES, Projects};
use toolcrib_core::Pattern;
use toolcrib_tool::units::TimeLimit;

use super::Config;

/// The built-in tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Builtins {
    /// By which names the file tools are offered.
    pub profile: NameProfile,
    /// Whether `tool_search`, `tool_describe` and `tool_call` are offered: for clients that cannot take
    /// thousands of tools, or do not ask again when the list changes. They reach what the client
    /// reaches, and nothing else.
    pub meta: bool,
    /// The built-in tools that are offered, by names or patterns (`file_*`). `null`: all of them.
    pub enabled: Option<Vec<Pattern>>,
    /// The shell.
    pub bash: Bash,
}

/// How `bash` runs commands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-renamed" = {"read": "`builtins.bash.read` is now `paths.bash_read`"}))]
#[serde(default, deny_unknown_fields)]
pub struct Bash {
    /// How long a command may run; a call can ask for less. `none` for no limit but that of every call.
    pub timeout: TimeLimit,
    /// Whether an exit code other than 0 fails the call. Without it the call succeeds, and says the code.
    pub nonzero_is_error: bool,
}

impl Default for Bash {
    fn default() -> Self {
        let BashSettings { timeout, nonzero_is_error, .. } = BashSettings::default();
        Self { timeout: TimeLimit(Some(timeout)), nonzero_is_error }
    }
}

/// A time limit as the tools have it, where `none` is longer than any.
pub(super) fn without_limit(limit: TimeLimit) -> Duration {
    limit.0.unwrap_or(Duration::MAX)
}

/// What the built-in file tools and `bash` may touch.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Paths {
    /// Places that no file tool reads, lists or changes, with all below them, beside `~/.ssh`,
    /// `~/.aws`, `~/.kube`, `~/.gnupg`, `~/.netrc` and `~/.config/gcloud`; relative to the config file,
    /// `~/` is the server's home folder. The config file, `state.dir`, `audit.file` and the files of
    /// `secrets` always belong to them.
    pub sensitive_extra: Vec<PathBuf>,
    /// Names that file tools may read and not change, in whatever folder they are; `/` parts folders.
    /// `registry.lock_file`, `manifests.dirs` and whatever a manifest runs always belong to them.
    pub protected: Vec<PathBuf>,
    /// Files and folders outside the workspace and the system's own folders that `bash` may read and
    /// execute, such as `~/.pyenv`; relative to the config file, `~/` is the server's home folder. Missing
    /// ones are skipped.
    pub bash_read: Vec<PathBuf>,
}

impl Default for Paths {
    fn default() -> Self {
        let protected = PROTECTED_NAMES.map(PathBuf::from).into();
        Self { sensitive_extra: Vec::new(), protected, bash_read: Vec::new() }
    }
}

impl Config {
    /// What the built-in tools are given: the folders of `projects`, or else `workspace.root`, and what
    /// is refused in them beside the [control plane](Self::own_places). Nothing is opened before a call
    /// needs it.
    pub fn builtin_tools(&self) -> toolcrib_builtins::Builtins {
        let projects = if self.projects.is_empty() {
            Projects::in_folder(&self.workspace.root)
        } else {
            Projects::named(&self.projects)
        };
        let absolute = |place: &PathBuf| std::path::absolute(place).ok();
        // The rest of what no tool touches is the control plane's.
        let sensitive = self.paths.sensitive_extra.iter().filter_map(absolute);
        let projects =
            projects.sensitive(sensitive).protected_names(self.paths.protected.iter().cloned());
        let bash = BashSettings::default()
            .with_timeout(without_limit(self.builtins.bash.timeout))
            .with_nonzero_is_error(self.builtins.bash.nonzero_is_error)
            .with_confinement(self.confinement_defaults());
        let bash =
            self.paths.bash_read.iter().filter_map(absolute).fold(bash, BashSettings::with_read);
        toolcrib_builtins::Builtins::new()
            .profile(self.builtins.profile)
            .projects(projects)
            .bash(bash)
            .python(self.code_execution.settings().with_confinement(self.confinement_defaults()))
    }
}
