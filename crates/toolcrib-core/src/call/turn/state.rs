//! The state of a turn: its snapshot, and what its options say.

use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use toolcrib_tool::{Arguments, ContextValues, Services, ToolDefinition, ToolEntry, ToolFiles};

use super::{Deadline, TurnOptions};
use crate::approval::Approver;
use crate::approval::policy::{Policy, Verdict};
use crate::call::cancellation::Cancellation;
use crate::call::executor::Shared;
use crate::events::{Listeners, Payload};
use crate::identity::identity;
use crate::output::spill::{READ_OUTPUT, SpillStore};
use crate::registry::ToolSlot;
use crate::suspension::{Caller, SuspensionId};
use crate::{Executor, RegistrySnapshot, Toolset, ToolsetView};

/// The state of a turn.
pub(crate) struct TurnState {
    pub(crate) shared: Arc<Shared>,
    pub(super) snapshot: Arc<RegistrySnapshot>,
    /// The toolset, if there is one. The view is all of the snapshot if there is none, except for tools that only
    /// toolsets have which name them.
    pub(super) toolset: Option<Toolset>,
    pub(super) narrowed_to: Option<Toolset>,
    pub(super) view: Option<ToolsetView>,
    pub(crate) values: ContextValues,
    /// The identity on whose behalf the calls are made, for counters and caches.
    pub(crate) identity: Arc<str>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) services: Services,
    pub(crate) files: ToolFiles,
    pub(super) approver: Option<Arc<dyn Approver>>,
    /// Whether the client of the turn may approve calls.
    pub(crate) may_approve: bool,
    /// The turn's own rules.
    pub(super) scope: Policy,
    /// Why every call of the turn waits for approval, if it does.
    pub(super) asks: Option<Arc<str>>,
    pub(crate) listeners: Listeners,
    pub(crate) cancellation: Cancellation,
    pub(crate) max_concurrency: usize,
    /// The deadline of its calls.
    pub(crate) deadline: Option<Instant>,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) client_key: Option<Arc<str>>,
    pub(crate) joinable: bool,
    /// The earlier call that a call of this turn has joined, if one has.
    pub(crate) joined: OnceLock<SuspensionId>,
}

impl TurnState {
    pub(super) fn new(executor: &Executor, options: TurnOptions) -> Self {
        let snapshot = executor.shared.registry.snapshot();
        let values = options.values_within(options.toolset.as_ref());
        let identity = identity(&values);
        let has_approver = options.approver.is_some() || executor.shared.approver.is_some();
        Self {
            may_approve: options.may_approve.unwrap_or(has_approver),
            shared: Arc::clone(&executor.shared),
            view: view(options.toolset.as_ref(), &snapshot, &executor.shared),
            toolset: options.toolset,
            narrowed_to: options.narrowed_to,
            snapshot,
            session: options.session,
            services: options.services,
            files: options.files,
            approver: options.approver,
            scope: options.scope,
            asks: options.asks,
            listeners: match (&executor.shared.bus, options.listeners.bus()) {
                (Some(bus), None) => options.listeners.with_bus(bus.clone()),
                _ => options.listeners,
            }
            .of_identity(&identity),
            identity,
            cancellation: Cancellation::default(),
            values,
            max_concurrency: options
                .max_concurrency
                .unwrap_or(executor.shared.config.load().max_concurrency),
            deadline: options.deadline.and_then(Deadline::at),
            client: options.client,
            client_key: options.client_key,
            joinable: options.joinable,
            joined: OnceLock::new(),
        }
    }

    /// A copy to be changed.
    pub(super) fn copy(&self) -> Self {
        Self {
            values: self.values.clone(),
            identity: Arc::clone(&self.identity),
            files: self.files.clone(),
            session: self.session.clone(),
            toolset: self.toolset.clone(),
            narrowed_to: self.narrowed_to.clone(),
            view: self.view.clone(),
            scope: self.scope.clone(),
            asks: self.asks.clone(),
            listeners: self.listeners.clone(),
            approver: self.approver.clone(),
            may_approve: self.may_approve,
            client: self.client.clone(),
            client_key: self.client_key.clone(),
            joinable: self.joinable,
            joined: self.joined.clone(),
            cancellation: self.cancellation.clone(),
            shared: Arc::clone(&self.shared),
            snapshot: Arc::clone(&self.snapshot),
            services: self.services.clone(),
            max_concurrency: self.max_concurrency,
            deadline: self.deadline,
        }
    }

    /// The tool that a name resolves to.
    pub(crate) fn slot(&self, name: &str) -> Option<&Arc<ToolSlot>> {
        match &self.view {
            None => self.snapshot.slot(name),
            Some(view) => view.slot(name),
        }
    }

    /// Similar names.
    pub(crate) fn near(&self, name: &str) -> Vec<&str> {
        match &self.view {
            None => self.snapshot.near(name, |_| true),
            Some(view) => view.near(name),
        }
    }

    /// The store for cut outputs, if this turn has the tool that reads them.
    pub(crate) fn spill(&self) -> Option<&dyn SpillStore> {
        let store = self.shared.spill.as_deref()?;
        self.slot(READ_OUTPUT).is_some().then_some(store)
    }

    /// Publishes that a tool is paused for this identity.
    pub(crate) fn paused(&self, tool: &str) {
        if let Some(bus) = self.listeners.bus() {
            let (tool, identity) = (tool.to_owned(), self.identity.as_ref().to_owned());
            bus.publish(Payload::Paused { tool, identity });
        }
    }

    /// Whether the toolset allows this name. Without a toolset, this includes tools that no longer
    /// exist.
    pub(crate) fn reaches(&self, name: &str) -> bool {
        self.toolset.is_none() || self.slot(name).is_some()
    }

    /// The caller record for calls of this tool, to resume them later.
    pub(crate) fn caller(&self, definition: &ToolDefinition) -> Result<Caller, serde_json::Error> {
        let caller = Caller::new(definition, &self.values)
            .within(self.toolset.as_ref(), self.narrowed_to.as_ref(), &self.scope)?
            .client(self.client.as_deref(), self.client_key.as_deref());
        Ok(caller.rights(self.may_approve, self.joinable))
    }

    /// Whether the policy could do anything but allow a call of this tool.
    pub(crate) fn needs_look(&self, definition: &ToolDefinition) -> bool {
        self.shared.policy.load().needs_look(definition)
            || !self.scope.is_empty()
            || self.asks.is_some()
    }

    /// The verdict of the host's policy and this turn's own rules.
    pub(crate) fn verdict(&self, entry: &ToolEntry, arguments: &Arguments) -> Verdict {
        let policy = self.shared.policy.load();
        let verdict = policy.decide(entry, arguments);
        let verdict = match self.scope.ruled(entry, arguments) {
            Some(scope) => verdict.narrowed(scope),
            None => verdict,
        };
        match (&self.asks, verdict) {
            (Some(reason), Verdict::Allow { .. } | Verdict::Ask { .. }) => {
                policy.asked_by_host(reason)
            }
            (_, verdict) => verdict,
        }
    }

    /// Whether calls wait for approval whatever was approved before.
    pub(crate) fn asks_anew(&self) -> bool {
        self.asks.is_some()
    }

    /// The approver; `None` in a turn without the right to approve.
    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        let approver = self.approver.as_ref().or(self.shared.approver.as_ref());
        approver.filter(|_| self.may_approve)
    }
}

/// What a turn with this toolset sees; `None` for all of the snapshot.
pub(super) fn view(
    toolset: Option<&Toolset>,
    snapshot: &Arc<RegistrySnapshot>,
    shared: &Shared,
) -> Option<ToolsetView> {
    let everything = snapshot.has_opt_in().then_some(&shared.everything);
    toolset.or(everything).map(|toolset| toolset.view(snapshot))
}
