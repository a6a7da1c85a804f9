//! Settings of calls: time, concurrency, repetition, approval, and output limits.

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::ExecutorConfig;
use toolcrib_tool::units::{OrNone, SizeLimit, TimeLimit, or_none};

/// Time limits and concurrency of calls.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Executor {
    /// Time limit of a tool that declares none; `none` for no limit.
    pub tool_timeout: TimeLimit,
    /// Time limit of every call, whatever the tool declares; `none` for no limit.
    pub max_timeout: TimeLimit,
    /// Maximum number of calls of one batch that run at the same time; `none` for all of them.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub max_concurrency: Option<NonZeroUsize>,
    /// Maximum number of calls that wait for a slot of one tool; 0 for none.
    pub max_queue: usize,
    /// How long a call waits for a slot; `none` for no limit. With `max_queue: 0` no call waits.
    pub queue_timeout: TimeLimit,
}

impl Default for Executor {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            tool_timeout: TimeLimit(core.tool_timeout),
            max_timeout: TimeLimit(core.max_timeout),
            max_concurrency: NonZeroUsize::new(core.max_concurrency),
            max_queue: core.max_queue,
            queue_timeout: TimeLimit(Some(core.queue_timeout)),
        }
    }
}

/// Which tools are paused after repeated timeouts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// The number of consecutive timeouts of a tool, for one identity, after which it is paused;
    /// `none` for never.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroU32>")]
    pub consecutive_timeouts: Option<NonZeroU32>,
    /// How long a tool is paused before one call is tried.
    pub cooldown: TimeLimit,
}

impl Default for Breaker {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            consecutive_timeouts: NonZeroU32::new(core.breaker_timeouts),
            cooldown: TimeLimit(Some(core.breaker_cooldown)),
        }
    }
}

/// The cache of answers. Only tools that declare it are cached.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Whether answers are kept at all, in the cache and for a session.
    pub enabled: bool,
    /// How long an answer is valid, for tools that do not declare it.
    pub ttl: TimeLimit,
    /// Maximum number of answers. `enabled: false` keeps none.
    #[schemars(range(min = 1))]
    pub max_entries: usize,
    /// Maximum size of all answers together, in bytes.
    pub max_bytes: SizeLimit,
}

impl Default for Cache {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            enabled: true,
            ttl: TimeLimit(Some(core.cache_ttl)),
            max_entries: core.cache_entries,
            max_bytes: SizeLimit(core.cache_bytes as u64),
        }
    }
}

/// Limits of the output that reaches the model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// Maximum number of characters of text that reach the model, for tools that declare no budget.
    #[schemars(range(min = 1))]
    pub max_chars: usize,
    /// Maximum number of characters of text that reach the model from all calls of one batch
    /// together, shared fairly. With `none`, together they get as many as the largest budget of one of
    /// them.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub batch_chars: Option<NonZeroUsize>,
    /// Maximum size of the structured data of a call, in bytes. A call with more fails, and the data can be read with
    /// `read_output`: data is never truncated.
    pub max_data_bytes: SizeLimit,
}

impl Default for Output {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            max_chars: core.output_chars,
            batch_chars: core.batch_output_chars.and_then(NonZeroUsize::new),
            max_data_bytes: SizeLimit(core.data_bytes as u64),
        }
    }
}

/// Calls that need approval.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approval {
    /// How long a call waits for approval, and a tool for the answer to its question; `none` for no
    /// limit. Then the call is denied.
    #[schemars(extend("x-zero" = "write `none` for no limit; to deny such calls at once, write `policy: {on_ask: deny}`"))]
    pub timeout: TimeLimit,
}

impl Default for Approval {
    fn default() -> Self {
        Self { timeout: TimeLimit(ExecutorConfig::default().approval_timeout) }
    }
}
