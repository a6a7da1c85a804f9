//! Input for a run while it is driven: recorded before it is confirmed.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use toolcrib_core::run::{JournalEntry as StoredEntry, MessageNumber, RunId};
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::ToolResult;
use toolcrib_wire::model::Item;

use super::cancelling::LOOK;
use super::driver::Driver;
use super::event::AgentEvent;
use super::masked::masked_row;
use super::{Agent, AgentError, AgentInput, RunReport};
use crate::entry::{JournalEntry, JournalRow};
use crate::journal::entry_of;

/// Why something that was said to a run is not in its journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SteerError {
    /// Nobody drives the run any more. [`Agent::steer`](super::Agent::steer) takes input for it.
    #[error("nobody works on the run any more")]
    NotDriven,
    /// The run has ended. [`Agent::send`](super::Agent::send) continues it.
    #[error("the run has ended")]
    Ended,
    /// It could not be recorded.
    #[error(transparent)]
    Failed(#[from] AgentError),
}

/// Completes when what was said to a run is in its journal. Dropping it changes nothing.
#[derive(Debug)]
pub struct Steering(oneshot::Receiver<Result<(), SteerError>>);

impl Future for Steering {
    type Output = Result<(), SteerError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let recorded = ready!(pin!(&mut self.0).poll(cx));
        Poll::Ready(recorded.unwrap_or(Err(SteerError::NotDriven)))
    }
}

/// What was said to a run and is not recorded yet.
#[derive(Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    arrived: Notify,
}

#[derive(Default)]
struct InboxState {
    said: VecDeque<Said>,
    /// Whether the run was driven and is not any more.
    is_closed: bool,
}

/// Something that was said.
struct Said {
    items: Vec<Item>,
    /// Its number, if another process has left it in the journal.
    message: Option<MessageNumber>,
    recorded: oneshot::Sender<Result<(), SteerError>>,
}

impl Inbox {
    pub(super) fn put(&self, items: Vec<Item>) -> Steering {
        self.put_message(items, None)
    }

    pub(super) fn put_message(&self, items: Vec<Item>, message: Option<MessageNumber>) -> Steering {
        let (recorded, steering) = oneshot::channel();
        let mut state = self.open();
        if !state.is_closed {
            state.said.push_back(Said { items, message, recorded });
            drop(state);
            self.arrived.notify_one();
        }
        Steering(steering)
    }

    fn open(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Said> {
        self.open().said.pop_front()
    }

    /// Completes when there is something in it.
    async fn arrived(&self) {
        while self.open().said.is_empty() {
            self.arrived.notified().await;
        }
    }
}

/// Accepts input for a run until this value is dropped.
pub(super) struct OpenInbox(Arc<Inbox>);

impl OpenInbox {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Self {
        inbox.open().is_closed = false;
        Self(Arc::clone(inbox))
    }
}

impl Drop for OpenInbox {
    fn drop(&mut self) {
        let mut state = self.0.open();
        state.is_closed = true;
        state.said.clear();
    }
}

/// The next result to record; never, if there is none to come.
async fn next_ended(ended: Option<&mut UnboundedReceiver<ToolResult>>) -> Option<ToolResult> {
    match ended {
        Some(ended) => ended.recv().await,
        None => std::future::pending().await,
    }
}

impl Driver<'_> {
    /// Does work, and records meanwhile what is said to the run, and which of its calls have ended.
    pub(super) async fn attend<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let inbox = Arc::clone(self.control.inbox());
        loop {
            let ended = tokio::select! {
                biased;
                done = &mut work => return done,
                () = inbox.arrived() => None,
                Some(result) = next_ended(self.ended.as_mut()) => Some(result),
            };
            // The work goes on meanwhile: it may use the same database.
            let mut recording = pin!(async {
                if let Some(result) = ended {
                    self.record_ended(result).await;
                }
                self.record_said().await;
            });
            tokio::select! {
                biased;
                () = &mut recording => {}
                done = &mut work => {
                    recording.await;
                    return done;
                }
            }
        }
    }

    /// Records what was said so far.
    pub(super) async fn record_said(&mut self) {
        while let Some(Said { items, message, recorded }) = self.control.inbox().take() {
            let done = if self.run.outcome().is_some() {
                Err(SteerError::Ended)
            } else {
                self.record_steered(items, message).await.map_err(SteerError::from)
            };
            // Nobody need be waiting for it.
            let _ = recorded.send(done);
        }
    }

    /// Records the result of a call before the other calls of its round have ended.
    async fn record_ended(&mut self, result: ToolResult) {
        let ended = JournalEntry::CallEnded { result: Box::new(result) };
        if let Err(error) = self.record(ended, None).await {
            // It is recorded with the other results, unless this process is killed before.
            tracing::debug!(run = %self.id, %error, "the result of a call is not recorded yet");
        }
    }

    /// Records input.
    async fn record_steered(
        &mut self,
        items: Vec<Item>,
        message: Option<MessageNumber>,
    ) -> Result<(), AgentError> {
        if !items.iter().all(|item| matches!(item, Item::Input(_))) {
            let problem = "takes messages only";
            return Err(AgentError::NotNow { run: self.id.clone(), problem });
        }
        self.record(JournalEntry::Steered { items }, message).await
    }

    /// Records an entry. Unlike other steps it is applied once it is stored: if that fails, the run goes on without it.
    async fn record(
        &mut self,
        entry: JournalEntry,
        message: Option<MessageNumber>,
    ) -> Result<(), AgentError> {
        let (at, mask) = (self.agent.now(), self.agent.executor.mask());
        let shown = self.agent.shown();
        let (row, body) = masked_row(&mask, JournalRow { at, entry, shown })?;
        let (after, stored) = (self.run.version(), entry_of(Some(&self.run), &row, body));
        let stored = match (stored, message) {
            (StoredEntry::Step(step), Some(message)) => StoredEntry::Step(step.taking(message)),
            (stored, _) => stored,
        };
        let claim = Some(self.claim());
        self.agent.journal.append(&self.id, after, &[stored], claim).await?;
        let corrupt = |source| AgentError::Corrupt { run: self.id.clone(), source };
        self.run.apply(row.clone()).map_err(corrupt)?;
        let event = AgentEvent::Recorded { run: &self.id, seq: after + 1, entry: &row.entry };
        self.agent.show(&event);
        Ok(())
    }

    /// Records input for the run and releases it.
    pub(super) async fn steer(mut self, items: Vec<Item>) -> Result<RunReport, AgentError> {
        let done = if self.run.outcome().is_some() {
            let problem = "has ended: resume it with the input instead";
            Err(AgentError::NotNow { run: self.id.clone(), problem })
        } else {
            self.record_steered(items, None).await
        };
        self.release(done).await
    }
}

impl Agent {
    /// Says something to a run that has not ended, without continuing it, as [`steer`](Self::steer) does. If another
    /// process works on it, the input is left for that one, and this waits up to `wait` until it has recorded it. Fails
    /// with [`StoreError::Claimed`] if it has not by then: nothing was said.
    pub async fn steer_within(
        &self,
        run: &RunId,
        input: impl Into<AgentInput>,
        wait: Duration,
    ) -> Result<RunReport, AgentError> {
        let AgentInput(items) = input.into();
        let until = Instant::now() + wait;
        loop {
            let claimed = match self.steer(run, items.clone()).await {
                Err(AgentError::Store(claimed @ StoreError::Claimed { .. })) => claimed,
                done => return done,
            };
            if self.is_told(run, &items, until).await? {
                return self.load(run).await;
            }
            if Instant::now() > until {
                return Err(claimed.into());
            }
            sleep(LOOK).await;
        }
    }

    /// Leaves input for the process that works on a run. Returns whether that has recorded it; if not, it never will.
    async fn is_told(
        &self,
        run: &RunId,
        items: &[Item],
        until: Instant,
    ) -> Result<bool, AgentError> {
        let journal = &self.0.journal;
        let message = self.0.executor.mask().value(serde_json::to_value(items)?).to_string();
        let Some(message) = journal.leave_message(run, &message).await? else { return Ok(false) };
        loop {
            sleep(LOOK).await;
            let requests = journal.requests(run).await?;
            if !requests.messages.iter().any(|(number, _)| *number == message) {
                return Ok(true);
            }
            let is_worked_on = journal.claimed_elsewhere(run).await?.is_some();
            if !is_worked_on || Instant::now() > until {
                return Ok(!journal.withdraw_message(run, message).await?);
            }
        }
    }
}
