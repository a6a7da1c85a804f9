//! The one thing a tool does: answer a call.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::{Arguments, CallContext, ToolError, ToolOutcome};

/// A future that can be sent between threads and kept behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The body of a tool. One instance serves many calls at once, so state lives in the session or
/// in what the tool shares deliberately, never in mutable globals.
///
/// Most tools are written as functions: with `#[tool]`, or with [`tool_fn`](crate::tool_fn).
///
/// Dropping the future cancels the call: whatever it started must end with it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "write a fn with `#[tool]`, wrap a closure with `tool_fn`, or implement `Tool`"
)]
pub trait Tool: Send + Sync + 'static {
    /// Does the work. The arguments fit the tool's schema.
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>>;

    /// Checks what the schema cannot say, before anything runs. A failure answers the call with
    /// kind `constraint`.
    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = (arguments, cx);
        Box::pin(std::future::ready(Ok(())))
    }

    /// How long after its deadline or its cancellation a call may take to end what it started and
    /// hand over what it has; then its future is dropped. Default: no time at all.
    ///
    /// A tool that returns more than zero must watch [`CallContext::cancelled`].
    fn wind_down(&self) -> Duration {
        Duration::ZERO
    }
}
