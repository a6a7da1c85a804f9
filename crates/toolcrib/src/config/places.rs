//! Settings of places: where manifests are, where commands run, where things are kept.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::audit::AuditArguments;
use toolcrib_manifest::units::ByteSize;

/// Where manifests are.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Manifests {
    /// Directories whose `*.yaml`, `*.yml` and `*.toml` files are read, in this order; relative to
    /// the config file.
    pub dirs: Vec<PathBuf>,
    /// Manifests and single tools or MCP servers (`unit` or `unit:name`, the unit's path relative to
    /// the config file: `tools.d/services.yaml:restart`) that may use profile `trusted`, and grants
    /// that reach the home folder or a place of credentials. Without this, `toolcrib trust` or an
    /// enforced lock, such tools are unavailable.
    pub trusted: Vec<String>,
    /// Whether servers follow the files: what is saved is live a moment later. Without it they read
    /// them again when they get SIGHUP.
    pub watch: bool,
    /// Whether it is no mistake if a directory is not there: nobody has asked for it. Servers see it
    /// come.
    #[serde(skip)]
    #[schemars(skip)]
    pub may_be_missing: bool,
}

impl Default for Manifests {
    fn default() -> Self {
        Self {
            dirs: vec!["tools.d".into()],
            trusted: Vec::new(),
            watch: true,
            may_be_missing: false,
        }
    }
}

impl Manifests {
    /// The directories that are not there and that nobody asked for.
    pub fn absent(&self) -> Vec<&PathBuf> {
        self.dirs.iter().filter(|dir| self.may_be_missing && !dir.exists()).collect()
    }
}

/// Where commands run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workspace {
    /// The working directory of command tools that name none; relative to the config file.
    pub root: PathBuf,
}

impl Default for Workspace {
    fn default() -> Self {
        Self { root: ".".into() }
    }
}

/// Where the program keeps what outlives it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// A directory of its owner's alone (mode 0700), made if it is not there; relative to the config
    /// file. Long outputs, suspended calls, runs and answers under an `Idempotency-Key` are kept in it, and
    /// survive a restart. Without
    /// one, outputs are kept in memory and nothing else is.
    pub dir: Option<PathBuf>,
}

/// The audit log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// The file to which every call is appended as a line of JSON (mode 0600); relative to the config
    /// file. Without one there is no audit log.
    pub file: Option<PathBuf>,
    /// What is said of a call's arguments.
    pub arguments: AuditArguments,
    /// How long the file may become before it is moved aside, to the same name with `.1`, and a new one
    /// is begun. Default: never; another program may move it at any time.
    pub max_bytes: Option<ByteSize>,
    /// Files that were moved aside and are kept: `.1`, the newest, to this number.
    #[schemars(range(min = 1))]
    pub keep: u32,
}

impl Default for Audit {
    fn default() -> Self {
        Self { file: None, arguments: AuditArguments::default(), max_bytes: None, keep: 5 }
    }
}
