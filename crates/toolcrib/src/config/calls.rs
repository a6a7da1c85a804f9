//! Settings of calls: time, number, repetition, approval, and how much of an answer is shown.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use toolcrib_core::ExecutorConfig;
use toolcrib_manifest::units::{ByteSize, HumanDuration};

/// How calls are run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Executor {
    /// Time limit of a tool that declares none; `none` for no such limit.
    #[serde(deserialize_with = "time_limit")]
    pub tool_timeout: HumanDuration,
    /// Time limit of every call, whatever a tool declares; `none` for no such limit.
    #[serde(deserialize_with = "time_limit")]
    pub max_timeout: HumanDuration,
    /// Calls of one batch that run at once; 0 for all of them.
    pub max_concurrency: usize,
    /// Calls that may wait for a slot of one tool; 0 for none.
    pub max_queue: usize,
    /// How long a call waits for a slot at most.
    pub queue_timeout: HumanDuration,
}

/// A limit under which a call can run at all.
fn time_limit<'de, D: Deserializer<'de>>(from: D) -> Result<HumanDuration, D::Error> {
    let limit = HumanDuration::deserialize(from)?;
    if limit.0.is_some_and(|limit| limit.is_zero()) {
        let message = "a time limit of zero would end every call: write `none` for no limit";
        return Err(serde::de::Error::custom(message));
    }
    Ok(limit)
}

impl Default for Executor {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            tool_timeout: HumanDuration(core.tool_timeout),
            max_timeout: HumanDuration(core.max_timeout),
            max_concurrency: core.max_concurrency,
            max_queue: core.max_queue,
            queue_timeout: HumanDuration(Some(core.queue_timeout)),
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
    pub cooldown: HumanDuration,
}

impl Default for Breaker {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            consecutive_timeouts: core.breaker_timeouts,
            cooldown: HumanDuration(Some(core.breaker_cooldown)),
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
    pub ttl: HumanDuration,
    /// Answers that are kept.
    pub max_entries: usize,
    /// Bytes of answers that are kept.
    pub max_bytes: ByteSize,
}

impl Default for Cache {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            enabled: true,
            ttl: HumanDuration(Some(core.cache_ttl)),
            max_entries: core.cache_entries,
            max_bytes: ByteSize(core.cache_bytes as u64),
        }
    }
}

/// What reaches the model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// Characters of text that reach the model, for tools that declare no budget.
    pub max_chars: usize,
    /// Characters of text that reach the model from all calls of one batch together, shared fairly;
    /// `null` for as many as the largest of the calls may have alone.
    pub batch_chars: Option<usize>,
    /// Bytes of structured data that a call may return. A call with more fails, and the data can be read
    /// with `read_output`: data is never cut.
    pub max_data_bytes: ByteSize,
}

impl Default for Output {
    fn default() -> Self {
        let core = ExecutorConfig::default();
        Self {
            max_chars: core.output_chars,
            batch_chars: core.batch_output_chars,
            max_data_bytes: ByteSize(core.data_bytes as u64),
        }
    }
}

/// Calls that are asked about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approval {
    /// How long a call waits for approval, and a tool for the answer to its question; `none` for as
    /// long as it takes. Then it is denied.
    pub timeout: HumanDuration,
}

impl Default for Approval {
    fn default() -> Self {
        Self { timeout: HumanDuration(ExecutorConfig::default().approval_timeout) }
    }
}
