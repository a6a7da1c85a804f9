//! The middleware stack of an executor, and the rest of it for one call.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use toolcrib_tool::{BoxFuture, CallId, ErrorKind, ToolCall, ToolResult};

use super::Middleware;
use crate::Turn;
use crate::call::panics::PanicMessage;

/// Answers a call after the last middleware.
type Innermost<'a> = dyn Fn(ToolCall) -> BoxFuture<'a, ToolResult> + Send + Sync + 'a;

/// All middleware of an executor, outermost first.
#[derive(Clone, Default)]
pub(crate) struct Stack(Vec<Arc<dyn Middleware>>);

impl Stack {
    /// Adds an innermost middleware.
    pub(crate) fn push(&mut self, middleware: impl Middleware) {
        self.0.push(Arc::new(middleware));
    }

    /// Whether there is no middleware.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers a call through the whole stack.
    pub(crate) async fn run<'a>(
        &'a self,
        turn: &'a Turn,
        call: ToolCall,
        innermost: &'a Innermost<'a>,
    ) -> ToolResult {
        let id = call.id().clone();
        Next { turn, id, rest: &self.0, innermost }.run(call).await
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stack").field(&self.0.len()).finish()
    }
}

/// The rest of the stack after a middleware, and finally the call itself.
#[derive(Clone)]
pub struct Next<'a> {
    turn: &'a Turn,
    /// The caller's id, which the answer gets even if a middleware changes it.
    id: CallId,
    rest: &'a [Arc<dyn Middleware>],
    innermost: &'a Innermost<'a>,
}

impl<'a> Next<'a> {
    /// Answers a call. It always gets the id of the caller's call.
    ///
    /// Running a clone runs the call again.
    pub fn run(self, call: ToolCall) -> BoxFuture<'a, ToolResult> {
        let call = if *call.id() == self.id { call } else { call.with_id(self.id.clone()) };
        let Some((first, rest)) = self.rest.split_first() else {
            return (self.innermost)(call);
        };
        Box::pin(async move {
            let started = Instant::now();
            let name = call.name().to_owned();
            let Self { turn, id, .. } = self.clone();
            let next = Self { rest, ..self };
            // Unwind safe: a middleware notices inconsistent state by the poisoning of its own
            // lock.
            let answer = AssertUnwindSafe(async { first.around(turn, call, next).await });
            let result = answer.catch_unwind().await.unwrap_or_else(|panic| {
                let error = PanicMessage::of(panic.as_ref())
                    .into_error(ErrorKind::Internal, "a hook of the host crashed on this call")
                    .with_hint("Tell the user; calling again will not help.");
                let source = error.source().map(ToString::to_string);
                tracing::error!(tool = name, call_id = %id, source, "a middleware panicked");
                ToolResult::failure(id.clone(), name, error, started.elapsed())
            });
            if *result.call_id() == id { result } else { result.with_call_id(id) }
        })
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("id", &self.id).field("left", &self.rest.len()).finish()
    }
}
