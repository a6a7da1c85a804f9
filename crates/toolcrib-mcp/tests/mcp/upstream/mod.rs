//! The promises about tools of other MCP servers, whatever these servers do.

mod calls;
mod definitions;
mod hostile;
mod http;
mod joints;
mod lifetime;
mod links;
mod offers;
mod progress;
mod questions;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
use toolcrib_mcp::upstream::{
    MemoryPins, PinStore, Review, StdioServer, Upstream, UpstreamState, Upstreams,
};
use toolcrib_tool::{ToolCall, ToolResult};

/// Longer than anything in these tests takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The scripted server's secret.
const HIDDEN: &str = "CTL\u{1b}\u{9b}-one\r\r\ntwo";

/// Panics if a text contains a part of the secret.
#[track_caller]
fn assert_hidden(text: &str) {
    assert!(text.contains("[mas"), "{text}");
    for part in ["CTL", "-one", "two"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

/// A scripted server's files.
struct Scripted {
    folder: TempDir,
}

impl Scripted {
    /// A server with these tools.
    fn new(tools: &[&str]) -> Self {
        let scripted = Self { folder: tempfile::tempdir().unwrap() };
        scripted.says(&json!({"tools": tools.iter().map(|name| tool(name)).collect::<Vec<_>>()}));
        scripted
    }

    /// Rewrites the script; the server reads it when its tools are requested.
    fn says(&self, script: &Value) {
        let (path, fresh) = (self.path(), self.folder.path().join("fresh"));
        fs::write(&fresh, script.to_string()).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("script.json")
    }

    fn server(&self) -> StdioServer {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/upstream/server.py");
        StdioServer::new("python3").args(["-I", "-S", program, self.path().to_str().unwrap()])
    }

    /// It as an upstream with an immediate reconnect.
    fn upstream(&self, name: &str) -> Upstream {
        Upstream::stdio(name, self.server())
            .reconnect(Duration::from_millis(10), Duration::from_millis(50))
            .connect_timeout(Duration::from_secs(10))
    }

    /// The answers to its questions.
    fn answers(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.path().with_extension("json.log")).unwrap_or_default();
        let messages = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answers = messages.filter(|message| message.get("method").is_none());
        answers.map(|message| message["result"].clone()).collect()
    }

    /// The requests and notifications of this method that it got.
    fn heard(&self, method: &str) -> Vec<Value> {
        let log = fs::read_to_string(self.path().with_extension("json.log")).unwrap_or_default();
        let messages = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.filter(|message| message["method"] == method).collect()
    }
}

/// A tool that takes anything.
fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("It is {name}."), "inputSchema": {"type": "object"}})
}

/// An executor whose tools come from upstreams.
struct Room {
    executor: Executor,
    upstreams: Upstreams,
}

impl Room {
    async fn with(upstreams: impl IntoIterator<Item = Upstream>) -> Self {
        let room = Self::pinned(upstreams, Arc::new(MemoryPins::default())).await;
        assert!(room.upstreams.settled(PATIENCE).await);
        room
    }

    async fn pinned(
        upstreams: impl IntoIterator<Item = Upstream>,
        pins: Arc<dyn PinStore>,
    ) -> Self {
        let registry = Registry::new(RegistryBuilder::new().build());
        let executor = Executor::new(registry, ExecutorConfig::default());
        let room = Self { upstreams: Upstreams::new(executor.clone(), pins), executor };
        room.upstreams.set(upstreams).await;
        room
    }

    async fn reviewed(upstream: Upstream, review: Arc<dyn Review>) -> Self {
        let registry = Registry::new(RegistryBuilder::new().build());
        let executor = Executor::new(registry, ExecutorConfig::default());
        let pins = Arc::new(MemoryPins::default());
        let room =
            Self { upstreams: Upstreams::reviewed(executor.clone(), pins, review), executor };
        room.upstreams.set([upstream]).await;
        assert!(room.upstreams.settled(PATIENCE).await);
        room
    }

    /// The details of a tool.
    fn remark(&self, tool: &str) -> Option<String> {
        let snapshot = self.executor.registry().snapshot();
        snapshot.get(tool)?.remark.as_deref().map(str::to_owned)
    }

    async fn call(&self, tool: &str) -> ToolResult {
        self.call_with(tool, &json!({})).await
    }

    async fn call_with(&self, tool: &str, arguments: &Value) -> ToolResult {
        let turn = self.executor.turn(TurnOptions::default());
        turn.call(ToolCall::new("call", tool, arguments.to_string())).await
    }

    /// The names that a model gets.
    fn listed(&self) -> Vec<String> {
        let turn = self.executor.turn(TurnOptions::default());
        turn.definitions().iter().map(|definition| definition.name().to_owned()).collect()
    }

    /// Why a tool cannot be called.
    fn unavailable(&self, tool: &str) -> Option<String> {
        let snapshot = self.executor.registry().snapshot();
        snapshot.get(tool)?.unavailable_reason().map(str::to_owned)
    }

    fn state(&self, upstream: &str) -> UpstreamState {
        let status = self.upstreams.status();
        status.into_iter().find(|status| status.name == upstream).unwrap().state
    }
}

/// Waits until the condition holds.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let what = what.to_owned();
    async move {
        let reached = timeout(PATIENCE, async {
            while !holds() {
                sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(reached.await.is_ok(), "it never came to this: {what}");
    }
}
