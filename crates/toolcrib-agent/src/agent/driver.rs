//! Drives a run: does what comes next in it, and writes what came of that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use toolcrib_core::Turn;
use toolcrib_core::run::{Claim, RunId};
use toolcrib_tool::{CallId, ToolResult};
use toolcrib_wire::model::Item;
use tracing::Instrument as _;

use super::cancelling::OutsideRequests;
use super::control::{RunControl, Stop};
use super::masked::{masked_notes, masked_row};
use super::request::SentConversation;
use super::steering::OpenInbox;
use super::waiting::CallUpdate;
use super::{AgentError, AgentState, DrivenRun, RunReport, telemetry};
use crate::entry::{JournalEntry, JournalRow};
use crate::journal::entry_of;
use crate::run::{AgentRun, Outcome, RunState, Step};
use crate::sub_agents::ParentCall;

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
    pub(super) sent: Option<SentConversation>,
    /// The bytes of instructions and tools, as they were sent last.
    pub(super) head: u64,
    /// Whether the model can read outputs that were shortened, once that is known.
    pub(super) reads_outputs: Option<bool>,
    /// Old outputs that were stored for a compaction that is not recorded yet.
    pub(super) stored: BTreeMap<CallId, String>,
    /// The turn of the current round.
    pub(super) turn: Option<Turn>,
    /// The results of running calls that have to be recorded before the other calls of the round have ended.
    pub(super) ended: Option<UnboundedReceiver<ToolResult>>,
    /// When each tool for polling was called last.
    pub(super) polled: HashMap<Arc<str>, Instant>,
    _inbox: OpenInbox,
    _driven: DrivenRun,
}

/// How long a run of a host that is shutting down waits to be told why.
const SHUTDOWN_REASON: Duration = Duration::from_secs(1);

impl<'a> Driver<'a> {
    /// Begins a run.
    pub(super) async fn start(
        agent: &'a Arc<AgentState>,
        id: RunId,
        parent: Option<Box<ParentCall>>,
        begins_with: JournalEntry,
        control: &RunControl,
    ) -> Result<Self, AgentError> {
        let driven = agent.drive(&id)?;
        let started = agent.started(&id, parent);
        let (at, mask) = (agent.now(), agent.executor.mask());
        let corrupt = |source| AgentError::Corrupt { run: id.clone(), source };
        let first = JournalRow::new(at, masked_notes(&mask, started));
        let (second, body) = masked_row(&mask, JournalRow::new(at, begins_with))?;
        let mut run = AgentRun::begin(first.clone()).map_err(corrupt)?;
        let entries = [
            entry_of(None, &first, serde_json::to_value(&first)?),
            entry_of(Some(&run), &second, body),
        ];
        run.apply(second.clone()).map_err(corrupt)?;
        let rows = [first, second];
        agent.journal.append(&id, 0, &entries, None).await?;
        let claim = agent.journal.claim(&id).await?.ok_or(AgentError::Unknown)?;
        for (seq, row) in (1..).zip(rows) {
            agent.show_row(&id, seq, row);
        }
        let (control, inbox) = (control.clone(), OpenInbox::new(control.inbox()));
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
            ended: None,
            polled: HashMap::new(),
            _inbox: inbox,
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
        let (id, inbox) = (id.clone(), OpenInbox::new(control.inbox()));
        let control = control.clone();
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
            ended: None,
            polled: HashMap::new(),
            _inbox: inbox,
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

    /// Drives the run until it has ended, is paused or waits, and releases it.
    pub(super) async fn drive(mut self) -> Result<RunReport, AgentError> {
        let span =
            telemetry::invoke_agent(&self.agent.name, &self.id, &*self.agent.models[self.model]);
        let requests = OutsideRequests::of(&self);
        let driven = requests.during(Box::pin(self.steps().instrument(span))).await;
        self.release(driven).await
    }

    pub(super) async fn release(
        mut self,
        so: Result<(), AgentError>,
    ) -> Result<RunReport, AgentError> {
        if so.is_ok() {
            self.record_said().await;
        }
        let released = self.agent.journal.release(&self.claim).await;
        so.and(released.map_err(AgentError::from))?;
        self.agent.report(self.id, self.run).await
    }

    async fn steps(&mut self) -> Result<(), AgentError> {
        loop {
            self.record_said().await;
            let limits = self.context_limits();
            let step = self.run.next_within(Some(&limits));
            let is_at_rest = matches!(step, Step::Append(_) | Step::Over);
            if !is_at_rest && let Some(stop) = self.control.stop() {
                return self.stop(stop).await;
            }
            let begins_work =
                matches!(step, Step::Ask { .. } | Step::Compact { .. } | Step::Call(_));
            if begins_work && self.agent.executor.is_shutting_down() {
                // Whoever shuts the host down says why, perhaps a moment later.
                let _ = tokio::time::timeout(SHUTDOWN_REASON, self.control.stopped()).await;
                let ends = || Stop::Pause("the host is shutting down".to_owned());
                return self.stop(self.control.stop().unwrap_or_else(ends)).await;
            }
            if let Some(entry) = self.after_words().await {
                self.append(vec![entry]).await?;
                continue;
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

    /// Applies entries and stores them. An entry that does not follow is never stored.
    pub(super) async fn append(&mut self, entries: Vec<JournalEntry>) -> Result<(), AgentError> {
        let (at, mask) = (self.agent.now(), self.agent.executor.mask());
        let (after, mut shown) = (self.run.version(), self.agent.shown());
        let (mut rows, mut stored) = (Vec::new(), Vec::new());
        for entry in entries {
            let (row, body) = masked_row(&mask, JournalRow { at, entry, shown: shown.take() })?;
            stored.push(entry_of(Some(&self.run), &row, body));
            let corrupt = |source| AgentError::Corrupt { run: self.id.clone(), source };
            self.run.apply(row.clone()).map_err(corrupt)?;
            rows.push(row);
        }
        self.agent.journal.append(&self.id, after, &stored, Some(&self.claim)).await?;
        for (seq, row) in (after + 1..).zip(rows) {
            self.agent.show_row(&self.id, seq, row);
        }
        Ok(())
    }

    pub(super) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What is left of the run's time.
    pub(super) fn time_left(&self) -> Option<Duration> {
        Some(self.run.budget().max_time?.saturating_sub(self.run.spent().time))
    }
}
