//! Settings of confined programs: whether their profiles have to be enforced, and what they may use up.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::bounds::Bounds;
use toolcrib_core::spill::SpillLimits;
use toolcrib_sandbox::{ConfinementDefaults, Require};
use toolcrib_tool::units::SizeLimit;

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

/// What a program may use up, and how much is kept of one client.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The memory of each process of a program under `workspace` or `workspace+net`, which it has to
    /// itself and may write to.
    pub memory: SizeLimit,
    /// How much is kept of one client at once.
    pub per_client: PerClient,
}

/// How much is kept of one client at once: of its tenant and user, or, of keys and sessions, of its token.
/// What has expired makes room first. No client fills the share of another; all clients together may have ten
/// times as many runs and keys, and four times as many bytes of outputs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerClient {
    /// Runs, and calls that wait. Runs that are over make room; where all wait, further calls that would wait
    /// fail.
    #[schemars(range(min = 1))]
    pub runs: NonZeroUsize,
    /// `Idempotency-Key`s of the last day. Further requests with new keys are refused.
    #[schemars(range(min = 1))]
    pub keys: NonZeroUsize,
    /// Bytes of outputs that were too long for their answers; the oldest make room.
    pub spill_bytes: SizeLimit,
    /// MCP sessions over HTTP; the least recently used ends.
    #[schemars(range(min = 1))]
    pub sessions: NonZeroUsize,
}

impl Default for Limits {
    fn default() -> Self {
        let memory = SizeLimit(ConfinementDefaults::default().memory.unwrap_or(2 << 30));
        Self { memory, per_client: PerClient::default() }
    }
}

impl Default for PerClient {
    fn default() -> Self {
        Self {
            runs: const { NonZeroUsize::new(1_000).unwrap() },
            keys: const { NonZeroUsize::new(10_000).unwrap() },
            spill_bytes: SizeLimit(64 << 20),
            sessions: const { NonZeroUsize::new(256).unwrap() },
        }
    }
}

impl PerClient {
    /// The bounds of runs, and of calls that wait.
    pub(crate) fn run_bounds(&self) -> Bounds {
        Bounds::per_identity(self.runs.get()).named("limits.per_client.runs")
    }

    /// The same limits of outputs, with these shares of one client and of all.
    pub(crate) fn spill_limits(&self, mut limits: SpillLimits) -> SpillLimits {
        let bytes = usize::try_from(self.spill_bytes.0).unwrap_or(usize::MAX);
        limits.max_owner_bytes = bytes;
        limits.max_bytes = bytes.saturating_mul(4);
        limits
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
