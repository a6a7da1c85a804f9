//! The memory that abandoned sessions use, in a separate process, so that nothing else is measured.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolcrib_core::{Change, Executor, Registry, SourceUnit};
use toolcrib_mcp::{McpBody, McpHttpOptions, McpHttpService, McpOptions, McpServer, McpSessions};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};
use tower::Service as _;

const SESSIONS: usize = 1_000;
const TOOLS: usize = 100;

async fn post(
    service: &mut McpHttpService,
    session: Option<&str>,
    message: &Value,
) -> http::Response<McpBody> {
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request.body(Full::new(Bytes::from(message.to_string()))).unwrap();
    let Ok(response) = service.call(request).await;
    response
}

async fn begin(service: &mut McpHttpService) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    let hello = post(service, None, &hello).await;
    let session = hello.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    hello.into_body().collect().await.unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(service, Some(&session), &ready).await.status(), StatusCode::ACCEPTED);
    session
}

/// The resident memory of this process, in kilobytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn declare(executor: &Executor, generation: usize) {
    let unit = SourceUnit::new(Layer::Host, "host");
    let entries = (0..TOOLS).map(|number| {
        let definition = ToolDefinition::builder(format!("tool_{number}"))
            .description(format!("Answer number {generation}."))
            .build()
            .unwrap();
        let body = tool_fn(|_: Value, _| async { "pong" });
        ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "host"))
    });
    let entries = entries.collect();
    executor.registry().apply([Change::Replace { unit, entries }]).unwrap();
}

/// 300 reloads, of which each session is notified.
async fn reload(executor: &Executor) {
    for generation in 1..=300 {
        declare(executor, generation);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn abandoned_sessions_share_their_state_and_use_little_memory() {
    let registry: Registry = Registry::scratch().build().unwrap();
    let executor = Executor::builder(registry).build();
    declare(&executor, 0);
    let server = McpServer::new(executor.clone(), McpOptions::default());
    let options = McpHttpOptions::default().sessions(McpSessions::of_at_most(SESSIONS));
    let mut service = server.http_service(options);
    for _ in 0..20 {
        begin(&mut service).await;
    }
    // The cost of as many reloads without the sessions.
    let before = resident();
    reload(&executor).await;
    let own = resident().saturating_sub(before);
    let before = resident();
    for _ in 0..SESSIONS {
        begin(&mut service).await;
    }
    let quiet = resident().saturating_sub(before) / SESSIONS;
    reload(&executor).await;
    let reloaded = resident().saturating_sub(before + own) / SESSIONS;
    println!("a session: {quiet} KB when quiet, {reloaded} KB after 300 reloads");
    assert!(quiet < 80, "{quiet} KB each");
    assert!(reloaded < quiet + 10, "{reloaded} KB each after reloads, {quiet} KB before");
}
