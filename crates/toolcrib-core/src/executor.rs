//! The executor: a registry, settings, and turns over them.

use std::sync::Arc;

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
}

impl Executor {
    /// An executor over a registry.
    pub fn new(registry: Registry, config: ExecutorConfig) -> Self {
        Self { shared: Arc::new(Shared { registry, config }) }
    }

    /// Opens a turn: one pinned snapshot for one agent turn or one request.
    pub fn turn(&self, options: TurnOptions) -> Turn {
        Turn::new(self, options)
    }

    /// The registry, for operators' listings and for publishing snapshots.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// The settings.
    pub fn config(&self) -> &ExecutorConfig {
        &self.shared.config
    }
}
