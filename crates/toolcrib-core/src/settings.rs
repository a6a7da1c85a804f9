//! Settings of the executor.

use std::time::Duration;

use crate::admission::AdmissionConfig;
use crate::approval::APPROVAL_TIMEOUT;
use crate::cache::CacheLimits;

/// Settings of an executor. The defaults are those of the shipped `config.yml`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutorConfig {
    /// Time limit of a tool that declares none. Default 60 s; `None` means no such limit.
    pub tool_timeout: Option<Duration>,
    /// Time limit of every call, whatever a tool declares. Default 600 s; `None` means none.
    pub max_timeout: Option<Duration>,
    /// Calls of one batch that run at once. Default 4; 0 means all of them.
    pub max_concurrency: usize,
    /// Calls that may wait for a slot of one tool (`max_concurrent`). Default 1,000; with 0, no
    /// call waits.
    pub max_queue: usize,
    /// How long a call waits for a slot at most. Default 30 s.
    pub queue_timeout: Duration,
    /// Consecutive timeouts that pause a tool for an identity. Default 3; 0 means never.
    pub breaker_timeouts: u32,
    /// How long a paused tool rests before one call is tried. Default 60 s.
    pub breaker_cooldown: Duration,
    /// How long a cached answer is used, for tools that do not say. Default 300 s.
    pub cache_ttl: Duration,
    /// Answers kept in the cache. Default 10,000; 0 switches the cache and session replay off.
    pub cache_entries: usize,
    /// Bytes of answers kept in the cache. Default 64 MiB.
    pub cache_bytes: usize,
    /// Characters of text that reach the model, for tools that declare no budget. Default 24,000.
    pub output_chars: usize,
    /// Characters of text that reach the model from all calls of one batch together, shared max-min
    /// fairly. Default `None`: together they get as many characters as the largest budget of one of them, so 24,000 if
    /// no tool declares a budget.
    pub batch_output_chars: Option<usize>,
    /// How long a call waits for approval, or a tool for the answer to its question. Default 600 s;
    /// `None` means forever.
    pub approval_timeout: Option<Duration>,
    /// Bytes of structured data, as JSON, that a result may carry. Default 1 MiB.
    pub data_bytes: usize,
}

impl Default for ExecutorConfig {
    fn default() -> Self {
        Self {
            tool_timeout: Some(Duration::from_secs(60)),
            max_timeout: Some(Duration::from_secs(600)),
            max_concurrency: 4,
            max_queue: 1000,
            queue_timeout: Duration::from_secs(30),
            breaker_timeouts: 3,
            breaker_cooldown: Duration::from_secs(60),
            cache_ttl: Duration::from_secs(300),
            cache_entries: 10_000,
            cache_bytes: 64 * 1024 * 1024,
            output_chars: 24_000,
            batch_output_chars: None,
            approval_timeout: Some(APPROVAL_TIMEOUT),
            data_bytes: 1024 * 1024,
        }
    }
}

impl ExecutorConfig {
    pub(crate) fn admission(&self) -> AdmissionConfig {
        AdmissionConfig {
            max_queue: self.max_queue,
            queue_timeout: self.queue_timeout,
            consecutive_timeouts: self.breaker_timeouts,
            cooldown: self.breaker_cooldown,
        }
    }

    pub(crate) fn cache(&self) -> CacheLimits {
        CacheLimits {
            max_entries: self.cache_entries,
            max_bytes: self.cache_bytes,
            ttl: self.cache_ttl,
        }
    }

    /// The time limit of a call of a tool with this limit: the smallest that applies.
    pub fn limit(&self, own: Option<Duration>) -> Option<Duration> {
        match (own.or(self.tool_timeout), self.max_timeout) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}
