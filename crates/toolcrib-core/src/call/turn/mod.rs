//! A turn: the only way to list, describe and call tools.

mod deadline;
mod options;
mod outcome;
mod stream;

use std::fmt;
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use toolcrib_tool::{
    Arguments, ContextValues, Services, ToolCall, ToolDefinition, ToolEntry, ToolError, ToolFiles,
    ToolResult,
};

use crate::approval::policy::{Policy, Verdict};
use crate::approval::{Approvals, Approver, THE_HOST};
use crate::call::cancellation::Cancellation;
use crate::call::executor::Shared;
use crate::call::nested;
use crate::call::nested::RootStart;
use crate::call::pipeline::{Answered, DryRun};
use crate::call::{batch, pipeline};
use crate::core_tools::search::{FoundTool, Match};
use crate::events::{ChannelOverflow, Listeners, MemoryOverflow, Payload, SpillOverflow};
use crate::identity::identity;
use crate::output::spill::{Owner, READ_OUTPUT, SpillStore};
use crate::registry::ToolSlot;
use crate::suspension::{
    Answer, Caller, Grant, RedeemError, Resolution, StoreError, Suspension, SuspensionId, redeem,
};
use crate::{BatchOptions, Executor, RegistrySnapshot, Toolset, ToolsetView};

pub use self::deadline::Deadline;
pub use self::options::TurnOptions;
pub use self::stream::{AnswerStream, StreamItem};

/// One pinned view of the registry and everything a call needs.
///
/// Whatever is published meanwhile, definitions and implementations of a turn belong together.
///
/// ```
/// use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
/// use toolcrib_tool::{NoArguments, ToolCall};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolcrib_tool::DefinitionError> {
/// let mut builder = RegistryBuilder::new();
/// builder.tool("ping", "Answer.", |_: NoArguments, _| async { "pong" })?;
/// let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
///
/// let turn = executor.turn(TurnOptions::default());
/// assert_eq!(turn.definitions().len(), 1);
/// assert_eq!(turn.call(ToolCall::new("1", "ping", "{}")).await.text(), "pong");
///
/// let unknown = turn.call(ToolCall::new("2", "pingg", "{}")).await;
/// assert!(unknown.text().contains("Did you mean `ping`?"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Turn {
    /// One pointer, because every call keeps the turn it belongs to.
    pub(crate) state: Arc<TurnState>,
}

/// What a turn pins.
pub(crate) struct TurnState {
    pub(crate) shared: Arc<Shared>,
    snapshot: Arc<RegistrySnapshot>,
    /// The toolset, if there is one, and the snapshot through it.
    toolset: Option<Toolset>,
    view: Option<ToolsetView>,
    pub(crate) values: ContextValues,
    /// Whose calls these are, as far as the host said: what is counted for one is not held against
    /// another.
    pub(crate) identity: Arc<str>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) services: Services,
    pub(crate) files: ToolFiles,
    approver: Option<Arc<dyn Approver>>,
    /// Whether whoever the turn acts for may approve calls.
    pub(crate) may_approve: bool,
    /// Rules of this turn alone.
    scope: Policy,
    pub(crate) listeners: Listeners,
    pub(crate) cancellation: Cancellation,
    pub(crate) max_concurrency: usize,
    /// When its calls must be answered.
    pub(crate) deadline: Option<Instant>,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) client_key: Option<Arc<str>>,
    pub(crate) joinable: bool,
    /// The earlier call that a call of this turn has joined, if one has.
    pub(crate) joined: OnceLock<SuspensionId>,
}

impl TurnState {
    /// The same once more, for a turn that differs from it.
    fn copy(&self) -> Self {
        Self {
            values: self.values.clone(),
            identity: Arc::clone(&self.identity),
            files: self.files.clone(),
            session: self.session.clone(),
            toolset: self.toolset.clone(),
            view: self.view.clone(),
            scope: self.scope.clone(),
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

    /// What a call of that name resolves to.
    pub(crate) fn slot(&self, name: &str) -> Option<&Arc<ToolSlot>> {
        match &self.view {
            None => self.snapshot.slot(name),
            Some(view) => view.slot(name),
        }
    }

    /// The names that may have been meant.
    pub(crate) fn near(&self, name: &str) -> Vec<&str> {
        match &self.view {
            None => self.snapshot.near(name, |_| true),
            Some(view) => view.near(name),
        }
    }

    /// Where the rest of an output goes that is cut: where this turn has the tool that reads it.
    pub(crate) fn spill(&self) -> Option<&dyn SpillStore> {
        let store = self.shared.spill.as_deref()?;
        self.slot(READ_OUTPUT).is_some().then_some(store)
    }

    /// Tells that a tool rests for this identity.
    pub(crate) fn paused(&self, tool: &str) {
        if let Some(bus) = self.listeners.bus() {
            let (tool, identity) = (tool.to_owned(), self.identity.as_ref().to_owned());
            bus.publish(Payload::Paused { tool, identity });
        }
    }

    /// Whether the toolset leaves this name in. Without a toolset it does so for tools that are gone,
    /// too.
    pub(crate) fn reaches(&self, name: &str) -> bool {
        self.view.is_none() || self.slot(name).is_some()
    }

    /// Who makes calls of this tool in this turn, for whoever goes on with one later.
    pub(crate) fn caller(&self, definition: &ToolDefinition) -> Result<Caller, serde_json::Error> {
        let caller = Caller::new(definition, &self.values)
            .within(self.toolset.as_ref(), &self.scope)?
            .client(self.client.as_deref(), self.client_key.as_deref());
        Ok(caller.rights(self.may_approve, self.joinable))
    }

    /// Whether anything but yes could be said to a call of this tool.
    pub(crate) fn needs_look(&self, definition: &ToolDefinition) -> bool {
        self.shared.policy.load().needs_look(definition) || !self.scope.is_empty()
    }

    /// What the host's policy and this turn's own rules say of a call.
    pub(crate) fn verdict(&self, entry: &ToolEntry, arguments: &Arguments) -> Verdict {
        let verdict = self.shared.policy.load().decide(entry, arguments);
        match self.scope.ruled(entry, arguments) {
            Some(scope) => verdict.narrowed(scope),
            None => verdict,
        }
    }

    /// Who is asked about calls, if anybody is: nobody in a turn without the right to approve.
    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        let approver = self.approver.as_ref().or(self.shared.approver.as_ref());
        approver.filter(|_| self.may_approve)
    }
}

impl Turn {
    pub(crate) fn new(executor: &Executor, options: TurnOptions) -> Self {
        let snapshot = executor.shared.registry.snapshot();
        let values = options.values_within(options.toolset.as_ref());
        let identity = identity(&values);
        let has_approver = options.approver.is_some() || executor.shared.approver.is_some();
        let state = TurnState {
            may_approve: options.may_approve.unwrap_or(has_approver),
            shared: Arc::clone(&executor.shared),
            view: options.toolset.as_ref().map(|toolset| toolset.view(&snapshot)),
            toolset: options.toolset,
            snapshot,
            session: options.session,
            services: options.services,
            files: options.files,
            approver: options.approver,
            scope: options.scope,
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
        };
        Self { state: Arc::new(state) }
    }

    /// The tools among [`definitions`](Self::definitions) that a question's words fit, the best first, at
    /// most `limit`: by name, title, category, tags, description and parameters.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use toolcrib_core::{Executor, ExecutorConfig, Registry, TurnOptions};
    ///
    /// let registry = Registry::scratch().tool("disk_usage", |_, _| async { "full" }).build()?;
    /// let turn = Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default());
    /// assert_eq!(turn.search("which disks?", 5)[0].definition.name(), "disk_usage");
    /// assert_eq!(turn.matches("which disks?", "disk_usage")[0].word, "disks");
    /// # Ok(())
    /// # }
    /// ```
    pub fn search(&self, question: &str, limit: usize) -> Vec<FoundTool<'_>> {
        match &self.state.view {
            None => self.state.snapshot.search(question, limit, |_| true),
            Some(view) => view.search(question, limit),
        }
    }

    /// Which words of a question fit a tool of this turn, and where they stand.
    pub fn matches(&self, question: &str, name: &str) -> Vec<Match> {
        match &self.state.view {
            None => self.state.snapshot.matches(question, name),
            Some(view) => view.matches(question, name),
        }
    }

    /// The definitions a model may be shown, sorted by name; the same from call to call.
    pub fn definitions(&self) -> &[Arc<ToolDefinition>] {
        match &self.state.view {
            None => self.state.snapshot.definitions(),
            Some(view) => view.definitions(),
        }
    }

    /// One definition.
    pub fn describe(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        match &self.state.view {
            None => self.state.snapshot.describe(name),
            Some(view) => view.describe(name),
        }
    }

    /// The names of available tools that may have been meant by a name that no tool has.
    pub fn near(&self, name: &str) -> Vec<&str> {
        self.state.near(name)
    }

    /// Which snapshot this is; equal numbers mean equal definitions.
    pub fn generation(&self) -> u64 {
        self.state.snapshot.generation()
    }

    /// On whose behalf its calls are made: tenant and user of the host's values as one text; empty
    /// where the host names neither.
    pub fn identity(&self) -> &str {
        &self.state.identity
    }

    /// Whether whoever this turn acts for may approve calls
    /// ([`TurnOptions::may_approve`]).
    pub fn may_approve(&self) -> bool {
        self.state.may_approve
    }

    /// Whoever this turn acts for, as the audit log names them: the client, or the host.
    pub(crate) fn name(&self) -> &str {
        self.state.client.as_deref().unwrap_or(THE_HOST)
    }

    /// Answers a call. Never fails otherwise: whatever goes wrong is a failed result, and so is a
    /// call that waits (`requires_approval`); [`start`](Self::start) tells the two apart.
    ///
    /// Dropping the future cancels the call and ends what it started. Needs a tokio runtime with
    /// its timer.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        nested::make(self, call, RootStart::alone()).await.result
    }

    /// Answers a call, or says that it waits for somebody: for approval, for a client, for an answer.
    pub async fn start(&self, call: ToolCall) -> Answer {
        // The same call may be at work already: the client asks after it by making it again.
        if let Some(earlier) = self.joined(&call).await {
            return earlier;
        }
        nested::make(self, call, RootStart::alone()).await.into_answer()
    }

    /// Goes on with a call that was suspended, here or in another process: what was granted is
    /// checked against the call, the tool as it is now, and the identity of this turn. It may come to
    /// wait again.
    ///
    /// It runs with the values that were kept of its caller's context, not with this turn's. A call
    /// whose client may no longer make it ([`CallerRights`](crate::approval::CallerRights)) is
    /// `denied`, whatever was granted.
    pub async fn resume(&self, grant: Grant) -> Answer {
        let shared = &self.state.shared;
        let refused = self.state.caller_now(grant.suspension()).err();
        let grant = match refused.clone().filter(|_| grant.lets_go_on()) {
            Some(reason) => grant.denied(reason),
            None => grant,
        };
        let within = grant.suspension().within();
        let is_kept_alive = within.is_some_and(|within| within.alive_in.is_some());
        if is_kept_alive {
            return match shared.live_calls.resume(self, grant, refused).await {
                Ok(answer) => answer,
                Err(grant) => self.resume_gone(grant).await,
            };
        }
        self.resume_again(grant).await
    }

    /// Where a channel of this turn's calls puts what its reader has not read yet: into the executor's
    /// store of long outputs, for the turn's identity, or into memory where there is no store.
    pub fn overflow(&self) -> Box<dyn ChannelOverflow> {
        match &self.state.shared.spill {
            Some(store) => {
                let owner = Owner::known(&self.state.identity, self.state.session.as_ref());
                Box::new(SpillOverflow::new(Arc::clone(store), owner))
            }
            None => Box::new(MemoryOverflow::default()),
        }
    }

    /// The calls that wait for approval and that this turn may decide on, whoever made them; `None`
    /// without the right to approve.
    pub fn approvals(&self) -> Option<Approvals> {
        self.may_approve().then(|| Approvals::of(self))
    }

    /// The same call made earlier, by the same caller, that waits or was decided on and not asked
    /// after; `call` itself, where this turn has joined it instead of making the call again. Only
    /// calls of [joinable](TurnOptions::joinable) turns are found.
    pub async fn same_call(&self, call: &Suspension) -> Result<Option<Suspension>, StoreError> {
        if self.state.joined.get() == Some(call.id()) {
            return Ok(Some(call.clone()));
        }
        let Some(store) = &self.state.shared.suspensions else { return Ok(None) };
        store.same_call(call, self.state.shared.now()).await
    }

    /// This turn with the values that another had, if they differ.
    pub(crate) fn with_values(&self, values: ContextValues) -> Self {
        if values == self.state.values {
            return self.clone();
        }
        Self::of(TurnState { values, ..self.state.copy() })
    }

    /// This turn on the snapshot of now.
    pub(crate) fn on_the_current_snapshot(&self) -> Self {
        let state = &self.state;
        let snapshot = state.shared.registry.snapshot();
        if snapshot.generation() == state.snapshot.generation() {
            return self.clone();
        }
        let view = state.toolset.as_ref().map(|toolset| toolset.view(&snapshot));
        Self::of(TurnState { snapshot, view, ..state.copy() })
    }

    /// A turn of whoever made a suspended call, over this turn's tools and services. Nobody is
    /// asked in it, and nobody but the executor's bus hears of its calls.
    ///
    /// It has the rights that the client has now, where the host manages the client and the call may
    /// still be made; else those that were kept with the call.
    pub(crate) fn as_caller(&self, suspension: &Suspension) -> Result<Self, ToolError> {
        let caller = suspension.caller();
        let unreadable = |error| {
            ToolError::internal("the rules kept with the waiting call cannot be read")
                .with_source(error)
        };
        let (state, values) = (&self.state, caller.values());
        let mut toolset = caller.toolset().map_err(unreadable)?;
        let mut scope = caller.scope().map_err(unreadable)?;
        let mut may_approve = caller.may_approve();
        if let Ok(Some(now)) = state.caller_now(suspension) {
            // A client without a toolset of its own may have chosen one for the call.
            toolset = now.toolset.or(toolset);
            scope = now.scope;
            may_approve &= now.may_approve == Some(true);
        }
        let listeners = Listeners::default();
        Ok(Self::of(TurnState {
            values,
            identity: suspension.identity().into(),
            files: ToolFiles::default(),
            session: suspension.session().map(Arc::from),
            view: toolset.as_ref().map(|toolset| toolset.view(&state.snapshot)),
            toolset,
            scope,
            listeners: match &state.shared.bus {
                Some(bus) => listeners.with_bus(bus.clone()),
                None => listeners,
            }
            .of_identity(&suspension.identity().into()),
            approver: None,
            may_approve: may_approve && state.shared.approver.is_none(),
            client: caller.client_name().map(Arc::from),
            client_key: caller.client_key().map(Arc::from),
            joinable: caller.is_joinable(),
            joined: OnceLock::new(),
            cancellation: Cancellation::default(),
            shared: Arc::clone(&state.shared),
            snapshot: Arc::clone(&state.snapshot),
            services: state.services.clone(),
            max_concurrency: state.max_concurrency,
            deadline: None,
        }))
    }

    fn of(state: TurnState) -> Self {
        Self { state: Arc::new(state) }
    }

    /// A suspended call of this turn's identity, if it still waits.
    pub async fn suspended(&self, id: &SuspensionId) -> Result<Option<Suspension>, StoreError> {
        let Some(store) = &self.state.shared.suspensions else { return Ok(None) };
        let found = store.find(id).await?;
        Ok(found.filter(|found| found.identity() == &*self.state.identity))
    }

    /// Resolves a suspended call of this turn's identity and goes on with it.
    ///
    /// Fails, and leaves the call waiting, where the executor keeps no calls
    /// ([`RedeemError::Unknown`]), where this turn would have to have the right to approve and has
    /// not ([`RedeemError::NotAllowed`]), or as [`redeem`] says.
    pub async fn resolve(
        &self,
        id: &SuspensionId,
        resolution: Resolution,
    ) -> Result<Answer, RedeemError> {
        let shared = &self.state.shared;
        let store = shared.suspensions.as_ref().ok_or(RedeemError::Unknown)?;
        resolution.check_right(self.may_approve())?;
        let identity = &self.state.identity;
        if let Some(found) = self.suspended(id).await? {
            self.state.check_here(&found).await?;
        }
        let grant =
            redeem(store.as_ref(), id, identity, shared.now(), resolution, self.name()).await?;
        Ok(self.resume(grant).await)
    }

    /// Withdraws the calls of this turn and all its clones, those to come too: their work is ended,
    /// and each is answered with kind `cancelled`. To withdraw one call alone, drop its future.
    pub fn cancel(&self) {
        self.state.cancellation.set();
    }

    /// Withdraws the calls of this turn and all its clones as [`cancel`](Self::cancel) does, because the
    /// client that makes them lost the right to: their answers and the audit log say so.
    pub fn revoke(&self) {
        self.state.cancellation.revoke();
    }

    /// Does everything a call does up to the moment before anybody is asked and anything runs: what
    /// the tool would get and do, what policy says, and whether an answer is there already. Fails as
    /// the call would, with every problem of its arguments.
    ///
    /// Nothing is counted, recorded or told to listeners, and no middleware is asked. The own check
    /// of a tool with an instance per call is left out: an instance would have to be made.
    pub async fn dry_run(&self, call: ToolCall) -> Result<DryRun, ToolError> {
        pipeline::dry_run(self, call).await
    }

    /// Answers several calls, in their order, running them at once as far as they allow.
    pub async fn call_batch(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        self.call_batch_with(calls, BatchOptions::default()).await
    }

    /// As [`call_batch`](Self::call_batch), with options for this batch alone.
    pub async fn call_batch_with(
        &self,
        calls: Vec<ToolCall>,
        options: BatchOptions,
    ) -> Vec<ToolResult> {
        let answered = batch::run(self, calls, options).await;
        answered.into_iter().map(|answered| answered.result).collect()
    }

    /// Answers several calls as [`call_batch`](Self::call_batch) does, and says which of them wait.
    pub async fn start_batch(&self, calls: Vec<ToolCall>) -> Vec<Answer> {
        self.start_batch_with(calls, BatchOptions::default()).await
    }

    /// As [`start_batch`](Self::start_batch), with options for this batch alone.
    pub async fn start_batch_with(
        &self,
        calls: Vec<ToolCall>,
        options: BatchOptions,
    ) -> Vec<Answer> {
        let answered = batch::run(self, calls, options).await;
        answered.into_iter().map(Answered::into_answer).collect()
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("generation", &self.generation()).finish_non_exhaustive()
    }
}
