//! The builder of executors.

use std::fmt;
use std::sync::Arc;

use super::{Executor, Shared};
use crate::admission::Admission;
use crate::approval::policy::Policy;
use crate::approval::{Approver, CallerTables, DelegatedCalls, SessionApprovals};
use crate::cache::{AnswerCache, Answers, HistoryLimits};
use crate::call::middleware::Stack;
use crate::call::nested::LiveCalls;
use crate::events::EventBus;
use crate::lifecycle::{PollWatch, Shutdown};
use crate::observability::audit::AuditTrail;
use crate::observability::models::ModelStatistics;
use crate::observability::statistics::Statistics;
use crate::output::masking::{LiveMask, Mask, MaskError};
use crate::output::spill::SpillStore;
use crate::storage::clock::{Clock, SystemClock};
use crate::suspension::SuspensionStore;
use crate::{ExecutorConfig, Middleware, Registry, RegistryBuilder};
use arc_swap::ArcSwap;

/// Builds an [`Executor`]. Every setting is optional, and a part that is not set costs calls
/// nothing.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_core::masking::Mask;
/// use toolcrib_core::spill::{MemorySpill, SpillLimits, read_output_entry};
/// use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let outputs = Arc::new(MemorySpill::new(SpillLimits::default()));
/// let mut registry = RegistryBuilder::new();
/// let _ = registry.register(read_output_entry(outputs.clone()));
/// let executor = Executor::builder(Registry::new(registry.build()))
///     .config(ExecutorConfig::default())
///     .spill(outputs)
///     .mask(Mask::new(["hunter2-secret".to_owned()])?)
///     .build();
/// # let _ = executor;
/// # Ok(())
/// # }
/// ```
pub struct ExecutorBuilder {
    registry: Registry,
    config: ExecutorConfig,
    middleware: Stack,
    mask: Mask,
    spill: Option<Arc<dyn SpillStore>>,
    audit: Option<AuditTrail>,
    policy: Policy,
    approver: Option<Arc<dyn Approver>>,
    suspensions: Option<Arc<dyn SuspensionStore>>,
    clock: Arc<dyn Clock>,
    bus: Option<EventBus>,
}

impl Default for ExecutorBuilder {
    fn default() -> Self {
        Self {
            registry: Registry::new(RegistryBuilder::new().build()),
            config: ExecutorConfig::default(),
            middleware: Stack::default(),
            mask: Mask::default(),
            spill: None,
            audit: None,
            policy: Policy::default(),
            approver: None,
            suspensions: None,
            clock: Arc::new(SystemClock),
            bus: None,
        }
    }
}

impl ExecutorBuilder {
    /// The tools.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Settings for running calls.
    #[must_use]
    pub fn config(mut self, config: ExecutorConfig) -> Self {
        self.config = config;
        self
    }

    /// Adds a hook around every call, inside the hooks added before.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(middleware);
        self
    }

    /// Masks these values, for example secrets, in everything that calls return.
    #[must_use]
    pub fn mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// Masks these values in addition to those of [`mask`](Self::mask).
    pub fn mask_also(
        mut self,
        secrets: impl IntoIterator<Item = String>,
    ) -> Result<Self, MaskError> {
        self.mask = self.mask.extended(secrets)?;
        Ok(self)
    }

    /// Sets the store for outputs that are cut. Register
    /// [`read_output_entry`](crate::output::spill::read_output_entry) with the same store, so that
    /// models can read the rest.
    #[must_use]
    pub fn spill(mut self, store: Arc<dyn SpillStore>) -> Self {
        self.spill = Some(store);
        self
    }

    /// Sets the audit log, which records every call.
    #[must_use]
    pub fn audit(mut self, trail: AuditTrail) -> Self {
        self.audit = Some(trail);
        self
    }

    /// Sets the policy: which calls run, need approval, or are denied.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the default approver of turns. Without an approver and without
    /// [`suspensions`](Self::suspensions), calls that need approval are `denied`.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the store for calls that wait for approval, for a client, or for an answer.
    #[must_use]
    pub fn suspensions(mut self, store: Arc<dyn SuspensionStore>) -> Self {
        self.suspensions = Some(store);
        self
    }

    /// Lets calls that would have to wait fail, even if a store was set: for programs that end
    /// after one call.
    #[must_use]
    pub fn without_suspensions(mut self) -> Self {
        self.suspensions = None;
        self
    }

    /// Sets the clock for expiry times. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the event bus for all calls, for consoles and event logs.
    #[must_use]
    pub fn events(mut self, bus: EventBus) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Builds the executor.
    pub fn build(self) -> Executor {
        let Self {
            registry,
            config,
            middleware,
            mask,
            spill,
            audit,
            policy,
            approver,
            suspensions,
            clock,
            bus,
        } = self;
        let admission = Admission::new(config.admission());
        let answers = Answers::new(AnswerCache::new(config.cache()), HistoryLimits::default());
        Executor {
            shared: Arc::new(Shared {
                everything: crate::Toolset::new(),
                registry,
                config: ArcSwap::from_pointee(config),
                admission,
                answers,
                statistics: Statistics::new(),
                models: ModelStatistics::default(),
                middleware,
                mask: LiveMask::new(mask),
                spill,
                audit,
                policy: ArcSwap::from_pointee(policy),
                approver,
                approvals: SessionApprovals::new(),
                delegated: DelegatedCalls::default(),
                callers: CallerTables::default(),
                suspensions,
                live_calls: LiveCalls::default(),
                settled: tokio::sync::Notify::new(),
                clock,
                bus,
                shutdown: Shutdown::default(),
                polls: PollWatch::default(),
            }),
        }
    }
}

impl fmt::Debug for ExecutorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecutorBuilder")
            .field("config", &self.config)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
