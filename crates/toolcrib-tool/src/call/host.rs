//! The executor's interface for running calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{
    BoxFuture, Content, Services, StatusUpdate, ToolCall, ToolDefinition, ToolError, ToolFile,
    ToolOutput, ToolResult,
};

/// The replacement for a secret.
pub const MASKED: &str = "[masked]";

/// Masks secrets in a stream of bytes. It gets one piece after another, then `None` at the end, and appends the masked
/// bytes to the vector.
pub type ByteMask = Box<dyn FnMut(Option<&[u8]>, &mut Vec<u8>) + Send>;

/// Makes a [`ByteMask`] for each stream.
pub type ByteMasks = Arc<dyn Fn() -> ByteMask + Send + Sync>;

/// The executor's interface for a running call. New methods have default implementations.
pub trait CallHost: Send + Sync {
    /// Completes when the call is cancelled, otherwise never.
    fn cancelled(&self) -> BoxFuture<'_, ()>;

    /// Whether the call has been cancelled.
    fn is_cancelled(&self) -> bool;

    /// Called when the tool reads something that is not part of its cache key: the session, services, files, other
    /// tools, or values that its definition does not inject.
    fn read_beyond_key(&self) {}

    /// Cancels the call: its time is over, or nobody waits for it any more. For the executor.
    fn cancel(&self) {}

    /// Answers a nested call from the tool `from`.
    fn call<'a>(&'a self, from: &'a ToolDefinition, call: ToolCall) -> BoxFuture<'a, ToolResult> {
        let _ = from;
        let (id, name, _) = call.into_parts();
        let error = ToolError::unavailable("this host does not support nested calls");
        Box::pin(std::future::ready(ToolResult::failure(id, name, error, Duration::ZERO)))
    }

    /// The tools that nested calls can reach and that match a question's words, the best first, at most `limit`.
    fn search(&self, question: &str, limit: usize) -> Vec<Arc<ToolDefinition>> {
        let _ = (question, limit);
        Vec::new()
    }

    /// The definition of a tool that nested calls can reach, or the error that a call would get.
    fn describe(&self, name: &str) -> Result<Arc<ToolDefinition>, ToolError> {
        let _ = name;
        Err(ToolError::unavailable("this host does not support nested calls"))
    }

    /// Reports the progress of the call to listeners.
    fn status(&self, update: StatusUpdate) {
        let _ = update;
    }

    /// Whether there may be listeners to [`status`](Self::status) and [`stream`](Self::stream).
    fn is_watched(&self) -> bool {
        false
    }

    /// Streams a part to listeners; waits for a slow listener when it is this call's turn.
    fn stream(&self, part: Content) -> BoxFuture<'_, ()> {
        let _ = part;
        Box::pin(std::future::ready(()))
    }

    /// Sets the call's result. The last one set counts, but a value that the tool returns takes precedence.
    fn set_result(&self, output: ToolOutput) {
        let _ = output;
    }

    /// The services that the host lends to its tools.
    fn services(&self) -> Option<&Services> {
        None
    }

    /// The files that the request contains for tools of a type.
    fn files(&self, tool_type: &str) -> &[ToolFile] {
        let _ = tool_type;
        &[]
    }

    /// Masks the host's secrets in streams of bytes; `None` if the host masks nothing.
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

/// The host of a context that was built without one: nothing cancels the call, and it has no other tools.
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
