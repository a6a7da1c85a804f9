//! Settings of name resolution.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::OnDuplicate;
use toolcrib_manifest::lock::{LOCK_FILE, LockMode};

/// How names are resolved.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// How to resolve a name that two sources declare.
    pub on_duplicate: OnDuplicate,
    /// The manifest and upstream tools that may replace a system tool (`attempt_completion`,
    /// `new_task`), as `unit:name`: `tools.d/own.yaml:new_task`.
    pub allow_override: Vec<String>,
    /// What to do about tools that the lock has not accepted, or has accepted with another content.
    pub lock: LockMode,
    /// The lock file; relative to the config file. `toolcrib lock` writes it.
    pub lock_file: PathBuf,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            on_duplicate: OnDuplicate::default(),
            allow_override: Vec::new(),
            lock: LockMode::default(),
            lock_file: LOCK_FILE.into(),
        }
    }
}
