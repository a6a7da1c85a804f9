//! A call of the host's own, with everything that is made within it: it may outlive the request that
//! made it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedMutexGuard, oneshot};
use tokio::time::Instant;
use toolcrib_tool::{BoxFuture, CallId, ToolCall, ToolError, ToolResult};
use tracing::{Instrument as _, Span};

use super::Repetition;
use crate::admission::Lineage;
use crate::cache::Flights;
use crate::call::cancellation::Cancellation;
use crate::call::nested::live_calls::LiveCall;
use crate::call::pipeline;
use crate::call::pipeline::{Answered, Origin, SideOutput, waits};
use crate::call::tool_run::cut_short;
use crate::call::turn::Turn;
use crate::events::VoiceHandle;
use crate::suspension::{Answer, Grant, Granted, Settled, Suspension};

/// A call of the host's own, as it and the calls made within it know it.
#[derive(Default)]
pub(crate) struct RootCall {
    /// Below that of the turn.
    cancellation: Cancellation,
    state: Mutex<RootCallState>,
    /// Told when a limit of one of its calls stands still or goes on.
    time: Notify,
    /// One of its calls at a time waits for somebody.
    asking: OnceLock<Arc<tokio::sync::Mutex<()>>>,
    voice: OnceLock<VoiceHandle>,
}

#[derive(Default)]
struct RootCallState {
    /// When the caller wants its answer. A call that waits has been answered.
    deadline: Option<Instant>,
    /// A call within it has come to wait, and nobody knows yet.
    waits: Option<Box<Suspension>>,
    /// Whoever drives it.
    driver: Option<Waker>,
    /// Whoever waits for what becomes of it since a decision.
    asked_by: Option<oneshot::Sender<Answer>>,
    /// It ends with this process, and is made again after a restart.
    is_left: bool,
    /// Why its client may make it no longer.
    refused: Option<String>,
}

/// What has become of a call.
enum CallStep {
    Done(Box<Answered>),
    Waits(Box<Suspension>),
}

type Work = BoxFuture<'static, Answered>;

/// How a call of the host's own is begun.
pub(crate) struct RootStart<'s> {
    /// The calls of the same batch.
    pub(crate) lineage: Lineage,
    pub(crate) batch: Option<&'s Flights>,
    /// Its place in that batch, from 0.
    pub(crate) position: usize,
    /// It was suspended, and this is what was decided on it.
    pub(crate) grant: Option<Arc<Grant>>,
    /// A call within it was decided on, and it is made again.
    pub(crate) repetition: Option<Repetition>,
}

impl RootStart<'_> {
    /// Of a call that is no part of a batch.
    pub(crate) fn alone() -> Self {
        let (lineage, batch, grant, repetition) = (Lineage::root(), None, None, None);
        Self { lineage, batch, position: 0, grant, repetition }
    }
}

/// Makes a call. Dropping the future ends the call, unless it has come to wait within: from then on
/// it goes on by itself.
pub(crate) async fn make(turn: &Turn, call: ToolCall, start: RootStart<'_>) -> Answered {
    let root = Arc::new(RootCall::of(turn));
    let RootStart { lineage, batch, position, grant, repetition } = start;
    let lineage = lineage.of_root(Arc::clone(&root));
    if turn.state.shared.suspensions.is_none() {
        let (grant, repetition) = (grant.as_deref(), repetition.as_ref());
        let origin = Origin { batch, position, grant, repetition, ..Origin::alone(&lineage) };
        return pipeline::run(turn, call, origin).await;
    }
    let (id, tool, started) = (call.id().clone(), call.name().to_owned(), Instant::now());
    let (own, batch) = (turn.clone(), batch.cloned());
    // The memory first: a call's state is large, and would be copied there.
    let memory = Box::new_uninit();
    let work = Box::into_pin(Box::write(memory, async move {
        let (batch, grant, repetition) = (batch.as_ref(), grant.as_deref(), repetition.as_ref());
        let origin = Origin { batch, position, grant, repetition, ..Origin::alone(&lineage) };
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

/// Drives a call whose caller has been told that it waits, until it ends.
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
            ..Self::default()
        }
    }

    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// When the caller wants its answer.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().deadline
    }

    /// The voice in which the call itself speaks.
    pub(crate) fn speaks(&self, voice: &VoiceHandle) {
        let _ = self.voice.set(voice.clone());
    }

    /// Completes when the limits of its calls may have changed, from its first poll on.
    pub(crate) fn time_changes(&self) -> Notified<'_> {
        self.time.notified()
    }

    /// A limit of one of its calls stands still or goes on.
    pub(super) fn time_changed(&self) {
        self.time.notify_waiters();
    }

    /// Waits until no other call within it waits for somebody.
    pub(crate) async fn ask(&self) -> OwnedMutexGuard<()> {
        Arc::clone(self.asking.get_or_init(Arc::default)).lock_owned().await
    }

    /// A call within it waits: its caller is to be told.
    pub(super) fn wait(&self, suspension: Box<Suspension>) {
        if let Some(voice) = self.voice.get() {
            voice.suspend(suspension.waiting().as_str());
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

    /// The host shuts down, and the call can be made again afterwards: what waits stays.
    pub(super) fn leave(&self) {
        self.lock().is_left = true;
        self.cancellation.set();
    }

    /// What the call is answered with in place of its own answer: its client may make it no longer.
    pub(crate) fn refusal(&self) -> Option<ToolError> {
        let reason = self.lock().refused.take()?;
        Some(cut_short(ToolError::denied(reason), false))
    }

    /// Works on the call until it ends or waits for somebody.
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

    /// Says what has become of the call since it waited as `last`: to whoever decided on that, or to
    /// whoever asks later.
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
            tracing::error!(%error, call_id, "what became of a waiting call could not be kept");
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

/// Ends a call when whoever resumed it goes away before its answer.
struct EndWhenDropped(Option<Arc<RootCall>>);

impl Drop for EndWhenDropped {
    fn drop(&mut self) {
        if let Some(root) = &self.0 {
            root.cancellation.set();
        }
    }
}

impl LiveCall {
    /// Lets the call go on with what was decided on the call within it. `turn` is that of whoever
    /// decided: its cancellation and its deadline hold for the rest of the call. `refused` says why
    /// the call's client may make it no longer.
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
        root.lock().refused = refused;
        if is_refused || matches!(grant.granted(), Granted::Cancelled) {
            root.cancellation.set();
        }
        // Where nobody takes it, the calls have just ended.
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
