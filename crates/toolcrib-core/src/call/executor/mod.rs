//! The executor: a registry, settings, and turns over them.

mod builder;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use toolcrib_tool::Content;

use crate::admission::Admission;
use crate::approval::policy::Policy;
use crate::approval::{Approvals, Approver, CallerTables, DelegatedCalls, SessionApprovals};
use crate::cache::{Answers, CacheStats};
use crate::call::middleware::Stack;
use crate::call::nested::LiveCalls;
use crate::events::EventBus;
use crate::lifecycle::{PollWatch, Shutdown, ShutdownReport};
use crate::observability::audit::AuditTrail;
use crate::observability::models::ModelStatistics;
use crate::observability::statistics::Statistics;
use crate::output::masking::{LiveMask, MaskError};
use crate::output::spill::SpillStore;
use crate::storage::clock::{Clock, Timestamp};
use crate::suspension::SuspensionStore;
use crate::{ExecutorConfig, Registry, Turn, TurnOptions};

pub use builder::ExecutorBuilder;

/// Runs calls of the tools in its registry. Cloning it is cheap; clones share their state.
#[derive(Debug, Clone)]
pub struct Executor {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) registry: Registry,
    /// The limits in it can be replaced while calls run.
    pub(crate) config: ArcSwap<ExecutorConfig>,
    pub(crate) admission: Admission,
    pub(crate) answers: Answers,
    pub(crate) statistics: Statistics,
    pub(crate) models: ModelStatistics,
    pub(crate) middleware: Stack,
    pub(crate) mask: LiveMask,
    pub(crate) spill: Option<Arc<dyn SpillStore>>,
    pub(crate) audit: Option<AuditTrail>,
    /// The host's policy, which can be replaced while calls run.
    pub(crate) policy: ArcSwap<Policy>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) approvals: SessionApprovals,
    /// Running calls that somebody other than their caller has decided on.
    pub(crate) delegated: DelegatedCalls,
    /// The current rights of clients that made waiting calls.
    pub(crate) callers: CallerTables,
    pub(crate) suspensions: Option<Arc<dyn SuspensionStore>>,
    /// Running calls that wait for a nested call.
    pub(crate) live_calls: LiveCalls,
    /// Notified whenever a decided call gets its outcome.
    pub(crate) settled: tokio::sync::Notify,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) bus: Option<EventBus>,
    pub(crate) shutdown: Shutdown,
    pub(crate) polls: PollWatch,
    /// The tools of turns without a toolset.
    pub(crate) everything: crate::Toolset,
}

impl Shared {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Executor {
    /// An executor with a registry and settings.
    pub fn new(registry: Registry, config: ExecutorConfig) -> Self {
        Self::builder(registry).config(config).build()
    }

    /// Starts to build an executor with a registry.
    pub fn builder(registry: Registry) -> ExecutorBuilder {
        ExecutorBuilder::default().registry(registry)
    }

    /// Opens a turn, which pins one registry snapshot for one agent turn or one request.
    pub fn turn(&self, options: TurnOptions) -> Turn {
        Turn::new(self, options)
    }

    /// The registry, for operators' listings and for publishing snapshots.
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    /// Statistics of calls, per tool.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Statistics of the requests of agents to their models.
    pub fn model_statistics(&self) -> &ModelStatistics {
        &self.shared.models
    }

    /// What the cache of answers holds and has done.
    pub fn cache_stats(&self) -> CacheStats {
        self.shared.answers.stats()
    }

    /// How often an async tool in a batch blocked its thread for 100 ms or more. Other calls and
    /// time limits are delayed meanwhile; the log names the tool. It should be declared `blocking`.
    pub fn long_polls(&self) -> u64 {
        self.shared.polls.long_polls()
    }

    /// Invalidates answers that were read from a resource, after it was changed other than by a
    /// call.
    pub fn invalidate_resource(&self, name: &str) {
        self.shared.answers.invalidate_resource(name);
    }

    /// Removes the stored answers and approvals of a session that has ended.
    pub fn forget_session(&self, session: &str) {
        self.shared.answers.forget_session(session);
        self.shared.approvals.forget_session(session);
    }

    /// The event bus, if there is one.
    pub fn events(&self) -> Option<&EventBus> {
        self.shared.bus.as_ref()
    }

    /// The waiting calls of every tenant, for operators of the program. Approved calls run with the
    /// services of `options`.
    pub fn approvals(&self, options: TurnOptions) -> Approvals {
        Approvals::of(&self.turn(options.may_approve(true))).of_all_tenants()
    }

    /// The store of suspended calls, if there is one.
    pub fn suspensions(&self) -> Option<&Arc<dyn SuspensionStore>> {
        self.shared.suspensions.as_ref()
    }

    /// The store of outputs that were cut, if there is one.
    pub fn outputs(&self) -> Option<&Arc<dyn SpillStore>> {
        self.shared.spill.as_ref()
    }

    /// Removes all stored answers.
    pub fn forget_answers(&self) {
        self.shared.answers.clear();
    }

    /// Ends the pause of a tool after repeated timeouts, for every identity; returns for how many
    /// it was paused.
    pub fn resume(&self, tool: &str) -> usize {
        self.shared.admission.reset_breaker(tool)
    }

    /// The tools that are paused after repeated timeouts, by name, each with the longest time left
    /// for any identity; zero while a probe call is under way. [`resume`](Self::resume) ends a
    /// pause at once.
    pub fn paused(&self) -> BTreeMap<String, Duration> {
        self.shared.admission.paused()
    }

    /// Masks these values, too, from now on, for example renewed secrets. Older values stay masked.
    /// Call it before a tool can get the new values.
    pub fn mask_also(&self, secrets: impl IntoIterator<Item = String>) -> Result<(), MaskError> {
        let values: Vec<String> = secrets.into_iter().collect();
        self.shared.mask.extend(&values)
    }

    /// The mask for secrets, for data that is read outside of calls. It grows with
    /// [`mask_also`](Self::mask_also).
    pub fn mask(&self) -> LiveMask {
        self.shared.mask.clone()
    }

    /// Replaces the host's policy. It applies to all calls that are not yet decided, in open turns
    /// as well; running calls are not affected.
    pub fn replace_policy(&self, policy: Policy) {
        self.shared.policy.store(Arc::new(policy));
    }

    /// Masks secrets in content that does not come from a call.
    pub fn masked(&self, part: Content) -> Content {
        self.shared.mask.load().content(part)
    }

    /// Shuts down: new calls are `unavailable`, running calls have `grace` to end and are then
    /// `cancelled`, and finally every tool is closed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
    /// # use toolcrib_tool::{ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
    /// # let definition = ToolDefinition::builder("ping").description("Answer.").build()?;
    /// # let body = tool_fn(|_: serde_json::Value, _| async { "pong" });
    /// # let mut builder = RegistryBuilder::new();
    /// # let _ = builder.register(ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "doc")));
    /// # let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
    /// let turn = executor.turn(TurnOptions::default());
    /// let report = executor.shutdown(Duration::from_secs(5)).await;
    /// assert_eq!((report.cancelled, report.abandoned), (0, 0));
    /// let late = turn.call(ToolCall::new("1", "ping", "{}")).await;
    /// assert_eq!(late.error_kind(), Some(ErrorKind::Unavailable));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let report = self.shared.shutdown.run(grace).await;
        self.shared.registry.close().await;
        report
    }

    /// The number of running calls, without nested ones.
    pub fn calls_at_work(&self) -> usize {
        self.shared.shutdown.inside()
    }

    /// Whether it is being shut down, or has been.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.shutdown.has_begun()
    }

    /// The settings.
    pub fn config(&self) -> Arc<ExecutorConfig> {
        self.shared.config.load_full()
    }

    /// Replaces the limits of calls: time, output, calls of a batch at once, and how long a call waits for
    /// approval. A call keeps the limits that held when it arrived.
    ///
    /// Settings of the queues, the breaker and the cache keep the values from when the executor was
    /// built.
    pub fn replace_limits(&self, config: &ExecutorConfig) {
        let ExecutorConfig {
            tool_timeout,
            max_timeout,
            max_concurrency,
            output_chars,
            batch_output_chars,
            approval_timeout,
            data_bytes,
            max_queue: _,
            queue_timeout: _,
            breaker_timeouts: _,
            breaker_cooldown: _,
            cache_ttl: _,
            cache_entries: _,
            cache_bytes: _,
        } = config;
        let mut limits = (*self.config()).clone();
        limits.tool_timeout = *tool_timeout;
        limits.max_timeout = *max_timeout;
        limits.max_concurrency = *max_concurrency;
        limits.output_chars = *output_chars;
        limits.batch_output_chars = *batch_output_chars;
        limits.approval_timeout = *approval_timeout;
        limits.data_bytes = *data_bytes;
        self.shared.config.store(Arc::new(limits));
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("config", &self.config.load()).finish_non_exhaustive()
    }
}
