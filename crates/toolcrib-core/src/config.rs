//! Settings of the executor.

use std::time::Duration;

/// How calls are run. The defaults are those of the shipped `config.yml`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutorConfig {
    /// Time limit of a tool that declares none. Default 60 s; `None` means no such limit.
    pub tool_timeout: Option<Duration>,
    /// Time limit of every call, whatever a tool declares. Default 600 s; `None` means none.
    pub max_timeout: Option<Duration>,
    /// Calls of one batch that run at once. Default 4; 0 means all of them.
    pub max_concurrency: usize,
    /// Characters of text that reach the model, for tools that declare no budget. Default 24,000.
    pub output_chars: usize,
    /// Bytes of structured data, as JSON, that a result may carry. Default 1 MiB.
    pub data_bytes: usize,
}

impl Default for ExecutorConfig {
    fn default() -> Self {
        Self {
            tool_timeout: Some(Duration::from_secs(60)),
            max_timeout: Some(Duration::from_secs(600)),
            max_concurrency: 4,
            output_chars: 24_000,
            data_bytes: 1024 * 1024,
        }
    }
}

impl ExecutorConfig {
    /// The limit of a call: the smallest of those that apply.
    pub(crate) fn limit(&self, own: Option<Duration>) -> Option<Duration> {
        [own.or(self.tool_timeout), self.max_timeout].into_iter().flatten().min()
    }
}
