//! Settings of confined programs: whether their profiles have to be enforced, and their limits.

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
    /// What to do if the kernel cannot enforce a program's profile. `pure` and the levels `strict`
    /// and `standard` of `execute_python` are always required.
    pub require: SandboxRequire,
}

/// What to do if the kernel cannot enforce a program's profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxRequire {
    /// Do not start the program; the call fails and names what is missing.
    #[default]
    Required,
    /// Run the program with the restrictions that the kernel can enforce, unless its manifest
    /// requires all of them.
    BestEffort,
}

/// Limits of programs and of clients.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum private, writable memory of each process of a program under `workspace` or
    /// `workspace+net`.
    pub memory: SizeLimit,
    /// Limits of what is stored for one client.
    pub per_client: PerClient,
}

/// Limits of what is stored for one client at a time: for its tenant and user, or, for keys and sessions, for its
/// token. Expired entries are removed first. No client can use the share of another one. All clients together may have
/// ten times as many runs and keys, and four times as many bytes of outputs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerClient {
    /// Runs, and waiting calls. Finished runs are removed to make room; if all are waiting, further calls that would
    /// wait fail.
    #[schemars(range(min = 1))]
    pub runs: NonZeroUsize,
    /// `Idempotency-Key`s within `state.keep.answers`. Further requests with new keys are refused.
    #[schemars(range(min = 1))]
    pub keys: NonZeroUsize,
    /// Bytes of outputs that were too long for their answers; the oldest are removed to make room.
    pub spill_bytes: SizeLimit,
    /// MCP sessions over HTTP; the least recently used one is ended to make room.
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
    /// The bounds of runs and of waiting calls.
    pub(crate) fn run_bounds(&self) -> Bounds {
        Bounds::per_identity(self.runs.get()).named("limits.per_client.runs")
    }

    /// The limits of outputs, with these shares of one client and of all.
    pub(crate) fn spill_limits(&self, mut limits: SpillLimits) -> SpillLimits {
        let bytes = usize::try_from(self.spill_bytes.0).unwrap_or(usize::MAX);
        limits.max_owner_bytes = bytes;
        limits.max_bytes = bytes.saturating_mul(4);
        limits
    }
}

impl Config {
    /// The settings in `sandbox` and `limits` for all confined programs.
    pub fn confinement_defaults(&self) -> ConfinementDefaults {
        let require = match self.sandbox.require {
            SandboxRequire::Required => Require::Required,
            SandboxRequire::BestEffort => Require::BestEffort,
        };
        ConfinementDefaults::default().require(require).memory(self.limits.memory.0)
    }
}
