//! A listener with two tools behind it.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder};
use toolcrib_http::{HttpError, HttpServer, ServerConfig, Token};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{Layer, Source, Tool, ToolDefinition, ToolEntry, tool_fn};

pub(crate) const TOKEN: &str = "a-token-for-tests-only";

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// The calls of the tool `wait`.
    pub(crate) waits: Arc<Waits>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), HttpError>>,
}

/// Tells of calls that would never end by themselves.
#[derive(Default)]
pub(crate) struct Waits {
    pub(crate) begun: Notify,
    pub(crate) dropped: Notify,
}

/// One such call, as long as it lives.
struct Wait(Arc<Waits>);

impl Wait {
    fn begin(waits: &Arc<Waits>) -> Self {
        waits.begun.notify_one();
        Self(Arc::clone(waits))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

impl Running {
    /// Asks for a shutdown; gives the task that serves.
    pub(crate) fn stop(self) -> JoinHandle<Result<(), HttpError>> {
        self.stop.send(()).unwrap();
        self.serving
    }

    /// Shuts down and waits for the end.
    pub(crate) async fn end(self) {
        let serving = self.stop();
        timeout(Duration::from_secs(15), serving).await.expect("an end in time").unwrap().unwrap();
    }
}

/// Settings for a free port and the tests' token.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        token: Some(Token::new(TOKEN).unwrap()),
        ..ServerConfig::default()
    }
}

pub(crate) fn mcp(waits: Arc<Waits>) -> McpServer {
    let mut registry = RegistryBuilder::new();
    let _ = registry.register(entry("echo", tool_fn(|args: Value, _| async move { args })));
    let wait = tool_fn(move |_: Value, _| {
        let wait = Wait::begin(&waits);
        async move {
            let _wait = wait;
            pending::<String>().await
        }
    });
    let _ = registry.register(entry("wait", wait));
    let executor = Executor::new(Registry::new(registry.build()), ExecutorConfig::default());
    McpServer::new(executor, McpOptions::default())
}

fn entry(name: &str, body: impl Tool) -> ToolEntry {
    let definition = ToolDefinition::builder(name)
        .description("A tool for tests.")
        .input_schema(serde_json::json!({"type": "object"}))
        .build()
        .unwrap();
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "fixture"))
}

pub(crate) async fn start(config: ServerConfig) -> Running {
    let waits = Arc::<Waits>::default();
    let server = HttpServer::bind(config, mcp(Arc::clone(&waits))).await.unwrap();
    let address = server.local_addr();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async move {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    }));
    Running { address, waits, stop, serving }
}
