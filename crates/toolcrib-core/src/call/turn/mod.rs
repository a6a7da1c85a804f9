//! A turn: the only way to list, describe and call tools.

mod deadline;
mod options;
mod outcome;
mod preview;
mod state;
mod stream;

use std::fmt;
use std::sync::{Arc, OnceLock};

use toolcrib_tool::{ContextValues, ToolCall, ToolDefinition, ToolError, ToolFiles, ToolResult};

use crate::approval::policy::Verdict;
use crate::approval::{Approvals, THE_HOST, refused};
use crate::call::cancellation::Cancellation;
use crate::call::nested;
use crate::call::nested::{ResumePermit, RootStart};
use crate::call::pipeline::{Answered, DryRun};
use crate::call::{batch, pipeline};
use crate::core_tools::search::{FoundTool, Match};
use crate::events::{ChannelOverflow, Listeners, MemoryOverflow, SpillOverflow};
use crate::output::spill::Owner;
use crate::suspension::{
    Answer, Grant, RedeemError, Resolution, StoreError, Suspension, SuspensionId, Waiting, redeem,
};
use crate::{BatchOptions, Executor};

pub use self::deadline::Deadline;
pub use self::options::TurnOptions;
pub(crate) use self::state::TurnState;
use self::state::view;
pub use self::stream::{AnswerStream, StreamItem};

/// A pinned view of the registry with everything that calls need.
///
/// The definitions and implementations of a turn stay consistent, even if new snapshots are
/// published.
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

impl Turn {
    pub(crate) fn new(executor: &Executor, options: TurnOptions) -> Self {
        Self::of(TurnState::new(executor, options))
    }

    /// Searches the [`definitions`](Self::definitions) by the words of a question, best match
    /// first, at most `limit`: in name, title, category, tags, description and parameters.
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

    /// Which words of a question match a tool of this turn, and where.
    pub fn matches(&self, question: &str, name: &str) -> Vec<Match> {
        match &self.state.view {
            None => self.state.snapshot.matches(question, name),
            Some(view) => view.matches(question, name),
        }
    }

    /// The definitions that a model may see, sorted by name; the order is stable.
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

    /// The names of available tools that are similar to an unknown name.
    pub fn near(&self, name: &str) -> Vec<&str> {
        self.state.near(name)
    }

    /// The generation of its snapshot; equal numbers mean equal definitions.
    pub fn generation(&self) -> u64 {
        self.state.snapshot.generation()
    }

    /// On whose behalf its calls are made: tenant and user from the host's values as one text;
    /// empty if the host names neither.
    pub fn identity(&self) -> &str {
        &self.state.identity
    }

    /// The owner of its calls and outputs: the identity, and the session if there is one.
    pub fn owner(&self) -> Owner {
        Owner::known(&self.state.identity, self.state.session.as_ref())
    }

    /// Whether the client of this turn may approve calls ([`TurnOptions::may_approve`]).
    pub fn may_approve(&self) -> bool {
        self.state.may_approve
    }

    /// The name of the client, or of the host, for the audit log.
    pub(crate) fn name(&self) -> &str {
        self.state.client.as_deref().unwrap_or(THE_HOST)
    }

    /// Answers a call. Every error is a failed result, and so is a call that waits
    /// (`requires_approval`); [`start`](Self::start) distinguishes the two.
    ///
    /// Dropping the future cancels the call and ends everything it started. Needs a tokio runtime
    /// with its timer.
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        nested::make(self, call, RootStart::alone()).await.result
    }

    /// Answers a call, or returns its suspension if it waits for approval, for a client, or for an
    /// answer.
    pub async fn start(&self, call: ToolCall) -> Answer {
        // The same call may be running already: the client asks for it by making it again.
        if let Some(earlier) = self.joined(&call).await {
            return earlier;
        }
        nested::make(self, call, RootStart::alone()).await.into_answer()
    }

    /// Resumes a suspended call, from this or another process. The grant is checked against the
    /// call, the current tool, and the identity of this turn. The call may be suspended again.
    ///
    /// It runs with the stored values of its caller's context, not with this turn's. If the client
    /// lost the right to make the call ([`CallerRights`](crate::approval::CallerRights)), it is
    /// `denied`, whatever the grant. While the host shuts down, a call that would go on is answered with
    /// `unavailable`; [`resolve`](Self::resolve) leaves it waiting.
    pub async fn resume(&self, grant: Grant) -> Answer {
        match self.state.resume_permit(grant.lets_go_on()) {
            Ok(permit) => self.resume_permitted(grant, permit).await,
            Err(error) => self.refused_answer(grant.suspension(), error),
        }
    }

    pub(crate) async fn resume_permitted(&self, grant: Grant, permit: ResumePermit) -> Answer {
        let shared = &self.state.shared;
        let refused = self.state.caller_now(grant.suspension()).err();
        let grant = match refused.clone().filter(|_| grant.lets_go_on()) {
            Some(reason) => grant.denied(reason),
            None => grant,
        };
        let within = grant.suspension().within();
        let is_kept_alive = within.is_some_and(|within| within.alive_in.is_some());
        if is_kept_alive {
            return match shared.live_calls.resume(self, grant, permit, refused).await {
                Ok(answer) => answer,
                Err((grant, permit)) => self.resume_gone(grant, permit).await,
            };
        }
        self.resume_again(grant, permit).await
    }

    /// Where a channel of this turn's calls stores unread events: in the executor's spill store,
    /// for the turn's identity, or in memory if there is none.
    pub fn overflow(&self) -> Box<dyn ChannelOverflow> {
        match &self.state.shared.spill {
            Some(store) => Box::new(SpillOverflow::new(Arc::clone(store), self.owner())),
            None => Box::new(MemoryOverflow::default()),
        }
    }

    /// The waiting calls that this turn may decide on, by any caller; `None` without the right to
    /// approve.
    pub fn approvals(&self) -> Option<Approvals> {
        self.may_approve().then(|| Approvals::of(self))
    }

    /// The same call, made earlier by the same caller, that still waits or whose outcome was not
    /// fetched. If this turn has joined `call` instead of making it again, that is `call` itself.
    /// Only calls of [joinable](TurnOptions::joinable) turns are found.
    pub async fn same_call(&self, call: &Suspension) -> Result<Option<Suspension>, StoreError> {
        if self.state.joined.get() == Some(call.id()) {
            return Ok(Some(call.clone()));
        }
        let Some(store) = &self.state.shared.suspensions else { return Ok(None) };
        store.same_call(call, self.state.shared.now()).await
    }

    /// This turn with other values, if they differ.
    pub(crate) fn with_values(&self, values: ContextValues) -> Self {
        if values == self.state.values {
            return self.clone();
        }
        Self::of(TurnState { values, ..self.state.copy() })
    }

    /// This turn on the current snapshot.
    pub(crate) fn on_the_current_snapshot(&self) -> Self {
        let state = &self.state;
        let snapshot = state.shared.registry.snapshot();
        if snapshot.generation() == state.snapshot.generation() {
            return self.clone();
        }
        let view = view(state.toolset.as_ref(), &snapshot, &state.shared);
        Self::of(TurnState { snapshot, view, ..state.copy() })
    }

    /// A turn for the caller of a suspended call, with this turn's tools and services. It has no
    /// approver, and only the executor's bus gets its events.
    ///
    /// It has the client's current rights if the host manages the client and the call may still be
    /// made, otherwise those stored with the call.
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
            toolset = now.toolset_of(caller).map_err(unreadable)?;
            scope = now.scope;
            may_approve &= now.may_approve == Some(true);
        }
        let listeners = Listeners::default();
        Ok(Self::of(TurnState {
            values,
            identity: suspension.identity().into(),
            files: ToolFiles::default(),
            session: suspension.session().map(Arc::from),
            view: view(toolset.as_ref(), &state.snapshot, &state.shared),
            toolset,
            narrowed_to: caller.narrowed_to().map_err(unreadable)?,
            scope,
            asks: None,
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

    /// Resolves a suspended call of this turn's identity and resumes it.
    ///
    /// Fails, and leaves the call waiting, if the executor stores no calls
    /// ([`RedeemError::Unknown`]), if this turn lacks the right to approve
    /// ([`RedeemError::NotAllowed`]), if the host is shutting down
    /// ([`RedeemError::ShuttingDown`]), or as [`redeem`] describes.
    pub async fn resolve(
        &self,
        id: &SuspensionId,
        resolution: Resolution,
    ) -> Result<Answer, RedeemError> {
        let shared = &self.state.shared;
        let store = shared.suspensions.as_ref().ok_or(RedeemError::Unknown)?;
        resolution.check_right(self.may_approve())?;
        let identity = &self.state.identity;
        let mut permit = None;
        if let Some(found) = self.suspended(id).await? {
            self.state.check_here(&found).await?;
            permit = Some(self.state.permit_for(&resolution)?);
            if let Some(arguments) = resolution.changed_arguments() {
                let checked = Box::pin(self.check_changed(&found, arguments)).await;
                checked.map_err(RedeemError::Arguments)?;
            }
        }
        let grant =
            redeem(store.as_ref(), id, identity, shared.now(), resolution, self.name()).await?;
        Ok(match permit {
            Some(permit) => Box::pin(self.resume_permitted(grant, permit)).await,
            None => Box::pin(self.resume(grant)).await,
        })
    }

    /// Checks changed arguments of a call that waits for approval like a model's.
    pub(crate) async fn check_changed(
        &self,
        waiting: &Suspension,
        arguments: &str,
    ) -> Result<(), ToolError> {
        if !matches!(waiting.waiting(), Waiting::Approval { .. }) {
            return Ok(());
        }
        let call = ToolCall::new(waiting.call_id(), waiting.tool(), arguments);
        match self.as_caller(waiting)?.dry_run(call).await?.verdict {
            Verdict::Deny { message, .. } => Err(refused(&message)),
            _ => Ok(()),
        }
    }

    /// Cancels all calls of this turn and its clones, including future ones: their work is ended,
    /// and each is answered with kind `cancelled`. To cancel a single call, drop its future.
    pub fn cancel(&self) {
        self.state.cancellation.set();
    }

    /// Cancels all calls like [`cancel`](Self::cancel), because the client lost its rights: the
    /// answers and the audit log state that.
    pub fn revoke(&self) {
        self.state.cancellation.revoke();
    }

    /// Checks a call without asking anybody or running anything: what the tool would get and do,
    /// the policy's verdict, and whether there is a cached answer. Fails like the call would, with
    /// every problem of its arguments.
    ///
    /// Nothing is counted, recorded or published, and no middleware runs. The own check of a tool
    /// with an instance per call is skipped, because it needs an instance.
    pub async fn dry_run(&self, call: ToolCall) -> Result<DryRun, ToolError> {
        pipeline::dry_run(self, call).await
    }

    /// Answers several calls, in their order; they run concurrently if they allow it.
    pub async fn call_batch(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        self.call_batch_with(calls, BatchOptions::default()).await
    }

    /// As [`call_batch`](Self::call_batch), with options for this batch.
    pub async fn call_batch_with(
        &self,
        calls: Vec<ToolCall>,
        options: BatchOptions,
    ) -> Vec<ToolResult> {
        let answered = batch::run(self, calls, options, &|_| {}).await;
        answered.into_iter().map(|answered| answered.result).collect()
    }

    /// As [`call_batch`](Self::call_batch), with the suspensions of calls that wait.
    pub async fn start_batch(&self, calls: Vec<ToolCall>) -> Vec<Answer> {
        self.start_batch_with(calls, BatchOptions::default()).await
    }

    /// As [`start_batch`](Self::start_batch), with options for this batch.
    pub async fn start_batch_with(
        &self,
        calls: Vec<ToolCall>,
        options: BatchOptions,
    ) -> Vec<Answer> {
        let answered = batch::run(self, calls, options, &|_| {}).await;
        answered.into_iter().map(Answered::into_answer).collect()
    }

    /// As [`start_batch`](Self::start_batch), and tells each result as soon as its call has ended. The answer of the
    /// batch can be shorter: results that are too long together are cut when all are there.
    pub async fn start_batch_telling(
        &self,
        calls: Vec<ToolCall>,
        on_result: &(dyn Fn(&ToolResult) + Send + Sync),
    ) -> Vec<Answer> {
        let answered = batch::run(self, calls, BatchOptions::default(), on_result).await;
        answered.into_iter().map(Answered::into_answer).collect()
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("generation", &self.generation()).finish_non_exhaustive()
    }
}
