//! Settings of confined programs: whether their profiles have to be enforced, and what they may use up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_manifest::units::ByteSize;
use toolcrib_sandbox::{ConfinementDefaults, Require};

use super::Config;

/// How programs are confined.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// What happens where the kernel cannot enforce a program's profile. `pure` and the levels
    /// `strict` and `standard` of `execute_python` are always required.
    pub require: SandboxRequire,
}

/// What happens where the kernel cannot enforce a program's profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxRequire {
    /// The program is not started, and the call fails with what is missing.
    #[default]
    Required,
    /// The program runs under what the kernel can enforce, unless its manifest requires all of it.
    BestEffort,
}

/// What a program may use up, if its manifest does not say.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The memory of each process of a program under `workspace` or `workspace+net`, which it has to
    /// itself and may write to.
    pub memory: ByteSize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: ByteSize(ConfinementDefaults::default().memory.unwrap_or(2 << 30)) }
    }
}

impl Config {
    /// What `sandbox` and `limits` say of all confined programs.
    pub fn confinement_defaults(&self) -> ConfinementDefaults {
        let require = match self.sandbox.require {
            SandboxRequire::Required => Require::Required,
            SandboxRequire::BestEffort => Require::BestEffort,
        };
        ConfinementDefaults::default().require(require).memory(self.limits.memory.0)
    }
}
