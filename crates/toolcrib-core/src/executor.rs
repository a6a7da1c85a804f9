//! The executor: a registry, settings, and turns over them.

use std::sync::Arc;

use crate::admission::Admission;
use crate::answers::{AnswerCache, Answers, CacheStats, HistoryLimits};
use crate::statistics::Statistics;
use crate::{ExecutorConfig, Registry, Turn, TurnOptions};

/// Runs calls. Cloning it is cheap; all clones share one registry.
#[derive(Debug, Clone)]
pub struct Executor {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Registry,
    pub(crate) config: ExecutorConfig,
    pub(crate) admission: Admission,
    pub(crate) answers: Answers,
    pub(crate) statistics: Statistics,
}

impl Executor {
    /// An executor over a registry.
    pub fn new(registry: Registry, config: ExecutorConfig) -> Self {
        let admission = Admission::new(config.admission());
        let answers = Answers::new(AnswerCache::new(config.cache()), HistoryLimits::default());
        let statistics = Statistics::new();
        Self { shared: Arc::new(Shared { registry, config, admission, answers, statistics }) }
    }

    /// Opens a turn: one pinned snapshot for one agent turn or one request.
    pub fn turn(&self, options: TurnOptions) -> Turn {
        Turn::new(self, options)
    }

    /// The registry, for operators' listings and for publishing snapshots.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// What has become of calls, tool by tool.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// What the cache of answers holds and has done.
    pub fn cache_stats(&self) -> CacheStats {
        self.shared.answers.stats()
    }

    /// Forgets what tools have read from a resource: it was changed by other ways than a call.
    pub fn invalidate_resource(&self, name: &str) {
        self.shared.answers.invalidate_resource(name);
    }

    /// Forgets the answers kept for a session that is over.
    pub fn forget_session(&self, session: &str) {
        self.shared.answers.forget_session(session);
    }

    /// Forgets all answers kept of earlier calls.
    pub fn forget_answers(&self) {
        self.shared.answers.clear();
    }

    /// Lets calls of a tool pass again that was paused after repeated timeouts.
    pub fn resume(&self, tool: &str) {
        self.shared.admission.reset_breaker(tool);
    }

    /// The settings.
    pub fn config(&self) -> &ExecutorConfig {
        &self.shared.config
    }
}
