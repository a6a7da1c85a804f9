//! An instance made for one call, closed when the call has let go of it.

use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use toolcrib_tool::{CallContext, ErrorKind, Tool, ToolError, ToolFactory};

use super::LiveBody;
use crate::panics::PanicMessage;

/// An instance that one call uses. Whatever works with the instance keeps a clone, a thread of the
/// blocking pool too; the instance is closed when the last clone is gone, however the call ended.
#[derive(Debug, Clone)]
pub(crate) struct Lease(Arc<LiveBody>);

impl Lease {
    /// Makes the instance, by the context's deadline at the latest. Fails with what the factory says,
    /// `timeout`, or `panic`.
    pub(crate) async fn take(
        factory: &dyn ToolFactory,
        cx: &CallContext,
    ) -> Result<Self, ToolError> {
        // The call itself is guarded too: a factory may panic before it has a future to give.
        let create = AssertUnwindSafe(async { factory.create(cx).await }).catch_unwind();
        let created = match cx.deadline() {
            None => create.await,
            Some(at) => tokio::time::timeout_at(at.into(), create).await.map_err(|_| late())?,
        };
        let tool = created.unwrap_or_else(|panic| {
            Err(PanicMessage::of(panic.as_ref())
                .into_error(ErrorKind::Panic, "the tool crashed while it was made ready")
                .with_hint("Try another tool."))
        })?;
        Ok(Self(LiveBody::of(&tool, cx.definition().tool_name())))
    }
}

impl Deref for Lease {
    type Target = Arc<dyn Tool>;

    fn deref(&self) -> &Self::Target {
        self.0.tool()
    }
}

fn late() -> ToolError {
    ToolError::new(ErrorKind::Timeout, "it was not ready within its time limit and was not run")
        .with_hint("Nothing was run. Call again later.")
}
