//! The one thing a tool does: answer a call.

pub(crate) mod entry;
pub(crate) mod factory;
pub(crate) mod function;
pub(crate) mod native;
pub(crate) mod shared;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::{Arguments, CallContext, ContextValues, Plan, ToolDefinition, ToolError, ToolOutcome};

/// A future that can be sent between threads and kept behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The check of a tool that has none. It is empty, so that boxing it allocates nothing: a call pays
/// nothing for a hook its tool does not have.
struct Passes;

impl Future for Passes {
    type Output = Result<(), ToolError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(()))
    }
}

/// What must hold for every call of a tool beyond its schema: rules that stand beside the tool and not
/// in it. Checked after the schema and the context, before the tool's own
/// [`validate`](Tool::validate) and before anybody is asked.
pub trait Constraint: fmt::Debug + Send + Sync + 'static {
    /// Whether a call with these arguments, under these values of the host, may go on. The failure
    /// is the call's answer and reaches the model; its kind is `constraint`, whatever it says. It must
    /// not block, and what cannot be decided has to fail.
    fn check(&self, arguments: &Arguments, values: &ContextValues) -> Result<(), ToolError>;
}

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

    /// Checks what the schema cannot say, before anything runs and before anybody is asked. A
    /// failure answers the call with kind `constraint`. It must not block its thread, also where the
    /// tool is `blocking`.
    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = (arguments, cx);
        Box::pin(Passes)
    }

    /// Whether [`validate`](Self::validate) has anything to say; if not, it is not asked, and a call
    /// that is answered from the cache is spared what asking takes. The same for the life of the
    /// instance. Default: `true`.
    ///
    /// Tools made by `#[tool]` and [`tool_fn`](crate::tool_fn) say so themselves.
    fn validates(&self) -> bool {
        true
    }

    /// What a call with these arguments would do, for people who want to see it first: starts,
    /// sends and writes nothing. `None`: the tool cannot say. Default: `None`.
    ///
    /// Fails as the call itself would, where that is known beforehand.
    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        let _ = (arguments, cx);
        Ok(None)
    }

    /// A text that changes whenever the code changes that a call would run, where that can happen
    /// behind the definition's back: for a program the files that it is, with their digests. A call that
    /// waits for approval is refused if this has changed when it is approved. Default: `None`, for code
    /// that cannot change while the host runs.
    ///
    /// Asked only for calls that somebody is asked about. It may read files, and must not wait for
    /// anything else.
    fn code(&self) -> Option<String> {
        None
    }

    /// The tool that a call with these arguments, a JSON text, is handed on to, for tools that do
    /// nothing but hand a call on: no work before that call, none after it, and its answer is theirs.
    /// Where the call it makes has to wait, for approval for example, nothing of such a call is kept in
    /// memory: it ends, and is made again when that one has its answer. Calls of other tools stay at work
    /// and wait ([`CallContext::call`]). Default: `None`.
    fn delegates_to(&self, arguments: &str) -> Option<String> {
        let _ = arguments;
        None
    }

    /// The definition as it should be now, for tools whose description or schema depends on
    /// something that changes (a database's tables, a directory of models). `None`: as it is.
    ///
    /// Asked when the host says that the tool's source has changed, and every
    /// [`refresh_every`](ToolDefinition::refresh_every). The name cannot change. If it fails or
    /// takes too long, the definition in use stays and the failure is logged.
    fn refresh<'a>(
        &'a self,
        current: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Option<ToolDefinition>, ToolError>> {
        let _ = current;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Lets go of what the tool holds: connections, processes, files. Called once, when the last
    /// call that uses this instance is over and nobody can call it any more.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// How long after its deadline or its cancellation a call may take to end what it started and
    /// hand over what it has; then its future is dropped. Default: no time at all.
    ///
    /// A tool that returns more than zero must watch [`CallContext::cancelled`].
    fn wind_down(&self) -> Duration {
        Duration::ZERO
    }
}
