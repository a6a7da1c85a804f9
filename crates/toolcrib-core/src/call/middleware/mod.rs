//! Middleware: a host's own hooks around every call.

mod adapters;
mod stack;

use toolcrib_tool::{BoxFuture, ToolCall, ToolResult};

use crate::Turn;

pub use self::adapters::{after, before};
pub use self::stack::Next;
pub(crate) use self::stack::Stack;

/// A hook around every call, including nested ones: it sees the call before any check and the
/// answer after all processing.
///
/// The first one added is the outermost: it sees calls first and answers last. The call that it
/// passes to [`Next::run`] is checked like any other, so rewriting cannot bypass a schema. It may
/// answer without running the call, run it more than once, or change the answer; the caller gets
/// one answer, with the id of its call. If a middleware panics, the call fails with kind
/// `internal`.
///
/// For hooks on one side only, use [`before`] and [`after`].
///
/// ```
/// use std::time::Instant;
/// use toolcrib_core::{Middleware, Next, Turn};
/// use toolcrib_tool::{BoxFuture, ToolCall, ToolResult};
///
/// /// Prints how long each call took.
/// struct Stopwatch;
///
/// impl Middleware for Stopwatch {
///     fn around<'a>(
///         &'a self,
///         _turn: &'a Turn,
///         call: ToolCall,
///         next: Next<'a>,
///     ) -> BoxFuture<'a, ToolResult> {
///         Box::pin(async move {
///             let started = Instant::now();
///             let result = next.run(call).await;
///             println!("{} took {:?}", result.tool(), started.elapsed());
///             result
///         })
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a middleware",
    note = "implement `Middleware`, or use `before` or `after` with a closure"
)]
pub trait Middleware: Send + Sync + 'static {
    /// Answers a call; [`Next::run`] passes it on.
    fn around<'a>(
        &'a self,
        turn: &'a Turn,
        call: ToolCall,
        next: Next<'a>,
    ) -> BoxFuture<'a, ToolResult>;
}

#[cfg(test)]
mod tests;
