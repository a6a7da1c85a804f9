//! The trait of a tool's body: it answers calls.

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

use crate::{
    Arguments, CallContext, ContextValues, PartialArguments, Plan, StatusUpdate, ToolDefinition,
    ToolError, ToolOutcome,
};

/// A future that can be sent between threads and kept behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The check of a tool without one. It is zero-sized, so boxing it allocates nothing, and calls pay nothing for a
/// missing hook.
struct NoCheck;

impl Future for NoCheck {
    type Output = Result<(), ToolError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(()))
    }
}

/// A condition on every call of a tool, beyond its schema: rules that are declared with the tool but not part of its
/// code. Checked after the schema and the context, before the tool's own [`validate`](Tool::validate) and before
/// anybody is asked for approval.
pub trait Constraint: fmt::Debug + Send + Sync + 'static {
    /// Whether a call with these arguments and context values may continue. The failure is the call's answer and
    /// reaches the model; its kind becomes `constraint`. It must not block, and must fail if it cannot decide.
    fn check(&self, arguments: &Arguments, values: &ContextValues) -> Result<(), ToolError>;
}

/// The body of a tool. One instance serves many calls at once, so state lives in the session or in data that the tool
/// shares deliberately, never in mutable globals.
///
/// Most tools are written as functions: with `#[tool]`, or with [`tool_fn`](crate::tool_fn).
///
/// Dropping the future cancels the call: everything that it started must end with it.
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

    /// Checks what the schema cannot express, before anything runs and before anybody is asked for approval. A failure
    /// answers the call with kind `constraint`. It must not block its thread, even if the tool is `blocking`.
    fn validate<'a>(
        &'a self,
        arguments: &'a Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = (arguments, cx);
        Box::pin(NoCheck)
    }

    /// Whether [`validate`](Self::validate) checks anything. If not, it is not called, which makes answers from the
    /// cache faster. Constant for the life of the instance. Default: `true`.
    ///
    /// Tools made by `#[tool]` and [`tool_fn`](crate::tool_fn) set it themselves.
    fn validates(&self) -> bool {
        true
    }

    /// What a call with these arguments would do, for people who want to see it first; starts, sends and writes
    /// nothing. The default `None` means that the tool cannot tell.
    ///
    /// Fails as the call itself would, if that is known beforehand.
    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        let _ = (arguments, cx);
        Ok(None)
    }

    /// What people see while a model still writes the arguments, for example the file and how many lines of it are
    /// written. It sees only what is written so far, unchecked, and must start nothing and return quickly. Called again
    /// and again as the text grows, only if the tool [previews](Self::previews). Default: `None`.
    fn preview(&self, partial: &PartialArguments<'_>) -> Option<StatusUpdate> {
        let _ = partial;
        None
    }

    /// Whether [`preview`](Self::preview) ever returns anything. Constant for the life of the instance. Default:
    /// `false`, so that nobody pays for it.
    fn previews(&self) -> bool {
        false
    }

    /// A text that changes whenever the code of a call changes without a change of the definition: for a program, its
    /// files with their digests. A call that waits for approval is refused if this text has changed when it is
    /// approved. The default `None` is for code that cannot change while the host runs.
    ///
    /// Called only for calls that need approval. It may read files, but must not wait for anything else.
    fn code(&self) -> Option<String> {
        None
    }

    /// The tool to which a call with these arguments, a JSON text, is delegated, for tools that only pass calls on:
    /// they do no work before or after that call, and its answer is theirs. If the delegated call has to wait, for
    /// approval for example, this call is not kept in memory: it ends, and is made again when the other one has its
    /// answer. Calls of other tools keep running and wait ([`CallContext::call`]). Default: `None`.
    fn delegates_to(&self, arguments: &str) -> Option<String> {
        let _ = arguments;
        None
    }

    /// The current definition, for tools whose description or schema depends on something that changes (a database's
    /// tables, a directory of models). `None` means no change.
    ///
    /// Called when the host reports that the tool's source has changed, and every
    /// [`refresh_every`](ToolDefinition::refresh_every). The name cannot change. If it fails or takes too long, the
    /// definition in use stays and the failure is logged.
    fn refresh<'a>(
        &'a self,
        current: &'a ToolDefinition,
    ) -> BoxFuture<'a, Result<Option<ToolDefinition>, ToolError>> {
        let _ = current;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Releases the tool's resources: connections, processes, files. Called once, when the last call that uses this
    /// instance is over and nobody can call it any more.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// How long after its deadline or its cancellation a call may take to end what it started and return its partial
    /// output; then its future is dropped. Default: zero.
    ///
    /// A tool that returns more than zero must watch [`CallContext::cancelled`].
    fn wind_down(&self) -> Duration {
        Duration::ZERO
    }
}
