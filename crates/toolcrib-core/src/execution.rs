//! Running a tool within the call's limit, whatever it does.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use toolcrib_tool::{
    Arguments, CallContext, ErrorKind, Tool, ToolDefinition, ToolError, ToolOutcome,
};

use crate::admission;
use crate::answers::Writing;
use crate::lifecycle::Lease;
use crate::panics::PanicMessage;

/// When a call ends at the latest, and how long that was from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) limit: Duration,
    pub(crate) at: Instant,
}

/// What a call keeps as long as its work goes on, answered or not: a thread cannot be stopped.
#[expect(dead_code, reason = "kept for what their drop does")]
pub(crate) struct Held {
    /// One of the calls the tool may run at once.
    pub(crate) slot: Option<Arc<admission::Slot>>,
    /// That what the tool writes may be changing.
    pub(crate) writing: Option<Writing>,
    /// The instance, if it is the call's own.
    pub(crate) lease: Option<Lease>,
}

/// Cancels a call when dropped: one that nobody waits for any more must not go on unseen, and a
/// blocking tool only learns of it here.
struct CancelOnDrop<'a>(Option<&'a CallContext>);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(cx) = self.0 {
            cx.host().cancel();
        }
    }
}

/// Runs the tool within the deadline; `blocking`: on the pool for that.
pub(crate) async fn execute(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
    blocking: bool,
    deadline: Option<Deadline>,
    held: Held,
) -> Result<ToolOutcome, ToolError> {
    let mut cancel_when_dropped = CancelOnDrop(Some(cx));
    let mut work = pin!(work(tool, arguments, cx, blocking, held));
    // A tool that is ready at once needs no timer.
    if let Poll::Ready(outcome) = poll_once(work.as_mut()).await {
        cancel_when_dropped.0 = None;
        return outcome;
    }
    let Some(deadline) = deadline else {
        let outcome = work.await;
        cancel_when_dropped.0 = None;
        return outcome;
    };
    if let Ok(outcome) = tokio::time::timeout_at(deadline.at, &mut work).await {
        cancel_when_dropped.0 = None;
        return outcome;
    }
    cx.host().cancel();
    let error = timed_out(cx.definition(), deadline.limit);
    let wind_down = tool.wind_down();
    if wind_down.is_zero() {
        return Err(error);
    }
    let partial = match tokio::time::timeout(wind_down, work).await {
        // A tool whose output is of use however far it came.
        Ok(Ok(ToolOutcome::Done(output))) if output.timed_out() => return Ok(output.into()),
        Ok(Ok(ToolOutcome::Done(output))) => Some(output),
        Ok(Err(mut late)) => late.take_partial(),
        Ok(Ok(_)) | Err(_) => None,
    };
    Err(match partial {
        Some(partial) => error.with_partial(partial),
        None => error,
    })
}

/// The tool's work with panics caught, on the pool its definition asks for.
async fn work(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
    blocking: bool,
    held: Held,
) -> Result<ToolOutcome, ToolError> {
    if blocking {
        let (tool, cx) = (Arc::clone(tool), cx.clone());
        let runtime = tokio::runtime::Handle::current();
        let joined = tokio::task::spawn_blocking(move || {
            let _held = held;
            runtime.block_on(tool.call(arguments, &cx))
        })
        .await;
        return joined.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(panicked(panic.as_ref())),
            Err(error) => Err(ToolError::internal(format!("the blocking pool is closed: {error}"))),
        });
    }
    let outcome = caught(async { tool.call(arguments, cx).await }).await;
    drop(held);
    outcome
}

/// The tool's own check of its arguments, within `limit`.
pub(crate) async fn validate(
    tool: &dyn Tool,
    arguments: &Arguments,
    cx: &CallContext,
    limit: Option<Duration>,
) -> Result<(), ToolError> {
    if !tool.validates() {
        return Ok(());
    }
    // Whatever the tool calls it, a check that fails is a rule of the tool's own.
    let refused = |error: ToolError| error.with_kind(ErrorKind::Constraint);
    let mut check = pin!(caught(async { tool.validate(arguments, cx).await.map_err(refused) }));
    if let Poll::Ready(outcome) = poll_once(check.as_mut()).await {
        return outcome;
    }
    match limit {
        None => check.await,
        Some(limit) => match tokio::time::timeout(limit, check).await {
            Ok(outcome) => outcome,
            Err(_) => Err(timed_out(cx.definition(), limit)),
        },
    }
}

/// Polls a future once: most are ready then, and what waiting takes need not be set up for them.
pub(crate) async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

/// A tool that panicked is asked again only through its own `&self`; what it left half done behind
/// a lock of its own, that lock's poisoning tells it.
async fn caught<T>(work: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolError {
    PanicMessage::of(panic)
        .into_error(ErrorKind::Panic, "the tool crashed on this input")
        .with_hint("Try other arguments or another tool.")
}

pub(crate) fn timed_out(definition: &ToolDefinition, limit: Duration) -> ToolError {
    let error = ToolError::new(
        ErrorKind::Timeout,
        format!("it ran longer than its limit of {limit:?} and was ended"),
    );
    if definition.annotations().read_only {
        error.with_hint("Ask for less at a time, or call again later.")
    } else {
        cut_short(error, false)
    }
}

/// The error of a call that was ended while it ran: what it had done by then is unknown, unless its
/// tool only reads.
pub(crate) fn cut_short(error: ToolError, read_only: bool) -> ToolError {
    if read_only {
        return error;
    }
    error.with_hint("Whether it took effect is unknown: look before you call it again.")
}
