//! The operator's settings for `data_analysis`.

use std::time::Duration;

/// How `data_analysis` runs queries. Lend it to the calls as a service; without it, the defaults apply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnalysisSettings {
    /// The time limit of a call, reading the files included. Default: 60 s.
    pub timeout: Duration,
    /// The memory of a query's process, in bytes. What does not fit is sorted and joined on disk. Default: 512 MiB.
    pub memory: u64,
    /// The most bytes of all files of a call together. Default: 4 GiB.
    pub max_input: u64,
}

impl Default for AnalysisSettings {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), memory: 512 << 20, max_input: 4 << 30 }
    }
}

impl AnalysisSettings {
    /// Sets the time limit of a call.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the memory of a query's process, in bytes; at least 64 MiB are used.
    #[must_use]
    pub fn with_memory(self, memory: u64) -> Self {
        Self { memory, ..self }
    }

    /// Sets the most bytes of all files of a call together.
    #[must_use]
    pub fn with_max_input(self, max_input: u64) -> Self {
        Self { max_input, ..self }
    }
}
