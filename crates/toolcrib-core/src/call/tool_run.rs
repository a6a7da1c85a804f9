//! Running a tool until it ends or is interrupted.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, CallHost, ErrorKind, Tool, ToolError, ToolOutcome,
};

use crate::admission;
use crate::cache::PendingWrite;
use crate::call::host::ExecutorHost;
use crate::call::panics::PanicMessage;
use crate::call::pipeline::{Interruption, Interrupts, ReachedStage};
use crate::lifecycle::Lease;

/// What a call holds for as long as its work continues, even after its answer: a thread cannot be
/// stopped.
#[expect(dead_code, reason = "kept for what their drop does")]
pub(crate) struct HeldResources {
    /// The concurrency slot.
    pub(crate) slot: Option<Arc<admission::ConcurrencySlot>>,
    /// The write in progress on the tool's resources.
    pub(crate) writing: Option<PendingWrite>,
    /// The call's own instance, if it has one.
    pub(crate) lease: Option<Lease>,
}

/// How one run of a tool ended.
pub(crate) struct ToolRun {
    pub(crate) outcome: Result<ToolOutcome, ToolError>,
    /// What interrupted it, if anything, and whether the tool was running then.
    pub(crate) interrupted: Option<(Interruption, ReachedStage)>,
}

/// Cancels the call when dropped: abandoned calls must not continue unseen, and blocking tools
/// learn of it only here.
struct CancelOnDrop<'a>(Option<&'a CallContext>);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(cx) = self.0 {
            cx.host().cancel();
        }
    }
}

/// Runs the tool until it ends, on the blocking pool if its definition says so. `started` is when
/// the call arrived, for messages.
///
/// On an interruption the tool is notified first ([`CallContext::cancelled`]) and may use its
/// wind-down to return partial output; then its future is dropped.
pub(crate) fn execute<'a>(
    tool: &'a Arc<dyn Tool>,
    arguments: Arguments,
    (cx, host): (&'a CallContext, &'a ExecutorHost),
    interrupts: &'a Interrupts<'a>,
    started: Instant,
    held: HeldResources,
) -> BoxFuture<'a, ToolRun> {
    // Boxed, because the futures of nested calls would add up on the stack.
    Box::pin(executed(tool, arguments, (cx, host), interrupts, started, held))
}

async fn executed(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    (cx, host): (&CallContext, &ExecutorHost),
    interrupts: &Interrupts<'_>,
    started: Instant,
    held: HeldResources,
) -> ToolRun {
    let blocking = cx.definition().blocking();
    host.needs(tool.wind_down());
    let mut cancel_when_dropped = CancelOnDrop(Some(cx));
    let begin = blocking.then(BlockingStart::default);
    let mut work = pin!(work(tool, arguments, cx, begin.as_ref(), held));
    let interruption = match select(work.as_mut(), pin!(interrupts.next())).await {
        Either::Left((outcome, _)) => {
            cancel_when_dropped.0 = None;
            return ToolRun { outcome, interrupted: None };
        }
        Either::Right((interruption, _)) => interruption,
    };
    host.cancel();
    let reached = if begin.as_ref().is_some_and(BlockingStart::withdraw) {
        ReachedStage::Nothing
    } else {
        ReachedStage::Work
    };
    let interrupted = Some((interruption, reached));
    let error =
        |hints: &[_]| interruption.error_with_hints(reached, started, Some(cx.definition()), hints);
    let wind_down = host.wind_down(tool.wind_down());
    if reached == ReachedStage::Nothing || wind_down.is_zero() {
        return ToolRun { outcome: Err(error(&[])), interrupted };
    }
    let by_time = interruption.is_by_time();
    let mut hints = Vec::new();
    let partial = match tokio::time::timeout(wind_down, work).await {
        // The tool returned partial output.
        Ok(Ok(ToolOutcome::Done(output))) if output.timed_out() && by_time => {
            return ToolRun { outcome: Ok(output.into()), interrupted };
        }
        Ok(Ok(ToolOutcome::Done(output))) => Some(output),
        Ok(Err(mut late)) => {
            if by_time {
                hints.extend_from_slice(late.hints());
            }
            late.take_partial()
        }
        Ok(Ok(_)) | Err(_) => None,
    };
    let error = match (error(&hints), partial) {
        (error, Some(partial)) => error.with_partial(partial),
        (error, None) => error,
    };
    ToolRun { outcome: Err(error), interrupted }
}

/// Whether work on the blocking pool has started. It starts once or is withdrawn, never both: a
/// queued call that was already answered does not run later.
#[derive(Debug, Clone, Default)]
struct BlockingStart(Arc<AtomicU8>);

impl BlockingStart {
    const QUEUED: u8 = 0;
    const BEGUN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// Starts the work, unless it was withdrawn.
    fn begin(&self) -> bool {
        self.0.swap_from_queued(Self::BEGUN)
    }

    /// Withdraws the work; returns whether it had not started.
    fn withdraw(&self) -> bool {
        self.0.swap_from_queued(Self::WITHDRAWN)
            || self.0.load(Ordering::Acquire) == Self::WITHDRAWN
    }
}

trait SwapFromQueued {
    fn swap_from_queued(&self, to: u8) -> bool;
}

impl SwapFromQueued for AtomicU8 {
    fn swap_from_queued(&self, to: u8) -> bool {
        self.compare_exchange(BlockingStart::QUEUED, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Withdraws queued work when dropped.
struct WithdrawOnDrop<'b>(&'b BlockingStart, AbortHandle);

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
        // Leaves the pool's queue; has no effect on work that has started.
        self.1.abort();
    }
}

/// The tool's work with panics caught; on the blocking pool if there is a `begin`.
async fn work(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
    begin: Option<&BlockingStart>,
    held: HeldResources,
) -> Result<ToolOutcome, ToolError> {
    let Some(begin) = begin else {
        let outcome = caught(async { tool.call(arguments, cx).await }).await;
        drop(held);
        return outcome;
    };
    let (tool, cx, may_begin) = (Arc::clone(tool), cx.clone(), begin.clone());
    let runtime = tokio::runtime::Handle::current();
    let task = tokio::task::spawn_blocking(move || {
        let _held = held;
        if !may_begin.begin() {
            return Err(ToolError::new(ErrorKind::Cancelled, "it was withdrawn before it began"));
        }
        runtime.block_on(tool.call(arguments, &cx))
    });
    let _take_back = WithdrawOnDrop(begin, task.abort_handle());
    task.await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => Err(panicked(panic.as_ref())),
        Err(error) => Err(ToolError::internal(format!("the blocking pool is closed: {error}"))),
    })
}

/// The tool's own check of its arguments, within `limit`.
pub(crate) async fn validate(
    tool: &dyn Tool,
    arguments: &Arguments,
    cx: &CallContext,
    limit: Option<Duration>,
) -> Result<(), ToolError> {
    // A failed check always gets the kind `constraint`.
    let refused = |error: ToolError| error.with_kind(ErrorKind::Constraint);
    let check = caught(async { tool.validate(arguments, cx).await.map_err(refused) });
    match limit {
        None => check.await,
        Some(limit) => tokio::time::timeout(limit, check).await.unwrap_or_else(|_| {
            let message = format!("its own check took longer than its limit of {limit:?}");
            Err(ToolError::new(ErrorKind::Timeout, message)
                .with_hint("Nothing was run. Call again later."))
        }),
    }
}

/// Unwind safe: a panicked tool is used again only through `&self`, and notices inconsistent state
/// by the poisoning of its own lock.
async fn caught<T>(work: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolError {
    PanicMessage::of(panic)
        .into_error(ErrorKind::Panic, "the tool crashed on this input")
        .with_hint("Try other arguments or another tool.")
}

/// The error for a call that was interrupted while it ran: its effect is unknown, unless the tool
/// only reads.
pub(crate) fn cut_short(error: ToolError, read_only: bool) -> ToolError {
    if read_only {
        return error;
    }
    error.with_hint("Whether it took effect is unknown: look before you call it again.")
}
