//! Limits for work whose cost depends on its input: a time limit, and a separate stack.

#[cfg(feature = "jq")]
use std::thread;
use std::time::{Duration, Instant};

use toolcrib_tool::{CallContext, ErrorKind, ToolError};

/// The stack for recursive work, in bytes. This is address space; only used pages take memory.
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Why work was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// Its time ran out.
    Time,
    /// The caller cancelled it.
    Cancelled,
}

/// Decides when work has to stop. Each check reads the clock, so check only now and then.
pub(super) struct StopCheck {
    deadline: Instant,
    cx: CallContext,
}

impl StopCheck {
    /// Stops after `limit`, at the call's own deadline, or when the call is cancelled.
    pub(super) fn new(cx: &CallContext, limit: Duration) -> Self {
        let own = Instant::now() + limit;
        let deadline = cx.deadline().map_or(own, |call| call.min(own));
        Self { deadline, cx: cx.clone() }
    }

    /// Why to stop now, or `None`.
    pub(super) fn stop(&self) -> Option<StopReason> {
        if self.cx.is_cancelled() {
            return Some(StopReason::Cancelled);
        }
        (Instant::now() >= self.deadline).then_some(StopReason::Time)
    }

    /// Like [`stop`](Self::stop), as an error for the caller.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        self.stop().map_or(Ok(()), |stop| Err(stop.into_error()))
    }
}

impl StopReason {
    /// The error for a stopped call.
    pub(super) fn into_error(self) -> ToolError {
        match self {
            Self::Time => ToolError::execution("it took too long")
                .with_hint("Ask for less: a smaller input or a simpler expression."),
            Self::Cancelled => ToolError::new(ErrorKind::Cancelled, "the call was cancelled"),
        }
    }
}

/// Runs recursive work on a thread whose stack is large enough for every permitted input.
///
/// `Err` contains the panic's payload.
#[cfg(feature = "jq")]
pub(super) fn on_own_stack<T: Send>(
    work: impl FnOnce() -> T + Send,
) -> Result<thread::Result<T>, ToolError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("toolcrib-data".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|error| {
                ToolError::internal("no thread could be started for this call").with_source(error)
            })?;
        Ok(worker.join())
    })
}
