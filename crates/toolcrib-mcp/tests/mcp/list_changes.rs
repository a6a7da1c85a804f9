//! Clients are notified when their list of tools changes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_core::{Executor, Mock, Registry, ToolFilter, Toolset, TurnOptions};
use toolcrib_mcp::{McpHttpOptions, McpOptions, McpServer};
use toolcrib_tool::ToolDefinition;
use tower::Service as _;

use crate::wire::Wire;

const CHANGED: &str = "notifications/tools/list_changed";

fn tool(name: &str) -> toolcrib_tool::ToolEntry {
    let definition = ToolDefinition::builder(name).description("Answer.").build().unwrap();
    Mock::tool(definition).answers("pong").entry()
}

/// A server over tools that begin with `a`, and the executor behind it.
fn server() -> (McpServer, Executor) {
    let registry: Registry = Registry::scratch().build().unwrap();
    let executor = Executor::builder(registry).build();
    let toolset = Toolset::new().include(ToolFilter::new().name("a*"));
    let options = McpOptions::default().turn(TurnOptions::default().toolset(toolset));
    (McpServer::new(executor.clone(), options), executor)
}

fn register(executor: &Executor, name: &str) {
    let _ = executor.registry().register(tool(name)).unwrap();
}

fn listen() -> Value {
    json!({
        "notifications": {"toolsListChanged": true},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    })
}

#[tokio::test]
async fn a_client_with_a_handshake_is_notified_of_visible_changes() {
    let (server, executor) = server();
    let (mut wire, hello) = Wire::initialized(server).await;
    assert_eq!(hello["capabilities"]["tools"]["listChanged"], true);
    // The session is open when a request is answered.
    wire.request("tools/list", json!({})).await;
    register(&executor, "b_hidden");
    register(&executor, "a_seen");
    assert_eq!(wire.receive().await["method"], CHANGED);
    let list = wire.request("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "a_seen");
    register(&executor, "b_more");
    // Only the answer arrives: changes of hidden tools are not reported.
    assert!(wire.request("tools/list", json!({})).await.get("result").is_some());
}

#[tokio::test]
async fn a_client_of_the_stateless_revision_subscribes() {
    let (server, executor) = server();
    let mut wire = Wire::connect(server);
    wire.send(&json!({
        "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": listen(),
    }))
    .await;
    let acknowledged = wire.receive().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    register(&executor, "a_seen");
    assert_eq!(wire.receive().await["method"], CHANGED);
}

#[tokio::test]
async fn over_http_a_subscription_is_a_stream() {
    let (server, executor) = server();
    let mut service = server.http_service(McpHttpOptions::default());
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen()});
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(Full::new(Bytes::from(message.to_string())))
        .unwrap();
    let Ok(mut response) = service.call(request).await;
    assert_eq!(response.status(), StatusCode::OK);
    let executor = Arc::new(executor);
    let mut text = String::new();
    let read = async {
        let mut told = false;
        while !text.contains(CHANGED) {
            let Some(Ok(frame)) = response.body_mut().frame().await else { break };
            text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
            if !told && text.contains("acknowledged") {
                told = true;
                let executor = Arc::clone(&executor);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    register(&executor, "a_seen");
                });
            }
        }
    };
    let _ = timeout(Duration::from_secs(10), read).await;
    assert!(text.contains(CHANGED), "{text}");
}
