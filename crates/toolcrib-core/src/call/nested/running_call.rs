//! One call at work, as the calls that it makes know it.

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

/// The answers of nested calls that are kept for one call take no more room than this, in bytes.
/// A call that has made larger ones is not made again after a restart.
const FINISHED_BYTES: usize = 256 * 1024;

/// A call at work.
pub(crate) struct RunningCall {
    call_id: CallId,
    tool: Arc<ToolSlot>,
    /// How its maker made it; `None` for a call of the host's own.
    made: Option<MadeCall>,
    begun: OnceLock<StartedWork>,
    presence: Mutex<Option<Arc<Presence>>>,
    /// Others wait for its answer.
    owed: Mutex<Option<LeaderDuty>>,
    finished: Mutex<FinishedCalls>,
    pause: Mutex<PauseState>,
}

struct StartedWork {
    arguments: Arguments,
    /// When its limit ends if it never stands still, and how long the limit is.
    limit: Option<(Instant, Duration)>,
    permit: Option<Weak<admission::ConcurrencySlot>>,
    /// The tool that the call is handed on to, if its tool does nothing else.
    delegate: Option<String>,
}

/// What the call has made that has ended.
#[derive(Default)]
struct FinishedCalls {
    calls: Vec<Finished>,
    bytes: usize,
    too_large: bool,
}

/// How long the call has stood still.
#[derive(Default)]
struct PauseState {
    /// Nested calls of it that wait.
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

    /// The tool's own work begins.
    pub(crate) fn begin(
        &self,
        arguments: Arguments,
        limit: Option<(Instant, Duration)>,
        permit: Option<&Arc<admission::ConcurrencySlot>>,
        presence: Presence,
        delegate: Option<String>,
    ) {
        let permit = permit.map(Arc::downgrade);
        // A call begins once.
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

    /// Whether the call does nothing but hand itself on to that tool.
    pub(crate) fn delegates_to(&self, tool: &str) -> bool {
        self.begun.get().is_some_and(|begun| begun.delegate.as_deref() == Some(tool))
    }

    /// Notes that others wait for the answer of this call.
    pub(crate) fn owes(&self, run: Option<LeaderDuty>) {
        *lock(&self.owed) = run;
    }

    /// Those that wait for the answer, if they still do.
    pub(crate) fn take_owed(&self) -> Option<LeaderDuty> {
        lock(&self.owed).take()
    }

    /// When its limit ends, and how long the limit is; `None` where there is none, before the work
    /// begins, and while the call stands still.
    pub(crate) fn limit_end(&self) -> Option<(Instant, Duration)> {
        let (at, limit) = self.begun.get()?.limit?;
        let pause = lock(&self.pause);
        if pause.waiting > 0 {
            return None;
        }
        at.checked_add(pause.total).map(|at| (at, limit))
    }

    /// How long it has stood still.
    pub(crate) fn stood_still(&self) -> Duration {
        let pause = lock(&self.pause);
        pause.total + pause.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// A call that it made waits: it stands still, lets others use its permit and its place in the
    /// batch, and keeps nobody waiting for its answer.
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

    /// A call that it made waits no more.
    pub(super) fn go_on(&self) {
        let mut pause = lock(&self.pause);
        pause.waiting = pause.waiting.saturating_sub(1);
        if pause.waiting == 0
            && let Some(since) = pause.since.take()
        {
            pause.total += since.elapsed();
        }
    }

    /// Whether no more than one of its calls waits.
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

    /// Keeps the answer to a call it has made, where it could be made again itself.
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

    /// Whether its tool promises that a second run does no harm.
    fn is_harmless(&self) -> bool {
        let annotations = self.tool.entry.definition.annotations();
        annotations.read_only || annotations.idempotent
    }

    /// The call as a suspension keeps it; `next` is the tool of the call that it has made. `None`
    /// before its work has begun, when it makes no calls.
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

/// Nothing of the caller's runs under any of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
