//! Drives a run: does what comes next in it, and writes what came of that.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::run::{Claim, Run, RunError, RunId};
use toolcrib_core::suspension::{Answer as CallAnswer, Resolution, Submission, SuspensionId};
use toolcrib_core::{Toolset, Turn};
use toolcrib_tool::{CallId, ToolCall, ToolResult};
use toolcrib_wire::model::{Answer, DecoderSettings, Item, ModelEvent, ToolChoice};
use tracing::Instrument as _;

use super::children::CALL_ENDED;
use super::control::{RunControl, Stop};
use super::event::AgentEvent;
use super::masked::{MaskedAnswer, masked_row};
use super::preview::{Preview, Previews};
use super::request::SentConversation;
use super::{AgentError, AgentState, DrivenRun, RunReport, telemetry};
use crate::budget::Limit;
use crate::children::tools::ATTEMPT_COMPLETION;
use crate::children::{ParentCall, is_group};
use crate::entry::{FORMAT, JournalEntry, JournalRow, PlannedCall, StartedCall};
use crate::journal::entry_of;
use crate::model::{AttemptError, AttemptErrorKind};
use crate::run::{AgentRun, FailureReason, Outcome, RunState, Step, lost};

/// Drives one run.
pub(super) struct Driver<'a> {
    pub(super) agent: &'a Arc<AgentState>,
    pub(super) id: RunId,
    pub(super) run: AgentRun,
    claim: Claim,
    pub(super) control: RunControl,
    /// The position of the model in use.
    pub(super) model: usize,
    /// The conversation as it was sent last.
    sent: Option<SentConversation>,
    /// The bytes of instructions and tools, as they were sent last.
    pub(super) head: u64,
    /// Whether the model can read outputs that were shortened, once that is known.
    pub(super) reads_outputs: Option<bool>,
    /// Old outputs that were stored for a compaction that is not recorded yet.
    pub(super) stored: BTreeMap<CallId, String>,
    /// The turn of the current round.
    turn: Option<Turn>,
    /// When each tool for polling was called last.
    pub(super) polled: HashMap<Arc<str>, Instant>,
    _driven: DrivenRun,
}

/// What is done with the waiting calls of a run.
pub(super) enum CallUpdate {
    /// The answers of calls that others have decided on are taken over, and expired calls end. Calls that wait for
    /// sub-agents are left out, unless somebody has decided on them.
    TakeOver { with_groups: bool },
    /// A call is resolved.
    Resolve(SuspensionId, Box<Resolution>),
    /// The client's outputs arrive.
    Submit(Vec<Submission>),
    /// All waiting calls are cancelled.
    Cancel,
}

/// How an attempt to ask the model ended.
enum Attempt {
    Answered(Box<Answer>),
    Failed(AttemptError),
    Stopped,
    TimeUp,
}

impl<'a> Driver<'a> {
    /// Begins a run.
    pub(super) async fn start(
        agent: &'a Arc<AgentState>,
        id: RunId,
        parent: Option<Box<ParentCall>>,
        items: Vec<Item>,
        control: &RunControl,
    ) -> Result<Self, AgentError> {
        let driven = agent.drive(&id)?;
        let identity = agent.turn(&id, None).identity().to_owned();
        let started = JournalEntry::Started {
            format: FORMAT,
            identity,
            agent: agent.name.clone(),
            budget: agent.budget.clone(),
            poll_tools: agent.poll_tools.clone(),
            parent,
        };
        let (at, mask) = (agent.now(), agent.executor.mask());
        let corrupt = |source| AgentError::Corrupt { run: id.clone(), source };
        let first = JournalRow { at, entry: started };
        let (second, body) =
            masked_row(&mask, JournalRow { at, entry: JournalEntry::Input { items } })?;
        let mut run = AgentRun::begin(first.clone()).map_err(corrupt)?;
        let entries = [
            entry_of(None, &first, serde_json::to_value(&first)?),
            entry_of(Some(&run), &second, body),
        ];
        run.apply(second.clone()).map_err(corrupt)?;
        let rows = [first, second];
        agent.journal.append(&id, 0, &entries, None).await?;
        let claim = agent.journal.claim(&id).await?.ok_or(AgentError::Unknown)?;
        for (seq, row) in (1..).zip(&rows) {
            agent.show(&AgentEvent::Recorded { run: &id, seq, entry: &row.entry });
        }
        let control = control.clone();
        Ok(Self {
            agent,
            id,
            run,
            claim,
            control,
            model: 0,
            sent: None,
            head: 0,
            reads_outputs: None,
            stored: BTreeMap::new(),
            turn: None,
            polled: HashMap::new(),
            _driven: driven,
        })
    }

    /// Loads and claims a run.
    pub(super) async fn load(
        agent: &'a Arc<AgentState>,
        id: &RunId,
        control: &RunControl,
    ) -> Result<Self, AgentError> {
        let guard = agent.drive(id)?;
        // Whose run it is has to be known before it is claimed, and its last row after that.
        agent.load(id).await?;
        let claim = agent.journal.claim(id).await?.ok_or(AgentError::Unknown)?;
        let run = agent.load(id).await?;
        let (id, control) = (id.clone(), control.clone());
        let mut driver = Self {
            agent,
            id,
            run,
            claim,
            control,
            model: 0,
            sent: None,
            head: 0,
            reads_outputs: None,
            stored: BTreeMap::new(),
            turn: None,
            polled: HashMap::new(),
            _driven: guard,
        };
        let begun = driver.begin_again().await;
        if begun.is_err() {
            agent.journal.release(&driver.claim).await?;
        }
        begun.map(|()| driver)
    }

    /// Goes on where a process has ended.
    async fn begin_again(&mut self) -> Result<(), AgentError> {
        if !self.run.is_active() {
            return Ok(());
        }
        self.append(vec![JournalEntry::Resumed]).await?;
        self.adopt_suspensions().await
    }

    /// Ends a pause, takes over what others have decided, and drives the run as [`drive`](Self::drive) does.
    pub(super) async fn take_over_and_drive(mut self) -> Result<RunReport, AgentError> {
        match self.take_over().await {
            Ok(()) => self.drive().await,
            Err(error) => self.release(Err(error)).await,
        }
    }

    /// Adds what somebody says and drives the run.
    pub(super) async fn input_and_drive(
        mut self,
        items: Vec<Item>,
    ) -> Result<RunReport, AgentError> {
        match self.input(items).await {
            Ok(()) => self.drive().await,
            Err(error) => self.release(Err(error)).await,
        }
    }

    async fn take_over(&mut self) -> Result<(), AgentError> {
        if self.run.state() == RunState::Paused {
            self.append(vec![JournalEntry::Resumed]).await?;
        }
        if self.run.waiting().next().is_some() {
            self.apply_update(CallUpdate::TakeOver { with_groups: false }).await?;
        }
        Ok(())
    }

    async fn input(&mut self, items: Vec<Item>) -> Result<(), AgentError> {
        if !self.run.takes_input() {
            let problem = "has calls without an answer; resolve or cancel them first";
            return Err(AgentError::NotNow { run: self.id.clone(), problem });
        }
        self.append(vec![JournalEntry::Input { items }]).await
    }

    /// Updates waiting calls and releases the run.
    pub(super) async fn update(mut self, update: CallUpdate) -> Result<RunReport, AgentError> {
        if let CallUpdate::Resolve(call, _) = &update {
            let ended = self.cancel_children(CALL_ENDED, Some(call)).await;
            if ended.is_err() {
                return self.release(ended).await;
            }
        }
        let updated = self.apply_update(update).await;
        self.release(updated).await
    }

    /// Drives the run until it has ended, is paused or waits, and releases it.
    pub(super) async fn drive(mut self) -> Result<RunReport, AgentError> {
        let span = telemetry::invoke_agent(&self.agent.name, &self.id);
        let driven = self.steps().instrument(span).await;
        self.release(driven).await
    }

    pub(super) async fn release(self, so: Result<(), AgentError>) -> Result<RunReport, AgentError> {
        let released = self.agent.journal.release(&self.claim).await;
        so.and(released.map_err(AgentError::from))?;
        self.agent.report(self.id, self.run).await
    }

    async fn steps(&mut self) -> Result<(), AgentError> {
        loop {
            if self.run.takes_input() && self.run.outcome().is_none() {
                let items = self.control.take_input();
                if !items.is_empty() {
                    self.append(vec![JournalEntry::Input { items }]).await?;
                }
            }
            let limits = self.context_limits();
            let step = self.run.next_within(Some(&limits));
            let is_at_rest = matches!(step, Step::Append(_) | Step::Over);
            if !is_at_rest && let Some(stop) = self.control.stop() {
                return self.stop(stop).await;
            }
            match step {
                Step::Append(entries) => self.append(entries).await?,
                Step::Ask { round, attempt, last } => self.ask(round, attempt, last).await?,
                Step::Compact { round, attempt, plan } => {
                    Box::pin(self.compact(round, attempt, plan)).await?;
                }
                Step::Call(calls) => self.call(calls).await?,
                Step::Wait => {
                    if !self.drive_children().await? && self.control.stop().is_none() {
                        return Ok(());
                    }
                }
                Step::Paused | Step::Over => return Ok(()),
            }
        }
    }

    async fn ask(
        &mut self,
        round: u32,
        attempt: u32,
        last: Option<Limit>,
    ) -> Result<(), AgentError> {
        let agent = self.agent;
        let time_left = self.time_left();
        let turn = agent.turn(&self.id, time_left);
        let model = Arc::clone(&agent.models[self.model]);
        let sent = self.sent.take();
        let sent = SentConversation::of(sent, agent, &*model, &self.id, &self.run, &turn)?;
        self.head = sent.head_bytes();
        let choice = match (last, &agent.completion) {
            (Some(_), _) => ToolChoice::None,
            // The result is that of a call.
            (None, Some(_)) => ToolChoice::Required,
            (None, None) => ToolChoice::Auto,
        };
        let request = sent.request(&choice)?;
        let source = model.head().source;
        let name = source.to_string();
        let requested = JournalEntry::ModelRequested { round, attempt, model: name, last };
        self.append(vec![requested]).await?;

        let mut settings = DecoderSettings::new(source);
        settings.call_id_prefix = format!("call_{round}");
        settings.taken_call_ids = Arc::clone(self.run.call_ids());
        let span = telemetry::chat(&model.head());
        let mask = agent.executor.mask();
        let mut masked = MaskedAnswer::new(&mask);
        let mut previews = Previews::new(&turn, sent.tool_names());
        let mut show =
            |event: ModelEvent| {
                let preview = previews.after(&event);
                let preview = preview.map(|Preview { id: call, tool, status }| {
                    AgentEvent::Preview { run: &self.id, call, tool, status }
                });
                agent.show(&AgentEvent::Model { run: &self.id, event });
                if let Some(preview) = preview {
                    agent.show(&preview);
                }
            };
        let attempt = {
            let mut events = |event| masked.events(event).into_iter().for_each(&mut show);
            tokio::select! {
                answer = model.ask(request, settings, &mut events).instrument(span.clone()) => match answer {
                    Ok(answer) => Attempt::Answered(Box::new(answer)),
                    Err(error) => Attempt::Failed(error),
                },
                () = self.control.stopped() => Attempt::Stopped,
                () = sleep_for(time_left) => Attempt::TimeUp,
                () = sleep_for(agent.request_timeout) => Attempt::Failed(too_slow(agent.request_timeout)),
            }
        };
        let lose = |reason: String, began: bool, shown_chars: u64| JournalEntry::ModelLost {
            reason,
            began,
            shown_chars,
            context_exceeded: false,
        };
        match attempt {
            Attempt::Answered(answer) => {
                masked.finish().into_iter().for_each(show);
                telemetry::answered(&span, &answer);
                let names = sent.names(&answer);
                let Answer { items, usage, stop, .. } = *answer;
                let prices = model.prices();
                let cost = prices.zip(usage).map(|(prices, usage)| prices.cost(&usage));
                (self.sent, self.turn) = (Some(sent), Some(turn));
                let answered = JournalEntry::ModelAnswered { items, usage, cost, stop, names };
                self.append(vec![answered]).await
            }
            Attempt::Failed(error) => {
                telemetry::failed(&span, &error);
                let shown = masked.shown;
                self.sent = Some(sent);
                self.append(vec![JournalEntry::ModelLost {
                    reason: error.to_string(),
                    began: error.began,
                    shown_chars: shown,
                    context_exceeded: error.is_context_exceeded(),
                }])
                .await?;
                if error.is_context_exceeded() {
                    // The run decides whether the conversation can become shorter.
                    return Ok(());
                }
                self.retry_later(&error).await
            }
            Attempt::Stopped => {
                let reason = "the run was stopped".to_owned();
                self.append(vec![lose(reason, masked.shown > 0, masked.shown)]).await
            }
            Attempt::TimeUp => {
                let reason = "the time of the run is used up".to_owned();
                let outcome = Outcome::over_budget(Limit::Time);
                let entries = vec![
                    lose(reason, masked.shown > 0, masked.shown),
                    JournalEntry::Finished { outcome },
                ];
                self.append(entries).await
            }
        }
    }

    /// Waits until the next attempt, or ends the run if there is none.
    async fn retry_later(&mut self, error: &AttemptError) -> Result<(), AgentError> {
        let wait = self.agent.retry.wait(self.run.lost_attempts(), error, jitter());
        let Some(wait) = wait else {
            if error.may_succeed_later() && self.model + 1 < self.agent.models.len() {
                self.model += 1;
                self.sent = None;
                return Ok(());
            }
            let reason = FailureReason::Model;
            let outcome = Outcome::Failed { reason, message: error.to_string(), text: None };
            return self.append(vec![JournalEntry::Finished { outcome }]).await;
        };
        self.wait_for_retry(wait).await
    }

    /// Waits until the next attempt.
    pub(super) async fn wait_for_retry(&mut self, wait: Duration) -> Result<(), AgentError> {
        self.agent.show(&AgentEvent::Retry { run: &self.id, wait });
        tokio::select! {
            () = sleep(wait) => Ok(()),
            () = self.control.stopped() => Ok(()),
            () = sleep_for(self.time_left()) => {
                let outcome = Outcome::over_budget(Limit::Time);
                self.append(vec![JournalEntry::Finished { outcome }]).await
            }
        }
    }

    /// Runs calls. They are in the journal before they start.
    async fn call(&mut self, planned: Vec<PlannedCall>) -> Result<(), AgentError> {
        let turn = self.turn.take();
        let turn = match (&self.agent.completion, planned.as_slice()) {
            (Some(own), [only]) if *only.tool == *ATTEMPT_COMPLETION => {
                let options = self.agent.turn_options(&self.id, self.time_left());
                own.turn(options.toolset(Toolset::new()))
            }
            _ => turn.unwrap_or_else(|| self.agent.turn(&self.id, self.time_left())),
        };
        let (mut calls, mut started, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for call in planned {
            let PlannedCall { id, tool, arguments, lost: before } = call;
            let start = started_call(&turn, &id, &tool);
            let is_same = |before: &StartedCall| before.definition == start.definition;
            if before.as_ref().is_some_and(|before| !start.repeatable || !is_same(before)) {
                let result = ToolResult::failure(id, tool.as_ref(), lost(), Duration::ZERO);
                unknown.push(finished(result));
            } else {
                calls.push(ToolCall::new(id.as_str(), tool, arguments));
                started.push(start);
            }
        }
        if !unknown.is_empty() {
            self.append(unknown).await?;
        }
        if calls.is_empty() {
            return Ok(());
        }
        if !self.wait_for_poll(&calls).await {
            return Ok(());
        }
        self.append(vec![JournalEntry::CallsStarted { calls: started }]).await?;
        let answers = self.until_stopped(&turn, Box::pin(turn.start_batch(calls))).await;
        let entry = |answer| match answer {
            CallAnswer::Done(result) => finished(result),
            CallAnswer::Suspended(suspension) => JournalEntry::CallSuspended { suspension },
        };
        self.append(answers.into_iter().map(entry).collect()).await
    }

    async fn stop(&mut self, stop: Stop) -> Result<(), AgentError> {
        match stop {
            Stop::Pause(_) if matches!(self.run.next(), Step::Paused) => Ok(()),
            Stop::Pause(reason) => self.append(vec![JournalEntry::Paused { reason }]).await,
            Stop::Cancel(reason) => {
                self.cancel_children(&reason, None).await?;
                if self.run.waiting().next().is_some()
                    && let Err(error) = self.apply_update(CallUpdate::Cancel).await
                {
                    // Somebody decided on a call at the same moment: its answer is recorded or lost with the run.
                    match error {
                        AgentError::Resolve(error) => tracing::warn!(
                            run = %self.id, %error, "a waiting call of a cancelled run was not cancelled"
                        ),
                        other => return Err(other),
                    }
                }
                if self.run.outcome().is_some() {
                    return Ok(());
                }
                let outcome = Outcome::Cancelled { reason };
                self.append(vec![JournalEntry::Finished { outcome }]).await
            }
        }
    }

    /// Updates the waiting calls as core's runs do, and records their answers.
    pub(super) async fn apply_update(&mut self, update: CallUpdate) -> Result<(), AgentError> {
        let turn = self.agent.turn(&self.id, None);
        let mut answers = self.run.answers();
        if matches!(update, CallUpdate::TakeOver { with_groups: false }) {
            answers.retain(|one| !matches!(one, CallAnswer::Suspended(call) if is_group(call)));
        }
        let mut core = Run::from_answers(&turn, answers)?;
        let updated: Result<(), RunError> = match update {
            CallUpdate::TakeOver { .. } => core.expire(&turn).await.map(drop),
            CallUpdate::Resolve(id, resolution) => {
                let work = Box::pin(core.resolve(&turn, &id, *resolution));
                self.until_stopped(&turn, work).await
            }
            CallUpdate::Submit(outputs) => core.submit(&turn, outputs).await,
            CallUpdate::Cancel => core.cancel(&turn).await.map(drop),
        };
        let mut entries = Vec::new();
        for waiting in self.run.waiting() {
            let mut answered = core.answered();
            if let Some(result) =
                answered.find(|result| result.call_id().as_str() == waiting.call_id())
            {
                entries.push(finished(result));
            } else if let Some(now) =
                core.outstanding().find(|now| now.call_id() == waiting.call_id())
                && now.id() != waiting.id()
            {
                entries.push(JournalEntry::CallSuspended { suspension: Box::new(now.clone()) });
            }
        }
        if !entries.is_empty() {
            self.append(entries).await?;
        }
        Ok(updated?)
    }

    /// Does work of a turn. If the run is to stop, running calls are cancelled, and their answers are still waited for.
    async fn until_stopped<T>(
        &self,
        turn: &Turn,
        mut work: Pin<Box<impl Future<Output = T> + ?Sized>>,
    ) -> T {
        tokio::select! {
            done = &mut work => done,
            () = self.control.stopped() => {
                turn.cancel();
                work.await
            }
        }
    }

    /// Finds calls that were suspended just before their process ended.
    async fn adopt_suspensions(&mut self) -> Result<(), AgentError> {
        let lost: HashSet<CallId> = self.run.lost_calls().cloned().collect();
        let Some(store) = self.agent.executor.suspensions() else { return Ok(()) };
        if lost.is_empty() {
            return Ok(());
        }
        let waiting = store.list(self.run.identity()).await?;
        let own = waiting.into_iter().filter(|one| {
            one.session() == Some(self.id.as_str()) && lost.contains(&CallId::new(one.call_id()))
        });
        let entries: Vec<_> = own
            .map(|suspension| JournalEntry::CallSuspended { suspension: Box::new(suspension) })
            .collect();
        if entries.is_empty() { Ok(()) } else { self.append(entries).await }
    }

    /// Applies entries and stores them. An entry that does not follow is never stored.
    pub(super) async fn append(&mut self, entries: Vec<JournalEntry>) -> Result<(), AgentError> {
        let (at, mask) = (self.agent.now(), self.agent.executor.mask());
        let after = self.run.version();
        let (mut rows, mut stored) = (Vec::new(), Vec::new());
        for entry in entries {
            let (row, body) = masked_row(&mask, JournalRow { at, entry })?;
            stored.push(entry_of(Some(&self.run), &row, body));
            let corrupt = |source| AgentError::Corrupt { run: self.id.clone(), source };
            self.run.apply(row.clone()).map_err(corrupt)?;
            rows.push(row);
        }
        self.agent.journal.append(&self.id, after, &stored, Some(&self.claim)).await?;
        for (seq, row) in (after + 1..).zip(&rows) {
            let event = AgentEvent::Recorded { run: &self.id, seq, entry: &row.entry };
            self.agent.show(&event);
        }
        Ok(())
    }

    /// What is left of the run's time.
    pub(super) fn time_left(&self) -> Option<Duration> {
        Some(self.run.budget().max_time?.saturating_sub(self.run.spent().time))
    }
}

fn too_slow(limit: Option<Duration>) -> AttemptError {
    let message = format!("no complete answer within {:?}", limit.unwrap_or_default());
    AttemptError::new(AttemptErrorKind::Timeout, message)
}

fn finished(result: ToolResult) -> JournalEntry {
    JournalEntry::CallFinished { result: Box::new(result), repetition: false }
}

/// How a call of a tool is recorded when it starts.
fn started_call(turn: &Turn, id: &CallId, tool: &str) -> StartedCall {
    let definition = turn.describe(tool);
    let annotations = definition.map(|definition| definition.annotations());
    StartedCall {
        id: id.clone(),
        repeatable: annotations.is_some_and(|hints| hints.read_only || hints.idempotent),
        terminal: definition
            .is_some_and(|definition| definition.terminal() || definition.final_output()),
        definition: definition.map(|definition| Fingerprint::of_json(&definition.to_full_value())),
    }
}

/// Completes after a time, or never.
pub(super) async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}

/// A number from 0 to 1 that differs between processes and calls.
pub(super) fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}
