//! Settings of names: who gets one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::OnDuplicate;

/// How names are resolved.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Registry {
    /// What happens when two sources declare one name.
    pub on_duplicate: OnDuplicate,
    /// The manifest and upstream tools that may take the place of one of the system's own
    /// (`attempt_completion`, `new_task`), as `unit:name`: `tools.d/own.yaml:new_task`.
    pub allow_override: Vec<String>,
}
