//! Calls as a [`tower_service::Service`], for hosts that wrap them with tower's layers.

use std::convert::Infallible;
use std::task::{Context, Poll};

use toolcrib_tool::{BoxFuture, ToolCall, ToolResult};
use tower_service::Service;

use crate::Turn;

/// Answers `(Turn, ToolCall)`. Feature `tower`.
///
/// It is always ready and never fails: limits, timeouts and refusals of the executor are failed
/// results. A layer that drops the future cancels the call.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use toolcrib_core::{
///     Executor, ExecutorConfig, ExecutorService, Registry, RegistryBuilder, TurnOptions,
/// };
/// use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let definition = ToolDefinition::builder("ping").description("Answer.").build()?;
/// let body = tool_fn(|_: serde_json::Value, _| async { "pong" });
/// let mut builder = RegistryBuilder::new();
/// let _ = builder.register(ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "doc")));
/// let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
///
/// let service = ServiceBuilder::new()
///     .concurrency_limit(64)
///     .timeout(Duration::from_secs(5))
///     .service(ExecutorService::new());
/// let turn = executor.turn(TurnOptions::default());
/// let result = service.oneshot((turn, ToolCall::new("1", "ping", "{}"))).await?;
/// assert_eq!(result.text(), "pong");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ExecutorService;

impl ExecutorService {
    /// Creates the service. The turn determines which executor answers.
    pub fn new() -> Self {
        Self
    }
}

impl Service<(Turn, ToolCall)> for ExecutorService {
    type Response = ToolResult;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<ToolResult, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (turn, call): (Turn, ToolCall)) -> Self::Future {
        Box::pin(async move { Ok(turn.call(call).await) })
    }
}
