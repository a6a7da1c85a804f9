//! What a running call can ask of its executor: whether it is cancelled, and calls of its own.

use std::sync::Arc;

use toolcrib_tool::{BoxFuture, CallHost, ToolCall, ToolResult};

use crate::admission::Lineage;
use crate::cancel::Cancellation;
use crate::{Turn, pipeline};

/// The host of one call.
pub(crate) struct Host {
    pub(crate) cancellation: Arc<Cancellation>,
    pub(crate) turn: Turn,
    pub(crate) lineage: Lineage,
}

impl CallHost for Host {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        self.cancellation.cancelled()
    }

    fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, ToolResult> {
        Box::pin(pipeline::run(&self.turn, call, &self.lineage, None))
    }
}
