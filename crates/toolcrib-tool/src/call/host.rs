//! What an executor offers the calls it runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{
    BoxFuture, Content, Services, StatusUpdate, ToolCall, ToolDefinition, ToolError, ToolFile,
    ToolOutput, ToolResult,
};

/// What is shown in the place of a secret.
pub const MASKED: &str = "[masked]";

/// Hides secrets in a stream of bytes. It is given one piece after another, and `None` at the end, and
/// appends to the vector what may be shown.
pub type ByteMask = Box<dyn FnMut(Option<&[u8]>, &mut Vec<u8>) + Send>;

/// Makes a [`ByteMask`] for each stream.
pub type ByteMasks = Arc<dyn Fn() -> ByteMask + Send + Sync>;

/// What the executor offers a running call. New methods come with defaults.
pub trait CallHost: Send + Sync {
    /// Completes when the call is cancelled; never, if it is not.
    fn cancelled(&self) -> BoxFuture<'_, ()>;

    /// Whether the call has been cancelled.
    fn is_cancelled(&self) -> bool;

    /// Told when the tool asks for something that is no part of the key under which its answer would
    /// be kept: the session, services, files, other tools, values that its definition does not inject.
    fn read_beyond_key(&self) {}

    /// Cancels the call: its time is over, or nobody waits for it any more. Called by the executor.
    fn cancel(&self) {}

    /// Answers a call made from within this one, which is a call of the tool `from`.
    fn call<'a>(&'a self, from: &'a ToolDefinition, call: ToolCall) -> BoxFuture<'a, ToolResult> {
        let _ = from;
        let (id, name, _) = call.into_parts();
        let error = ToolError::unavailable("this host takes no calls from within a call");
        Box::pin(std::future::ready(ToolResult::failure(id, name, error, Duration::ZERO)))
    }

    /// The tools that calls from within this one can reach and a question's words fit, the best first,
    /// at most `limit`.
    fn search(&self, question: &str, limit: usize) -> Vec<Arc<ToolDefinition>> {
        let _ = (question, limit);
        Vec::new()
    }

    /// The definition of a tool that calls from within this one can reach; or what a call of it would
    /// fail with.
    fn describe(&self, name: &str) -> Result<Arc<ToolDefinition>, ToolError> {
        let _ = name;
        Err(ToolError::unavailable("this host takes no calls from within a call"))
    }

    /// Tells whoever watches how far the call has come.
    fn status(&self, update: StatusUpdate) {
        let _ = update;
    }

    /// Streams a part to whoever listens; waits where the listener is slow and it is this call's
    /// turn to speak.
    fn stream(&self, part: Content) -> BoxFuture<'_, ()> {
        let _ = part;
        Box::pin(std::future::ready(()))
    }

    /// Sets the call's result; the last one set counts, and what the tool returns counts before it.
    fn set_result(&self, output: ToolOutput) {
        let _ = output;
    }

    /// What the host lends to its tools.
    fn services(&self) -> Option<&Services> {
        None
    }

    /// The files the request brought for tools of a type.
    fn files(&self, tool_type: &str) -> &[ToolFile] {
        let _ = tool_type;
        &[]
    }

    /// What hides the host's secrets in streams of bytes; `None` if the host hides nothing.
    fn byte_masks(&self) -> Option<ByteMasks> {
        None
    }

    /// When the call will be ended, if it has a limit and its work has begun.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The session the call belongs to.
    fn session(&self) -> Option<&str> {
        None
    }
}

/// The host of a context that was built without one: nothing cancels the call, and it can call
/// nobody.
#[derive(Debug, Clone, Copy)]
pub struct NoHost;

impl CallHost for NoHost {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
