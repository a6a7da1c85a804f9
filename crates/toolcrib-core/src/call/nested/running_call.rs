//! One running call, as its nested calls see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_tool::{Arguments, CallId, ToolResult};

use crate::admission;
use crate::cache::LeaderDuty;
use crate::call::batch::Presence;
use crate::identity::fingerprint::Fingerprint;
use crate::registry::ToolSlot;
use crate::suspension::{Finished, Frame, MadeCall};

/// The maximum total size of stored nested answers per call, in bytes. A call with larger ones is
/// not repeated after a restart.
const FINISHED_BYTES: usize = 256 * 1024;

/// A running call.
pub(crate) struct RunningCall {
    call_id: CallId,
    tool: Arc<ToolSlot>,
    /// How its parent made it; `None` for a root call.
    made: Option<MadeCall>,
    state: Mutex<RunningState>,
}

#[derive(Default)]
struct RunningState {
    /// `None` before the tool starts to run.
    begun: Option<StartedWork>,
    presence: Option<Arc<Presence>>,
    /// The duty to publish its answer, if followers wait for it.
    owed: Option<LeaderDuty>,
    finished: FinishedCalls,
    pause: PauseState,
}

struct StartedWork {
    arguments: Arguments,
    /// When its time limit ends without pauses, and how long the limit is.
    limit: Option<(Instant, Duration)>,
    permit: Option<Weak<admission::ConcurrencySlot>>,
    /// The tool that the call is delegated to, if its own tool only delegates.
    delegate: Option<String>,
}

/// Its finished nested calls.
#[derive(Default)]
struct FinishedCalls {
    calls: Vec<Finished>,
    bytes: usize,
    too_large: bool,
}

/// How long the call was paused.
#[derive(Default)]
struct PauseState {
    /// Its waiting nested calls.
    waiting: usize,
    since: Option<Instant>,
    total: Duration,
}

impl RunningCall {
    pub(crate) fn new(call_id: &CallId, tool: &Arc<ToolSlot>, made: Option<MadeCall>) -> Self {
        let (call_id, tool) = (call_id.clone(), Arc::clone(tool));
        Self { call_id, tool, made, state: Mutex::default() }
    }

    /// The tool starts to run; `owed` is the duty to publish its answer.
    pub(crate) fn begin(
        &self,
        arguments: Arguments,
        limit: Option<(Instant, Duration)>,
        permit: Option<&Arc<admission::ConcurrencySlot>>,
        presence: Presence,
        delegate: Option<String>,
        owed: Option<LeaderDuty>,
    ) {
        let permit = permit.map(Arc::downgrade);
        let mut state = self.lock();
        state.begun = Some(StartedWork { arguments, limit, permit, delegate });
        state.presence = Some(Arc::new(presence));
        state.owed = owed;
    }

    /// The tool has returned.
    pub(crate) fn end(&self) {
        let presence = self.lock().presence.take();
        drop(presence);
    }

    pub(crate) fn presence(&self) -> Option<Arc<Presence>> {
        self.lock().presence.clone()
    }

    pub(crate) fn tool_name(&self) -> &str {
        self.tool.entry.name()
    }

    /// Whether the call only delegates to that tool.
    pub(crate) fn delegates_to(&self, tool: &str) -> bool {
        self.lock().delegates_to(tool)
    }

    /// When its time limit ends, and how long the limit is; `None` if there is none, before the
    /// work begins, and while the call is paused.
    pub(crate) fn limit_end(&self) -> Option<(Instant, Duration)> {
        let state = self.lock();
        let (at, limit) = state.begun.as_ref()?.limit?;
        if state.pause.waiting > 0 {
            return None;
        }
        at.checked_add(state.pause.total).map(|at| (at, limit))
    }

    /// How long the call was paused, and the duty to publish its answer, if it still has it.
    pub(crate) fn take_owed(&self) -> (Duration, Option<LeaderDuty>) {
        let mut state = self.lock();
        let pause = &state.pause;
        let paused = pause.total + pause.since.map(|since| since.elapsed()).unwrap_or_default();
        (paused, state.owed.take())
    }

    /// A nested call waits: pauses this call, lends its permit, leaves the barrier, and releases
    /// the followers that wait for its answer.
    pub(super) fn stand_still(&self) {
        let (first, presence, owed) = {
            let mut state = self.lock();
            state.pause.waiting += 1;
            let first = state.pause.waiting == 1;
            if first {
                state.pause.since = Some(Instant::now());
            }
            (first, state.presence.clone(), state.owed.take())
        };
        if let Some(presence) = presence {
            presence.leave();
        }
        drop(owed);
        if first && let Some(permit) = self.permit() {
            permit.lend();
        }
    }

    /// A nested call no longer waits.
    pub(super) fn go_on(&self) {
        let pause = &mut self.lock().pause;
        pause.waiting = pause.waiting.saturating_sub(1);
        if pause.waiting == 0
            && let Some(since) = pause.since.take()
        {
            pause.total += since.elapsed();
        }
    }

    /// Whether at most one of its nested calls waits.
    pub(super) fn is_last_wait(&self) -> bool {
        self.lock().pause.waiting <= 1
    }

    pub(super) fn permit(&self) -> Option<Arc<admission::ConcurrencySlot>> {
        self.lock().begun.as_ref()?.permit.as_ref()?.upgrade()
    }

    pub(super) fn max_concurrent(&self) -> usize {
        self.tool.entry.definition.max_concurrent().unwrap_or(usize::MAX)
    }

    pub(super) fn tool(&self) -> &ToolSlot {
        &self.tool
    }

    /// Stores the answer of a nested call, if this call could be repeated.
    pub(crate) fn keep(&self, made: MadeCall, result: &ToolResult) {
        if !self.is_harmless() {
            return;
        }
        let bytes = result.text().len()
            + result.data().map_or(0, crate::output::budget::json_bytes)
            + made.call_id.len();
        let finished = &mut self.lock().finished;
        finished.bytes = finished.bytes.saturating_add(bytes);
        if finished.bytes > FINISHED_BYTES {
            finished.too_large = true;
            finished.calls = Vec::new();
            return;
        }
        finished.calls.push(Finished { made, result: result.clone() });
    }

    /// Whether its tool declares that a second run is harmless.
    fn is_harmless(&self) -> bool {
        let annotations = self.tool.entry.definition.annotations();
        annotations.read_only || annotations.idempotent
    }

    /// The call as stored in a suspension; `next` is the tool of its nested call. `None` before its
    /// work has begun.
    pub(crate) fn frame(&self, next: &str) -> Option<Frame> {
        let state = self.lock();
        let (begun, finished) = (state.begun.as_ref()?, &state.finished);
        let is_repeatable = state.delegates_to(next) || self.is_harmless() && !finished.too_large;
        let made = self.made.clone().unwrap_or_else(|| MadeCall {
            call_id: self.call_id.as_str().to_owned(),
            tool: self.tool.entry.name().to_owned(),
            arguments: Fingerprint::of_bytes(begun.arguments.as_str().as_bytes()),
        });
        Some(Frame {
            made,
            definition: self.tool.fingerprint(),
            arguments: begun.arguments.as_str().to_owned(),
            is_repeatable,
            finished: finished.calls.clone(),
        })
    }

    /// No foreign code runs under this lock.
    fn lock(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningState {
    fn delegates_to(&self, tool: &str) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.delegate.as_deref() == Some(tool))
    }
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningCall").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}
