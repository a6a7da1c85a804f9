//! Middleware from closures, for hooks before or after a call.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use toolcrib_tool::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolResult};

use super::{Middleware, Next};
use crate::Turn;

/// Middleware that runs before calls are checked: it may rewrite the call, answer it
/// (`Break(Ok(..))`) or refuse it (`Break(Err(..))`).
///
/// ```
/// use std::ops::ControlFlow;
/// use toolcrib_core::before;
/// use toolcrib_tool::{ToolCall, ToolError};
///
/// // Keep an old name working.
/// let _renamed = before(|_turn, call| {
///     if call.name() == "search_web" {
///         *call = call.clone().with_name("web_search");
///     }
///     ControlFlow::Continue(())
/// });
/// // Refuse writing tools at night.
/// let _quiet = before(|turn, call| {
///     let writes = turn.describe(call.name()).is_some_and(|tool| !tool.annotations().read_only);
///     if writes {
///         return ControlFlow::Break(Err(ToolError::denied("nothing is changed at night")));
///     }
///     ControlFlow::Continue(())
/// });
/// // Answer without running the tool.
/// let _version = before(|_turn, call| match call.name() {
///     "version" => ControlFlow::Break(Ok("1.4.2".into())),
///     _ => ControlFlow::Continue(()),
/// });
/// ```
pub fn before<F>(hook: F) -> impl Middleware
where
    F: Fn(&Turn, &mut ToolCall) -> ControlFlow<Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
{
    BeforeHook(hook)
}

/// Middleware that runs after calls and may replace their answers.
///
/// ```
/// use toolcrib_core::after;
/// use toolcrib_tool::ToolError;
///
/// let _counted = after(|_turn, result| {
///     if let Some(kind) = result.error_kind() {
///         println!("{} failed: {kind}", result.tool());
///     }
/// });
/// ```
pub fn after<F>(hook: F) -> impl Middleware
where
    F: Fn(&Turn, &mut ToolResult) + Send + Sync + 'static,
{
    AfterHook(hook)
}

struct BeforeHook<F>(F);

impl<F> Middleware for BeforeHook<F>
where
    F: Fn(&Turn, &mut ToolCall) -> ControlFlow<Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
{
    fn around<'a>(
        &'a self,
        turn: &'a Turn,
        mut call: ToolCall,
        next: Next<'a>,
    ) -> BoxFuture<'a, ToolResult> {
        match (self.0)(turn, &mut call) {
            ControlFlow::Continue(()) => next.run(call),
            ControlFlow::Break(outcome) => {
                let (id, name, _) = call.into_parts();
                let answer = match outcome {
                    Ok(output) => ToolResult::success(id, name, output, Duration::ZERO),
                    Err(error) => ToolResult::failure(id, name, error, Duration::ZERO),
                };
                Box::pin(std::future::ready(answer))
            }
        }
    }
}

struct AfterHook<F>(F);

impl<F> Middleware for AfterHook<F>
where
    F: Fn(&Turn, &mut ToolResult) + Send + Sync + 'static,
{
    fn around<'a>(
        &'a self,
        turn: &'a Turn,
        call: ToolCall,
        next: Next<'a>,
    ) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let mut result = next.run(call).await;
            (self.0)(turn, &mut result);
            result
        })
    }
}

impl<F> fmt::Debug for BeforeHook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeforeHook")
    }
}

impl<F> fmt::Debug for AfterHook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AfterHook")
    }
}
