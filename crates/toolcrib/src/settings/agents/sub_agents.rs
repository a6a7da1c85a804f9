//! Settings of the agents that agents start (`sub_agent`).

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_agent::sub_agents::SubAgentLimits;
use toolcrib_tool::units::Timeout;

/// Limits of the agents that agents start.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubAgent {
    /// How many levels of agents there are below the first; with 1, agents that an agent has started start none.
    pub max_depth: NonZeroU32,
    /// The answers with calls that an agent of `multi_agent` may give; it has to answer without calls then.
    pub max_iterations: NonZeroU32,
    /// How many agents that one agent has started work at once.
    pub max_concurrency: NonZeroUsize,
    /// How long an answer of the model of an agent of `multi_agent` may take.
    pub request_timeout: Timeout,
}

impl Default for SubAgent {
    fn default() -> Self {
        let own = SubAgentLimits::default();
        Self {
            max_depth: NonZeroU32::new(own.max_depth).unwrap_or(NonZeroU32::MIN),
            max_iterations: NonZeroU32::new(own.max_iterations).unwrap_or(NonZeroU32::MIN),
            max_concurrency: NonZeroUsize::new(own.max_concurrency).unwrap_or(NonZeroUsize::MIN),
            request_timeout: Timeout(own.request_timeout),
        }
    }
}

impl SubAgent {
    /// The limits of an agent that may start others.
    pub(crate) fn limits(&self) -> SubAgentLimits {
        let mut limits = SubAgentLimits::default();
        limits.max_depth = self.max_depth.get();
        limits.max_iterations = self.max_iterations.get();
        limits.max_concurrency = self.max_concurrency.get();
        limits.request_timeout = self.request_timeout.0;
        limits
    }
}
