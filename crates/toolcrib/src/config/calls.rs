//! Settings of calls: time, number, repetition, approval, and how much of an answer is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolcrib_core::ExecutorConfig;
use toolcrib_manifest::units::{SizeLimit, TimeLimit};

/// How calls are run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Executor {
    /// Time limit of a tool that declares none; `none` for no such limit.
    pub tool_timeout: TimeLimit,
    /// Time limit of every call, whatever a tool declares; `none` for no such limit.
    pub max_timeout: TimeLimit,
    /// Calls of one batch that run at once; 0 for all of them.
    pub max_concurrency: usize,
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
            max_concurrency: core.max_concurrency,
            max_queue: core.max_queue,
            queue_timeout: TimeLimit(Some(core.queue_timeout)),
        }
    }
}

/// Which tools are paused after repeated timeouts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Consecutive timeouts of a tool, for one identity, that pause it; 0 for never.
    pub consecutive_timeouts: u32,
    /// How long a paused tool rests before one call is tried.
    pub cooldown: TimeLimit,
}

impl Default for Breaker {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            consecutive_timeouts: core.breaker_timeouts,
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
    /// `null` for as many as the largest of the calls may have alone.
    #[schemars(range(min = 1))]
    pub batch_chars: Option<usize>,
    /// Bytes of structured data that a call may return. A call with more fails, and the data can be read
    /// with `read_output`: data is never cut.
    pub max_data_bytes: SizeLimit,
}

impl Default for Output {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            max_chars: core.output_chars,
            batch_chars: core.batch_output_chars,
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
