//! Limits of the agents that an agent starts.

use std::time::Duration;

/// Limits of the agents that an agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubAgentLimits {
    /// How many levels of agents there are below the first. Default 1: sub-agents start none.
    pub max_depth: u32,
    /// The rounds in which an agent of `multi_agent` may make calls. One more follows, in which it has to answer.
    /// Default 3.
    pub max_iterations: u32,
    /// How many sub-agents of one agent work at once. Default 3.
    pub max_concurrency: usize,
    /// How long a request to the model of an agent of `multi_agent` may take. Default 60 s.
    pub request_timeout: Duration,
}

impl Default for SubAgentLimits {
    fn default() -> Self {
        Self {
            max_depth: 1,
            max_iterations: 3,
            max_concurrency: 3,
            request_timeout: Duration::from_secs(60),
        }
    }
}
