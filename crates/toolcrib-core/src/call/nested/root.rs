//! A root call with its nested calls, which may outlive the request that made it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedMutexGuard, oneshot};
use tokio::time::Instant;
use toolcrib_tool::{BoxFuture, CallId, ToolCall, ToolError, ToolResult};
use tracing::{Instrument as _, Span};

use super::{Repetition, ResumePermit};
use crate::admission::Lineage;
use crate::cache::Flights;
use crate::call::batch::Barrier;
use crate::call::cancellation::Cancellation;
use crate::call::nested::live_calls::LiveCall;
use crate::call::pipeline;
use crate::call::pipeline::{Answered, Origin, SideOutput, waits};
use crate::call::tool_run::cut_short;
use crate::call::turn::Turn;
use crate::events::EmitterHandle;
use crate::suspension::{Answer, Grant, Granted, Settled, Suspension};

/// The state that a root call and its nested calls share.
#[derive(Default)]
pub(crate) struct RootCall {
    /// A child of the turn's token.
    cancellation: Cancellation,
    state: Mutex<RootCallState>,
    /// Notified when the time limit of one of its calls is paused or resumed.
    time: Notify,
    /// Only one of its calls at a time waits for somebody.
    asking: OnceLock<Arc<tokio::sync::Mutex<()>>>,
    emitter: OnceLock<EmitterHandle>,
    /// Why its client lost its rights.
    refused: OnceLock<String>,
}

#[derive(Default)]
struct RootCallState {
    /// The caller's deadline; none once the caller was told that the call waits.
    deadline: Option<Instant>,
    /// A nested call has begun to wait, and the caller was not told yet.
    waits: Option<Box<Suspension>>,
    /// The waker of the task that drives it.
    driver: Option<Waker>,
    /// Receives the answer after a decision.
    asked_by: Option<oneshot::Sender<Answer>>,
    /// It ends with this process and is made again after a restart.
    is_left: bool,
}

/// How far a call got.
enum CallStep {
    Done(Box<Answered>),
    Waits(Box<Suspension>),
}

type Work = BoxFuture<'static, Answered>;

/// How to start a root call.
pub(crate) struct RootStart<'s> {
    /// The barrier of the batch.
    pub(crate) barrier: Arc<Barrier>,
    pub(crate) batch: Option<&'s Flights>,
    /// Its index in the batch, from 0.
    pub(crate) position: usize,
    /// The decision, if the call was suspended.
    pub(crate) grant: Option<Arc<Grant>>,
    /// Set if a nested call was decided on and this call is made again.
    pub(crate) repetition: Option<Repetition>,
    /// Set if the call has waited and goes on.
    pub(crate) permit: Option<ResumePermit>,
}

impl RootStart<'_> {
    /// For a call that is not part of a batch.
    pub(crate) fn alone() -> Self {
        let (barrier, batch, grant, repetition, permit) = Default::default();
        Self { barrier, batch, position: 0, grant, repetition, permit }
    }
}

/// Makes a call. Dropping the future ends the call, unless a nested call waits: from then on it
/// continues in the background.
pub(crate) async fn make(turn: &Turn, call: ToolCall, start: RootStart<'_>) -> Answered {
    let RootStart { barrier, batch, position, grant, repetition, permit } = start;
    let is_permitted = permit.is_some();
    let lineage = Lineage::root(Arc::new(RootCall::of(turn)), barrier);
    if turn.state.shared.suspensions.is_none() {
        let (grant, repetition) = (grant.as_deref(), repetition.as_ref());
        let origin =
            Origin { batch, position, grant, repetition, is_permitted, ..Origin::alone(&lineage) };
        return pipeline::run(turn, call, origin).await;
    }
    let (id, tool, started) = (call.id().clone(), call.name().to_owned(), Instant::now());
    let (own, batch) = (turn.clone(), batch.cloned());
    let root = Arc::clone(lineage.outermost());
    // Allocates first, because the large future would otherwise be copied.
    let memory = Box::new_uninit();
    let work = Box::into_pin(Box::write(memory, async move {
        let _permit = permit;
        let (batch, grant, repetition) = (batch.as_ref(), grant.as_deref(), repetition.as_ref());
        let origin =
            Origin { batch, position, grant, repetition, is_permitted, ..Origin::alone(&lineage) };
        pipeline::run(&own, call, origin).await
    }));
    let mut work: Work = work;
    match root.next(&mut work).await {
        CallStep::Done(answered) => *answered,
        CallStep::Waits(suspension) => {
            let last = (*suspension).clone();
            let goes_on = go_on(root, turn.clone(), work, last);
            tokio::spawn(goes_on.instrument(Span::current()));
            answered_waiting(turn, (id, tool), suspension, started.elapsed())
        }
    }
}

fn answered_waiting(
    turn: &Turn,
    (id, tool): (CallId, String),
    suspension: Box<Suspension>,
    duration: Duration,
) -> Answered {
    let shared = &turn.state.shared;
    let error = waits(&suspension);
    let error = match shared.mask.outcome(Err(error)) {
        Err(error) => error,
        Ok(_) => waits(&suspension),
    };
    let side = SideOutput { suspension: Some(suspension), ..SideOutput::default() };
    let limit = shared.config.load().output_chars;
    Answered { result: ToolResult::failure(id, tool, error, duration), limit, side }
}

/// Drives a call whose caller was told that it waits, until it ends.
async fn go_on(root: Arc<RootCall>, turn: Turn, mut work: Work, mut last: Suspension) {
    loop {
        let (answer, next) = match root.next(&mut work).await {
            CallStep::Done(answered) => (answered.into_answer(), None),
            CallStep::Waits(next) => (Answer::Suspended(next.clone()), Some(*next)),
        };
        root.tell(&turn, &last, answer).await;
        match next {
            Some(next) => last = next,
            None => return,
        }
    }
}

impl RootCall {
    fn of(turn: &Turn) -> Self {
        let state = RootCallState { deadline: turn.state.deadline, ..RootCallState::default() };
        Self {
            cancellation: turn.state.cancellation.child(),
            state: Mutex::new(state),
            time: Notify::new(),
            asking: OnceLock::new(),
            emitter: OnceLock::new(),
            refused: OnceLock::new(),
        }
    }

    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// The caller's deadline.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    /// Sets the event emitter of the root call.
    pub(crate) fn set_emitter(&self, emitter: &EmitterHandle) {
        let _ = self.emitter.set(emitter.clone());
    }

    /// Completes when the time limits of its calls may have changed since the first poll.
    pub(crate) fn time_changes(&self) -> Notified<'_> {
        self.time.notified()
    }

    /// The time limit of one of its calls was paused or resumed.
    pub(super) fn time_changed(&self) {
        self.time.notify_waiters();
    }

    /// Waits until no other of its nested calls waits for somebody.
    pub(crate) async fn ask(&self) -> OwnedMutexGuard<()> {
        Arc::clone(self.asking.get_or_init(Arc::default)).lock_owned().await
    }

    /// A nested call waits: the caller has to be told.
    pub(super) fn wait(&self, suspension: Box<Suspension>) {
        if let Some(emitter) = self.emitter.get() {
            emitter.suspend(suspension.waiting().as_str());
        }
        let driver = {
            let mut state = self.lock();
            state.deadline = None;
            state.waits = Some(suspension);
            state.driver.take()
        };
        self.time_changed();
        driver.into_iter().for_each(Waker::wake);
    }

    /// The host shuts down and the call can be made again afterwards: the waiting call stays in the
    /// store.
    pub(super) fn leave(&self) {
        self.lock().is_left = true;
        self.cancellation.set();
    }

    /// The error that replaces the call's answer if its client lost its rights.
    pub(crate) fn refusal(&self) -> Option<ToolError> {
        let reason = self.refused.get()?;
        Some(cut_short(ToolError::denied(reason.as_str()), false))
    }

    /// Drives the call until it ends or waits for somebody.
    async fn next(&self, work: &mut Work) -> CallStep {
        poll_fn(|cx| {
            if let Poll::Ready(answered) = work.as_mut().poll(cx) {
                return Poll::Ready(CallStep::Done(Box::new(answered)));
            }
            let mut state = self.lock();
            if let Some(suspension) = state.waits.take() {
                return Poll::Ready(CallStep::Waits(suspension));
            }
            if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(cx.waker())) {
                state.driver = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }

    /// Reports the outcome of the call that waited as `last`: to the decider, or to the store.
    async fn tell(&self, turn: &Turn, last: &Suspension, answer: Answer) {
        let (asked_by, is_left) = {
            let mut state = self.lock();
            (state.asked_by.take(), state.is_left)
        };
        let answer = match asked_by {
            Some(asked_by) => match asked_by.send(answer) {
                Ok(()) => return,
                Err(answer) => answer,
            },
            None => answer,
        };
        let shared = &turn.state.shared;
        let Some(store) = shared.suspensions.as_ref().filter(|_| !is_left) else { return };
        let settled = Settled::running(last.clone(), shared.now()).ended(answer);
        if let Err(error) = store.settle(&settled).await {
            let call_id = last.call_id();
            tracing::error!(%error, call_id, "the outcome of a waiting call could not be stored");
        }
        shared.settled.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, RootCallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for RootCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RootCall").finish_non_exhaustive()
    }
}

/// Ends a call if the future that resumed it is dropped before the answer.
struct EndWhenDropped(Option<Arc<RootCall>>);

impl Drop for EndWhenDropped {
    fn drop(&mut self) {
        if let Some(root) = &self.0 {
            root.cancellation.set();
        }
    }
}

impl LiveCall {
    /// Resumes the call with the decision on its nested call. `turn` is the decider's: its
    /// cancellation and deadline apply to the rest of the call. `refused` is the reason if the
    /// call's client lost its rights.
    pub(crate) async fn resume(self, turn: &Turn, grant: Grant, refused: Option<String>) -> Answer {
        let Self { root, grant: give } = self;
        let suspension = grant.suspension().clone();
        let (told, answer) = oneshot::channel();
        {
            let mut state = root.lock();
            state.asked_by = Some(told);
            state.deadline = turn.state.deadline;
        }
        root.time_changed();
        let mut end_when_dropped = EndWhenDropped(Some(Arc::clone(&root)));
        let is_refused = refused.is_some();
        if let Some(reason) = refused {
            let _ = root.refused.set(reason);
        }
        if is_refused || matches!(grant.granted(), Granted::Cancelled) {
            root.cancellation.set();
        }
        // If the receiver is gone, the calls have just ended.
        let _ = give.send(grant);
        let answer = async { answer.await.ok() };
        tokio::pin!(answer);
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            () = turn.state.cancellation.cancelled() => {
                if turn.state.cancellation.is_revoked() {
                    root.cancellation.revoke();
                } else {
                    root.cancellation.set();
                }
                answer.await
            }
        };
        end_when_dropped.0 = None;
        answer.unwrap_or_else(|| {
            let (id, tool) = (CallId::new(suspension.call_id()), suspension.called_tool());
            Answer::Done(ToolResult::failure(
                id,
                tool,
                crate::suspension::run::lost(),
                Duration::ZERO,
            ))
        })
    }
}
