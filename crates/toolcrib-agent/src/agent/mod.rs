//! An agent: a model, tools, and the limits within which they work together.

mod answer;
mod asking;
mod builder;
mod calls;
mod cancelling;
mod compaction;
mod control;
mod driver;
mod error;
mod event;
mod masked;
mod preview;
mod report;
mod request;
mod requests;
mod steering;
mod sub_agents;
mod telemetry;
mod waiting;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use toolcrib_core::clock::{Clock, Timestamp};
use toolcrib_core::run::{Journal, RunCursor, RunId, Seq};
use toolcrib_core::suspension::{Resolution, StoreError, Submission, SuspensionId};
use toolcrib_core::{Executor, Toolset, Turn, TurnOptions};
use toolcrib_tool::{BoxFuture, ToolDefinition};
use toolcrib_wire::model::Item;

use crate::budget::Budget;
use crate::compaction::Compaction;
use crate::entry::{FORMAT, ShownEvents};
use crate::journal;
use crate::model::ModelClient;
use crate::retry::RetryPolicy;
use crate::run::AgentRun;
use crate::sub_agents::tools::{ATTEMPT_COMPLETION, MULTI_AGENT, NEW_TASK, new_task_of};
use crate::sub_agents::{ParentCall, SubAgentLimits, is_group, tasks};
use crate::{JournalEntry, JournalRow, LostCalls};
use driver::Driver;
use waiting::CallUpdate;

pub use builder::AgentBuilder;
pub use control::RunControl;
pub use error::AgentError;
pub use event::{AgentEvent, EventCounter, EventListener};
pub use report::RunReport;
pub use steering::{SteerError, Steering};

/// An agent: a model, the tools of an executor, and the limits within which they work together. Cloning it is cheap.
///
/// It works on one identity's behalf, that of its [turn options](AgentBuilder::turn_options), and knows only that
/// identity's runs.
#[derive(Clone)]
pub struct Agent(Arc<AgentState>);

#[derive(Clone)]
struct AgentState {
    executor: Executor,
    /// The model, and those that are asked when the ones before them fail. Never empty.
    models: Vec<Arc<dyn ModelClient>>,
    journal: Arc<dyn Journal>,
    options: TurnOptions,
    /// The toolset of whoever begins runs, without the agent's own.
    caller_toolset: Option<Toolset>,
    /// Whether it works for clients of a server, who know only runs that clients began.
    for_clients: bool,
    name: String,
    instructions: Option<String>,
    budget: Budget,
    retry: RetryPolicy,
    compaction: Compaction,
    clock: Arc<dyn Clock>,
    poll_tools: Vec<String>,
    poll_every: Duration,
    listener: Option<Arc<EventListener>>,
    /// Counts the events of its runs that a client was shown.
    counter: Option<Arc<EventCounter>>,
    /// The agents that `new_task` can start.
    agents: BTreeMap<String, Agent>,
    sub_agents: SubAgentLimits,
    /// How many runs there are above its own.
    depth: u32,
    /// How long one request may take.
    request_timeout: Option<Duration>,
    /// Runs `attempt_completion`, if its result has a schema.
    completion: Option<Executor>,
    /// Whether the model is shown the same tools as long as a process drives a run.
    pins_tools: bool,
    /// What happens to calls of the runs that it begins whose outcome is unknown.
    lost_calls: LostCalls,
    /// Notes about the runs that it begins.
    metadata: BTreeMap<String, String>,
    /// The runs that are being driven. The journal's claim keeps other processes away, but not this one.
    driven: Arc<Mutex<HashSet<RunId>>>,
}

/// What somebody says to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInput(Vec<Item>);

impl From<AgentInput> for JournalEntry {
    fn from(AgentInput(items): AgentInput) -> Self {
        Self::Input { items }
    }
}

impl From<&str> for AgentInput {
    fn from(text: &str) -> Self {
        Self(vec![Item::user(text)])
    }
}

impl From<String> for AgentInput {
    fn from(text: String) -> Self {
        Self(vec![Item::user(text)])
    }
}

impl From<Item> for AgentInput {
    fn from(item: Item) -> Self {
        Self(vec![item])
    }
}

impl From<Vec<Item>> for AgentInput {
    fn from(items: Vec<Item>) -> Self {
        Self(items)
    }
}

impl Agent {
    /// Starts to build an agent that has all tools of `executor`.
    pub fn builder(executor: Executor, model: Arc<dyn ModelClient>) -> AgentBuilder {
        AgentBuilder::new(executor, model)
    }

    /// Begins a run and drives it until it has ended, is paused, or waits for somebody.
    ///
    /// Dropping the future has the effect of a crash: requests and calls are cancelled, and the run can be
    /// [resumed](Self::resume) from its journal.
    pub async fn run(&self, input: impl Into<AgentInput>) -> Result<RunReport, AgentError> {
        self.run_with(input, &RunControl::new()).await
    }

    /// As [`run`](Self::run), under control of somebody else.
    pub async fn run_with(
        &self,
        input: impl Into<AgentInput>,
        control: &RunControl,
    ) -> Result<RunReport, AgentError> {
        let id = RunId::random()?;
        let driver = Driver::start(&self.0, id, None, input.into().into(), control).await?;
        driver.drive().await
    }

    /// Begins a run without driving it: it goes on when it is [resumed](Self::resume).
    pub async fn begin(&self, input: impl Into<AgentInput>) -> Result<RunReport, AgentError> {
        let (id, control) = (RunId::random()?, RunControl::new());
        let driver = Driver::start(&self.0, id, None, input.into().into(), &control).await?;
        driver.release(Ok(())).await
    }

    /// Continues a run: one that was paused, whose calls were decided on, or whose process has ended. Returns at once
    /// if it has ended or waits.
    ///
    /// Calls that ran when their process ended run again only if their tool is read-only or idempotent. The model is
    /// told about all others that their outcome is unknown.
    pub async fn resume(&self, run: &RunId) -> Result<RunReport, AgentError> {
        self.resume_with(run, &RunControl::new()).await
    }

    /// As [`resume`](Self::resume), under control of somebody else.
    pub async fn resume_with(
        &self,
        run: &RunId,
        control: &RunControl,
    ) -> Result<RunReport, AgentError> {
        let agent = self.0.for_run(run).await?;
        let driver = Driver::load(&agent, run, control).await?;
        Box::pin(driver.take_over_and_drive()).await
    }

    /// Says something to a run and continues it, even if it had ended. Its budget begins anew then. Fails while calls
    /// have no answer.
    pub async fn send(
        &self,
        run: &RunId,
        input: impl Into<AgentInput>,
        control: &RunControl,
    ) -> Result<RunReport, AgentError> {
        let agent = self.0.for_run(run).await?;
        let driver = Driver::load(&agent, run, control).await?;
        Box::pin(driver.input_and_drive(input.into().0)).await
    }

    /// Says something to a run that nobody drives and that has not ended, whether its calls wait or not, without
    /// continuing it. The model reads it with the next request. To tell a run something that is being driven, use its
    /// [`RunControl`].
    pub async fn steer(
        &self,
        run: &RunId,
        input: impl Into<AgentInput>,
    ) -> Result<RunReport, AgentError> {
        let agent = self.0.for_run(run).await?;
        let driver = Driver::load(&agent, run, &RunControl::new()).await?;
        Box::pin(driver.steer(input.into().0)).await
    }

    /// Resolves a waiting call of a run or of its sub-agents, which runs it if it is approved, and records its answer.
    /// The run continues when it is [resumed](Self::resume).
    pub async fn resolve(
        &self,
        run: &RunId,
        call: &SuspensionId,
        resolution: Resolution,
    ) -> Result<RunReport, AgentError> {
        self.resolve_with(run, call, resolution, &RunControl::new()).await
    }

    /// As [`resolve`](Self::resolve), under control of somebody else: if the run is stopped meanwhile, the call is
    /// cancelled and answered. The run itself is paused or cancelled when it is continued under the same control.
    pub async fn resolve_with(
        &self,
        run: &RunId,
        call: &SuspensionId,
        resolution: Resolution,
        control: &RunControl,
    ) -> Result<RunReport, AgentError> {
        let before = self.load(run).await?;
        let owner = before.run_of(call).map_or(run, RunReport::id);
        let update = CallUpdate::Resolve(call.clone(), Box::new(resolution));
        self.update(run, owner, update, control).await
    }

    /// Submits the outputs of all calls of a run and its sub-agents that wait for the client.
    pub async fn submit(
        &self,
        run: &RunId,
        outputs: Vec<Submission>,
    ) -> Result<RunReport, AgentError> {
        let control = RunControl::new();
        let before = self.load(run).await?;
        let for_client = |one: &&RunReport| one.run().waits_for_client();
        let owners: Vec<&RunReport> = before.all().into_iter().filter(for_client).collect();
        if owners.len() < 2 {
            let owner = owners.first().map_or(run, |owner| owner.id());
            return self.update(run, owner, CallUpdate::Submit(outputs), &control).await;
        }
        let mut left = outputs;
        for owner in &owners[1..] {
            let is_its = |one: &Submission| owner.run().has_call(&one.call_id);
            let (its, others) = left.into_iter().partition(is_its);
            left = others;
            self.update(run, owner.id(), CallUpdate::Submit(its), &control).await?;
        }
        self.update(run, owners[0].id(), CallUpdate::Submit(left), &control).await
    }

    /// Updates waiting calls of a run or of one of its sub-agents.
    async fn update(
        &self,
        run: &RunId,
        owner: &RunId,
        update: CallUpdate,
        control: &RunControl,
    ) -> Result<RunReport, AgentError> {
        let agent = self.0.for_run(owner).await?;
        // What is said to the run is not meant for its sub-agent.
        let control = if owner == run { control.clone() } else { control.for_child() };
        let driver = Driver::load(&agent, owner, &control).await?;
        let report = Box::pin(driver.update(update)).await?;
        if owner == run { Ok(report) } else { self.load(run).await }
    }

    /// Asks the process that drives a run to cancel it, which it does within a second, or when its current work lets it.
    /// The request is kept: if that process ends before, whoever continues the run cancels it. Fails if the run is over.
    pub async fn request_cancel(
        &self,
        run: &RunId,
        reason: impl Into<String>,
    ) -> Result<(), AgentError> {
        let state = self.0.load(run).await?;
        let not_now = |problem| AgentError::NotNow { run: run.clone(), problem };
        if state.parent().is_some() {
            return Err(not_now("is a sub-agent's: cancel the run that started it"));
        }
        let reason = self.0.executor.mask().text(reason.into());
        let asked = self.0.journal.ask_to_cancel(run, &reason).await?;
        if asked { Ok(()) } else { Err(not_now("is over")) }
    }

    /// Cancels a run that nobody drives, with its waiting calls. To cancel one that is being driven, use its
    /// [`RunControl`], or [`request_cancel`](Self::request_cancel) if another process drives it.
    pub async fn cancel(
        &self,
        run: &RunId,
        reason: impl Into<String>,
    ) -> Result<RunReport, AgentError> {
        let control = RunControl::new();
        control.cancel(reason);
        let agent = self.0.for_run(run).await?;
        let driver = Driver::load(&agent, run, &control).await?;
        Box::pin(driver.drive()).await
    }

    /// Whether the prices of all its models are known, so that a limit on cost counts.
    pub fn has_prices(&self) -> bool {
        self.0.models.iter().all(|model| model.prices().is_some())
    }

    /// A run as it is stored now.
    pub async fn load(&self, run: &RunId) -> Result<RunReport, AgentError> {
        let state = self.0.load(run).await?;
        self.0.report(run.clone(), state).await
    }

    /// Up to `limit` rows of a run after row number `after`, in order, [for readers](JournalRow::for_readers); none if
    /// there are no more.
    pub async fn rows(
        &self,
        run: &RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<(Seq, JournalRow)>, AgentError> {
        let journal = &*self.0.journal;
        let first = journal::read(journal, run, 0, 1).await?.ok_or(AgentError::Unknown)?;
        let is_own = first.first().is_some_and(|(_, row)| self.0.may_know(row));
        let rows = journal::read(journal, run, after, limit).await?;
        let rows = rows.filter(|_| is_own).ok_or(AgentError::Unknown)?;
        Ok(rows.into_iter().map(|(seq, row)| (seq, row.for_readers())).collect())
    }

    /// Up to `limit` runs of agents of this identity, oldest first, from the beginning or after a cursor, without those
    /// of sub-agents. Batches of calls, which have the same journals, are passed over.
    pub async fn runs(
        &self,
        after: Option<&RunCursor>,
        limit: usize,
    ) -> Result<Vec<RunCursor>, AgentError> {
        self.list(after, limit, false).await
    }

    /// As [`runs`](Self::runs), with those of sub-agents.
    pub async fn all_runs(
        &self,
        after: Option<&RunCursor>,
        limit: usize,
    ) -> Result<Vec<RunCursor>, AgentError> {
        self.list(after, limit, true).await
    }

    async fn list(
        &self,
        after: Option<&RunCursor>,
        limit: usize,
        with_sub_agents: bool,
    ) -> Result<Vec<RunCursor>, AgentError> {
        let (journal, identity) = (&*self.0.journal, self.0.identity());
        let (mut runs, mut last) = (Vec::new(), after.cloned());
        while runs.len() < limit {
            let wanted = limit - runs.len();
            let page = journal.list(&identity, last.as_ref(), wanted).await?;
            let is_last = page.len() < wanted;
            last = page.last().cloned();
            for run in page {
                match journal::read(journal, run.id(), 0, 1).await {
                    Ok(Some(first)) => {
                        let is_listed = |(_, row): &(Seq, JournalRow)| {
                            (with_sub_agents || row.parent().is_none()) && self.0.may_know(row)
                        };
                        runs.extend(first.iter().all(is_listed).then_some(run));
                    }
                    // It is no agent's, or was removed since it was listed.
                    Ok(None) | Err(StoreError::Expired) => {}
                    Err(error @ StoreError::Corrupt { .. }) => {
                        tracing::warn!(%error, "a run was passed over");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if is_last {
                break;
            }
        }
        Ok(runs)
    }
}

impl Agent {
    /// The names of the tools that its model is offered now, sorted.
    pub fn tools(&self) -> Vec<String> {
        let turn = self.0.executor.turn(self.0.options_with_scope());
        let offered = self.0.definitions(&turn);
        offered.iter().map(|definition| definition.name().to_owned()).collect()
    }

    /// Its name and the first line of its instructions.
    fn in_one_line(&self) -> (&str, &str) {
        let lines = self.0.instructions.as_deref().unwrap_or_default().lines();
        (&self.0.name, lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
    }
}

impl AgentState {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A turn of a run, on the current tools.
    fn turn(&self, run: &RunId, time_left: Option<Duration>) -> Turn {
        self.executor.turn(self.turn_options(run, time_left))
    }

    fn turn_options(&self, run: &RunId, time_left: Option<Duration>) -> TurnOptions {
        let options = self.options_with_scope().session(run.as_str());
        match time_left {
            Some(left) => options.deadline(left),
            None => options,
        }
    }

    /// The tools that the model is offered.
    fn definitions(&self, turn: &Turn) -> Vec<Arc<ToolDefinition>> {
        let starts_others = self.depth < self.sub_agents.max_depth;
        let is_offered = |one: &&Arc<ToolDefinition>| match one.name() {
            MULTI_AGENT => starts_others,
            NEW_TASK => starts_others && !self.agents.is_empty(),
            ATTEMPT_COMPLETION => self.completion.is_none(),
            _ => true,
        };
        let others = turn.definitions().iter().filter(is_offered);
        let others = others.map(|one| match one.name() {
            NEW_TASK => new_task_of(one, self.agents.values().map(Agent::in_one_line)),
            _ => Arc::clone(one),
        });
        let Some(own) = &self.completion else { return others.collect() };
        let snapshot = own.registry().snapshot();
        let own = Toolset::new().view(&snapshot);
        let mut all: Vec<_> = others.chain(own.definitions().iter().cloned()).collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// The agent that drives a run: this one, or that of a sub-agent of its runs.
    fn for_run<'a>(
        self: &'a Arc<Self>,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Arc<Self>, AgentError>> {
        Box::pin(async move {
            let first =
                journal::read(&*self.journal, run, 0, 1).await?.ok_or(AgentError::Unknown)?;
            let (_, first) = first.first().ok_or(AgentError::Unknown)?;
            let Some(parent) = first.parent() else {
                if !self.may_know(first) {
                    return Err(AgentError::Unknown);
                }
                return Ok(first
                    .toolset()
                    .map_or_else(|| Arc::clone(self), |toolset| Arc::new(self.within(toolset))));
            };
            let above = self.for_run(&parent.run).await?;
            Ok(Arc::new(above.for_child(parent)?))
        })
    }

    /// Whether a run has begun.
    async fn knows(&self, run: &RunId) -> Result<bool, AgentError> {
        Ok(journal::read(&*self.journal, run, 0, 1).await?.is_some())
    }

    /// Where a run stands, with the runs of sub-agents for which its calls wait.
    fn report(&self, id: RunId, run: AgentRun) -> BoxFuture<'_, Result<RunReport, AgentError>> {
        Box::pin(async move {
            let depth = run.parent().map_or(0, |parent| parent.depth);
            let mut sub_agents = Vec::new();
            for call in run.waiting().filter(|call| is_group(call)) {
                for task in tasks(&id, depth, call)? {
                    let has_ended = run.child_end(&task.parent.call, task.parent.index).is_some();
                    if !has_ended && self.knows(&task.run).await? {
                        let child = self.load(&task.run).await?;
                        sub_agents.push(self.report(task.run, child).await?);
                    }
                }
            }
            Ok(RunReport::new(id, run, sub_agents))
        })
    }

    async fn load(&self, run: &RunId) -> Result<AgentRun, AgentError> {
        let rows = journal::read_all(&*self.journal, run).await?.ok_or(AgentError::Unknown)?;
        let state = AgentRun::fold(rows);
        let state = state.map_err(|source| AgentError::Corrupt { run: run.clone(), source })?;
        // Others' runs do not exist for this identity.
        let is_own = state.identity() == self.identity();
        let is_known = is_own && (state.is_for_client() || !self.for_clients);
        if is_known { Ok(state) } else { Err(AgentError::Unknown) }
    }

    /// Whether the run that this row begins exists for whoever it works for.
    fn may_know(&self, first: &JournalRow) -> bool {
        first.begun_by().is_some_and(|(identity, for_client)| {
            identity == self.identity() && (for_client || !self.for_clients)
        })
    }

    /// This agent, limited to the toolset with which a run began.
    fn within(&self, toolset: &Toolset) -> Self {
        let options = self.options.clone().narrow(toolset);
        Self { options, ..self.clone() }
    }

    /// On whose behalf it works.
    fn identity(&self) -> String {
        self.executor.turn(self.options.clone()).identity().to_owned()
    }

    fn show(&self, event: &AgentEvent<'_>) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// The first row of a run.
    fn started(&self, id: &RunId, parent: Option<Box<ParentCall>>) -> JournalEntry {
        JournalEntry::Started {
            format: FORMAT,
            identity: self.turn(id, None).identity().to_owned(),
            agent: self.name.clone(),
            budget: self.budget.clone(),
            poll_tools: self.poll_tools.clone(),
            // A sub-agent's run has the limits of the run that started it.
            toolset: self.caller_toolset.clone().filter(|_| parent.is_none()),
            parent,
            for_client: self.for_clients,
            metadata: self.metadata.clone(),
            lost_calls: self.lost_calls,
        }
    }

    /// What a client was shown, if that is counted.
    fn shown(&self) -> Option<ShownEvents> {
        self.counter.as_ref().map(|counter| counter())
    }

    /// Marks a run as driven by this process until the guard is dropped.
    fn drive(self: &Arc<Self>, run: &RunId) -> Result<DrivenRun, AgentError> {
        let mut driven = self.driven.lock().unwrap_or_else(PoisonError::into_inner);
        if !driven.insert(run.clone()) {
            let problem = "is being driven already; use its control";
            return Err(AgentError::NotNow { run: run.clone(), problem });
        }
        Ok(DrivenRun { agent: Arc::clone(self), run: run.clone() })
    }
}

/// A run that this process drives.
struct DrivenRun {
    agent: Arc<AgentState>,
    run: RunId,
}

impl Drop for DrivenRun {
    fn drop(&mut self) {
        self.agent.driven.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.run);
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.0.name).finish_non_exhaustive()
    }
}
