//! Progress of imported tools: everything that arrived before the result is reported before it.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolcrib_core::TurnOptions;
use toolcrib_core::events::{CallStream, ChannelOptions, Listeners, Payload};
use toolcrib_mcp::{McpHttpOptions, McpHttpService, McpOptions, McpServer};
use toolcrib_tool::ToolCall;
use tower::Service as _;

use super::{Room, Scripted};
use crate::wire::Wire;

/// The tool reports four steps and answers immediately afterwards.
const STEPS: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
const CALLS: usize = 200;

async fn room() -> (Scripted, Room) {
    let server = Scripted::new(&["brief"]);
    let room = Room::with([server.upstream("my")]).await;
    (server, room)
}

fn call(id: usize, meta: &Value) -> Value {
    let params = json!({"name": "my_brief", "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// The progress among messages, of which the last has to be an answer.
fn progress(messages: &[Value]) -> Vec<f64> {
    let (last, others) = messages.split_last().expect("an answer");
    assert!(last["result"].is_object(), "{last}");
    others.iter().filter_map(|message| message["params"]["progress"].as_f64()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_progress_from_an_upstream_is_lost() {
    let (_server, room) = room().await;
    let mut incomplete = 0;
    for number in 0..CALLS {
        let (stream, mut reader) = CallStream::new(&ChannelOptions::default());
        let listeners = Listeners::new().with_stream(stream);
        let turn = room.executor.turn(TurnOptions::default().listeners(listeners));
        assert!(turn.call(ToolCall::new(number.to_string(), "my_brief", "{}")).await.is_success());
        drop(turn);
        let mut steps = Vec::new();
        while let Some(event) = reader.next().await {
            if let Payload::Status(status) = event.payload() {
                steps.extend(status.params["progress"].as_f64());
            }
        }
        // The end of the call repeats the last one.
        steps.dedup();
        incomplete += usize::from(steps != STEPS);
    }
    room.upstreams.shutdown().await;
    assert_eq!(incomplete, 0, "of {CALLS} calls");
}

/// The messages of an answer, whether it is JSON or a stream of events.
async fn post(
    service: &mut McpHttpService,
    request: http::request::Builder,
    body: &Value,
) -> Vec<Value> {
    let request = request
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    let Ok(response) =
        service.call(request.body(Full::<Bytes>::from(body.to_string())).unwrap()).await;
    let Ok(body) = response.into_body().collect().await;
    let body: Bytes = body.to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    if let Ok(whole) = serde_json::from_str(text) {
        return vec![whole];
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_progress_is_lost_in_a_session_over_http() {
    let (_server, room) = room().await;
    let server = McpServer::new(room.executor.clone(), McpOptions::default());
    let mut service = server.http_service(McpHttpOptions::default());
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    let Ok(opened) =
        service.call(request.body(Full::<Bytes>::from(hello.to_string())).unwrap()).await;
    let session = opened.headers()["mcp-session-id"].clone();
    let Ok(_) = opened.into_body().collect().await;
    let own = || {
        Request::post("/mcp")
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-11-25")
    };
    post(&mut service, own(), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let mut incomplete = 0;
    for number in 0..CALLS {
        let message = call(number, &json!({"progressToken": number}));
        let told = post(&mut service, own(), &message).await;
        incomplete += usize::from(progress(&told) != STEPS);
    }
    room.upstreams.shutdown().await;
    assert_eq!(incomplete, 0, "of {CALLS} calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_progress_is_lost_without_a_session_over_http() {
    let (_server, room) = room().await;
    let server = McpServer::new(room.executor.clone(), McpOptions::default());
    let mut service = server.http_service(McpHttpOptions::default());
    let mut incomplete = 0;
    for number in 0..CALLS {
        let meta = json!({
            "progressToken": number,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        });
        let own = Request::post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "my_brief");
        let told = post(&mut service, own, &call(number, &meta)).await;
        incomplete += usize::from(progress(&told) != STEPS);
    }
    room.upstreams.shutdown().await;
    assert_eq!(incomplete, 0, "of {CALLS} calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_progress_is_lost_over_a_pipe() {
    let (_server, room) = room().await;
    let server = McpServer::new(room.executor.clone(), McpOptions::default());
    let (mut wire, _) = Wire::initialized(server).await;
    let mut incomplete = 0;
    for number in 0..CALLS {
        wire.send(&call(number + 100, &json!({"progressToken": number}))).await;
        let mut told = Vec::new();
        loop {
            let message = wire.receive().await;
            let is_answer = message.get("id").is_some();
            told.push(message);
            if is_answer {
                break;
            }
        }
        incomplete += usize::from(progress(&told) != STEPS);
    }
    room.upstreams.shutdown().await;
    assert_eq!(incomplete, 0, "of {CALLS} calls");
}
