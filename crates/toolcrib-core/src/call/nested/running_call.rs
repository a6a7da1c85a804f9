//! One running call, as its nested calls see it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
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
    begun: OnceLock<StartedWork>,
    presence: Mutex<Option<Arc<Presence>>>,
    /// The duty to publish its answer, if followers wait for it.
    owed: Mutex<Option<LeaderDuty>>,
    finished: Mutex<FinishedCalls>,
    pause: Mutex<PauseState>,
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
        let (begun, presence, owed) = Default::default();
        let (finished, pause) = Default::default();
        let (call_id, tool) = (call_id.clone(), Arc::clone(tool));
        Self { call_id, tool, made, begun, presence, owed, finished, pause }
    }

    /// The tool starts to run.
    pub(crate) fn begin(
        &self,
        arguments: Arguments,
        limit: Option<(Instant, Duration)>,
        permit: Option<&Arc<admission::ConcurrencySlot>>,
        presence: Presence,
        delegate: Option<String>,
    ) {
        let permit = permit.map(Arc::downgrade);
        // A call starts once.
        let _ = self.begun.set(StartedWork { arguments, limit, permit, delegate });
        *lock(&self.presence) = Some(Arc::new(presence));
    }

    /// The tool has returned.
    pub(crate) fn end(&self) {
        lock(&self.presence).take();
    }

    pub(crate) fn presence(&self) -> Option<Arc<Presence>> {
        lock(&self.presence).clone()
    }

    pub(crate) fn tool_name(&self) -> &str {
        self.tool.entry.name()
    }

    /// Whether the call only delegates to that tool.
    pub(crate) fn delegates_to(&self, tool: &str) -> bool {
        self.begun.get().is_some_and(|begun| begun.delegate.as_deref() == Some(tool))
    }

    /// Sets the duty to publish the answer.
    pub(crate) fn owes(&self, run: Option<LeaderDuty>) {
        *lock(&self.owed) = run;
    }

    /// Takes the duty to publish the answer, if it is still there.
    pub(crate) fn take_owed(&self) -> Option<LeaderDuty> {
        lock(&self.owed).take()
    }

    /// When its time limit ends, and how long the limit is; `None` if there is none, before the
    /// work begins, and while the call is paused.
    pub(crate) fn limit_end(&self) -> Option<(Instant, Duration)> {
        let (at, limit) = self.begun.get()?.limit?;
        let pause = lock(&self.pause);
        if pause.waiting > 0 {
            return None;
        }
        at.checked_add(pause.total).map(|at| (at, limit))
    }

    /// How long it was paused.
    pub(crate) fn stood_still(&self) -> Duration {
        let pause = lock(&self.pause);
        pause.total + pause.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// A nested call waits: pauses this call, lends its permit, leaves the barrier, and releases
    /// the followers that wait for its answer.
    pub(super) fn stand_still(&self) {
        let first = {
            let mut pause = lock(&self.pause);
            pause.waiting += 1;
            if pause.waiting == 1 {
                pause.since = Some(Instant::now());
            }
            pause.waiting == 1
        };
        if let Some(presence) = self.presence() {
            presence.leave();
        }
        drop(self.take_owed());
        if first && let Some(permit) = self.permit() {
            permit.lend();
        }
    }

    /// A nested call no longer waits.
    pub(super) fn go_on(&self) {
        let mut pause = lock(&self.pause);
        pause.waiting = pause.waiting.saturating_sub(1);
        if pause.waiting == 0
            && let Some(since) = pause.since.take()
        {
            pause.total += since.elapsed();
        }
    }

    /// Whether at most one of its nested calls waits.
    pub(super) fn is_last_wait(&self) -> bool {
        lock(&self.pause).waiting <= 1
    }

    pub(super) fn permit(&self) -> Option<Arc<admission::ConcurrencySlot>> {
        self.begun.get()?.permit.as_ref()?.upgrade()
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
        let mut finished = lock(&self.finished);
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
        let begun = self.begun.get()?;
        let finished = lock(&self.finished);
        let is_repeatable = self.delegates_to(next) || self.is_harmless() && !finished.too_large;
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
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningCall").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

/// No foreign code runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
