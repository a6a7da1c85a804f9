//! The instance that a call runs on: a shared one, or one that is created for it and closed after
//! it.

use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use toolcrib_tool::{Body, CallContext, ErrorKind, Tool, ToolError, ToolFactory};

use super::LiveBody;
use crate::call::panics::PanicMessage;

/// The instance of a call.
#[derive(Debug, Clone)]
pub(crate) enum Instance<'a> {
    /// The shared instance, which the call's turn holds.
    Shared(&'a LiveBody),
    /// An instance for this call only.
    Leased(Lease),
}

impl<'a> Instance<'a> {
    /// The instance that all calls of an entry share.
    ///
    /// Fails with `unavailable` if it was closed after the tool was removed.
    pub(crate) fn shared(live: &'a LiveBody) -> Result<Self, ToolError> {
        if live.is_closed() { Err(removed()) } else { Ok(Self::Shared(live)) }
    }

    /// An instance for this call alone, which the entry's factory creates within `limit`.
    pub(crate) async fn own(
        body: &Body,
        cx: &CallContext,
        limit: Option<Duration>,
    ) -> Result<Self, ToolError> {
        match body {
            Body::PerUse(factory) => {
                Lease::take(factory.as_ref(), cx, limit).await.map(Self::Leased)
            }
            _ => Err(ToolError::internal("the tool has nothing that could run here")),
        }
    }

    pub(crate) fn tool(&self) -> &Arc<dyn Tool> {
        match self {
            Self::Shared(body) => body.tool(),
            Self::Leased(lease) => lease,
        }
    }

    /// A lease to hold while a thread works for the call.
    pub(crate) fn lease(&self) -> Option<Lease> {
        match self {
            Self::Shared(_) => None,
            Self::Leased(lease) => Some(lease.clone()),
        }
    }
}

/// An instance that one call uses. Everything that works with it holds a clone, including threads
/// of the blocking pool; it is closed when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Lease(Arc<LiveBody>);

impl Lease {
    /// Creates the instance within `limit`. Fails with the factory's error, `timeout`, or `panic`.
    pub(crate) async fn take(
        factory: &dyn ToolFactory,
        cx: &CallContext,
        limit: Option<Duration>,
    ) -> Result<Self, ToolError> {
        // A factory may also panic before it returns a future.
        let create = AssertUnwindSafe(async { factory.create(cx).await }).catch_unwind();
        let created = match limit {
            None => create.await,
            Some(limit) => tokio::time::timeout(limit, create).await.map_err(|_| late(limit))?,
        };
        let tool = created.unwrap_or_else(|panic| {
            Err(PanicMessage::of(panic.as_ref())
                .into_error(ErrorKind::Panic, "the tool crashed while it was made ready")
                .with_hint("Try another tool."))
        })?;
        Ok(Self(LiveBody::of_call(tool, cx.definition().tool_name())))
    }
}

impl Deref for Lease {
    type Target = Arc<dyn Tool>;

    fn deref(&self) -> &Self::Target {
        self.0.tool()
    }
}

fn late(limit: Duration) -> ToolError {
    let message = format!("it was not ready within its limit of {limit:?} and was not run");
    ToolError::new(ErrorKind::Timeout, message).with_hint("Nothing was run. Call again later.")
}

fn removed() -> ToolError {
    ToolError::unavailable("the tool was removed while this conversation still listed it")
        .with_hint("Nothing was run. Use another tool.")
}
