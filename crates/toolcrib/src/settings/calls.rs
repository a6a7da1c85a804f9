//! Settings of calls: time, number, repetition, approval, and how much of an answer is shown.

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::ExecutorConfig;
use toolcrib_tool::units::{OrNone, SizeLimit, TimeLimit, or_none};

/// How calls are run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Executor {
    /// Time limit of a tool that declares none; `none` for no such limit.
    pub tool_timeout: TimeLimit,
    /// Time limit of every call, whatever a tool declares; `none` for no such limit.
    pub max_timeout: TimeLimit,
    /// How many calls of one batch run at the same time; `none` for all of them.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub max_concurrency: Option<NonZeroUsize>,
    /// Calls that may wait for a slot of one tool; 0 for none.
    pub max_queue: usize,
    /// How long a call waits for a slot at most; `none` for as long as it takes. With `max_queue: 0` no
    /// call waits.
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
    /// How many consecutive timeouts of a tool, for one identity, pause it; `none` for never.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroU32>")]
    pub consecutive_timeouts: Option<NonZeroU32>,
    /// How long a paused tool rests before one call is tried.
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

/// Which answers are used again. Only tools that say so are cached.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Whether answers are kept at all, in the cache and for a session.
    pub enabled: bool,
    /// How long an answer is used, for tools that do not say.
    pub ttl: TimeLimit,
    /// Answers that are kept. `enabled: false` keeps none.
    #[schemars(range(min = 1))]
    pub max_entries: usize,
    /// Bytes of answers that are kept.
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

/// What reaches the model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// Characters of text that reach the model, for tools that declare no budget.
    #[schemars(range(min = 1))]
    pub max_chars: usize,
    /// Characters of text that reach the model from all calls of one batch together, shared fairly;
    /// `none` for as many as the largest of the calls may have alone.
    #[serde(with = "or_none")]
    #[schemars(with = "OrNone<NonZeroUsize>")]
    pub batch_chars: Option<NonZeroUsize>,
    /// Bytes of structured data that a call may return. A call with more fails, and the data can be read
    /// with `read_output`: data is never cut.
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

/// Calls that are asked about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approval {
    /// How long a call waits for approval, and a tool for the answer to its question; `none` for as
    /// long as it takes. Then it is denied.
    pub timeout: TimeLimit,
}

impl Default for Approval {
    fn default() -> Self {
        Self { timeout: TimeLimit(ExecutorConfig::default().approval_timeout) }
    }
}
