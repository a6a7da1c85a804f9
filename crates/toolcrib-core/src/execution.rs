//! Running a tool: its own check and its work, within the call's limit, whatever it does.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;
use toolcrib_tool::{
    Arguments, CallContext, ErrorKind, Tool, ToolDefinition, ToolError, ToolOutcome,
};

use crate::admission;
use crate::answers::Writing;
use crate::cancel::Cancellation;

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
}

/// Runs the tool's check and its work within the deadline, whatever it does.
pub(crate) async fn execute(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
    deadline: Option<Deadline>,
    cancellation: &Arc<Cancellation>,
    held: Held,
) -> Result<ToolOutcome, ToolError> {
    let cancel_when_dropped = cancellation.set_on_drop();
    let work = work(tool, arguments, cx, held);
    let Some(deadline) = deadline else {
        let outcome = work.await;
        cancel_when_dropped.disarm();
        return outcome;
    };

    let mut work = std::pin::pin!(work);
    if let Ok(outcome) = tokio::time::timeout_at(deadline.at, &mut work).await {
        cancel_when_dropped.disarm();
        return outcome;
    }
    cancellation.set();
    let error = timed_out(cx.definition(), deadline.limit);
    let wind_down = tool.wind_down();
    if wind_down.is_zero() {
        return Err(error);
    }
    let partial = match tokio::time::timeout(wind_down, work).await {
        Ok(Ok(ToolOutcome::Done(output))) => Some(output),
        Ok(Err(mut late)) => late.take_partial(),
        Ok(Ok(_)) | Err(_) => None,
    };
    Err(match partial {
        Some(partial) => error.with_partial(partial),
        None => error,
    })
}

/// The tool's check and its work, with panics caught, on the pool its definition asks for.
async fn work(
    tool: &Arc<dyn Tool>,
    arguments: Arguments,
    cx: &CallContext,
    held: Held,
) -> Result<ToolOutcome, ToolError> {
    async fn inner(
        tool: &dyn Tool,
        arguments: Arguments,
        cx: &CallContext,
    ) -> Result<ToolOutcome, ToolError> {
        tool.validate(&arguments, cx).await?;
        tool.call(arguments, cx).await
    }

    if cx.definition().blocking() {
        let (tool, cx) = (Arc::clone(tool), cx.clone());
        let runtime = tokio::runtime::Handle::current();
        let joined = tokio::task::spawn_blocking(move || {
            let _held = held;
            runtime.block_on(inner(tool.as_ref(), arguments, &cx))
        })
        .await;
        return joined.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => Err(panicked(panic.as_ref())),
            Err(error) => Err(ToolError::internal(format!("the blocking pool is closed: {error}"))),
        });
    }
    // A tool that panicked is asked again only through its own `&self`; what it left half done
    // behind a lock of its own, that lock's poisoning tells it.
    let outcome = AssertUnwindSafe(inner(tool.as_ref(), arguments, cx)).catch_unwind().await;
    drop(held);
    outcome.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> ToolError {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    ToolError::new(ErrorKind::Panic, "the tool crashed on this input")
        .with_hint("Try other arguments or another tool.")
        .with_source(PanicMessage(said.to_owned()))
}

/// What a panic said; for the operator's log.
#[derive(Debug)]
struct PanicMessage(String);

impl std::fmt::Display for PanicMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for PanicMessage {}

pub(crate) fn timed_out(definition: &ToolDefinition, limit: Duration) -> ToolError {
    let error = ToolError::new(
        ErrorKind::Timeout,
        format!("it ran longer than its limit of {limit:?} and was ended"),
    );
    if definition.annotations().read_only {
        error.with_hint("Ask for less at a time, or call again later.")
    } else {
        error.with_hint("Whether it took effect is unknown: look before you call it again.")
    }
}
