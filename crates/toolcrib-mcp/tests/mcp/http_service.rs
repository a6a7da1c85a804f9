//! The HTTP service by itself, without a listener or authentication.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder};
use toolcrib_mcp::{McpBody, McpHttpOptions, McpHttpService, McpOptions, McpServer};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, Layer, Source, Tool, ToolDefinition, ToolEntry, ToolError,
    ToolOutcome, ToolOutput,
};
use tower::Service as _;

use crate::fixture;

fn service() -> McpHttpService {
    fixture::server().http_service(McpHttpOptions::default())
}

fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25")
        .body(Full::new(body.into()))
        .unwrap()
}

fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

async fn answer(mut service: McpHttpService, request: Request<Full<Bytes>>) -> Response<McpBody> {
    let Ok(response) = service.call(request).await;
    response
}

async fn json_body(response: Response<McpBody>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    let Ok(body) = response.into_body().collect().await;
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

#[tokio::test]
async fn each_request_stands_alone_and_is_answered_with_json() {
    let service = service();
    let list = answer(service.clone(), post(message("tools/list", &json!({})))).await;
    assert_eq!(list.status(), StatusCode::OK);
    assert!(list.headers().get("mcp-session-id").is_none());
    assert_eq!(json_body(list).await["result"]["tools"].as_array().unwrap().len(), fixture::TOOLS);
    let call = json!({"name": "words", "arguments": {}});
    let call = json_body(answer(service, post(message("tools/call", &call))).await).await;
    assert_eq!(call["result"]["structuredContent"], json!({"result": ["b", "a"]}));
}

#[tokio::test]
async fn an_invalid_body_gets_a_json_rpc_error() {
    for (body, code) in [("{broken", -32700), ("", -32700), ("[]", -32600), ("{\"a\":1}", -32600)] {
        let response = answer(service(), post(body)).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(json_body(response).await["error"]["code"], code, "{body}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_announced_or_not() {
    let server = fixture::server();
    let service = server.http_service(McpHttpOptions::default().body_limit(200));
    let fits = message("tools/list", &json!({}));
    assert_eq!(answer(service.clone(), post(fits)).await.status(), StatusCode::OK);
    let long = message("tools/list", &json!({"cursor": "x".repeat(200)}));
    let refused = answer(service.clone(), post(long.clone())).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);

    // A boxed body of unknown length, as chunked encoding gives.
    let chunks = post(long).map(http_body_util::BodyStream::new);
    let chunks = chunks.map(http_body_util::StreamBody::new);
    let mut service = service;
    let Ok(refused) = service.call(chunks).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn foreign_hosts_and_all_origins_are_refused_by_default() {
    let list = message("tools/list", &json!({}));
    let mut strange = post(list.clone());
    strange.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(answer(service(), strange).await.status(), StatusCode::FORBIDDEN);
    let mut page = post(list.clone());
    page.headers_mut().insert("origin", "http://localhost:3000".parse().unwrap());
    assert_eq!(answer(service(), page).await.status(), StatusCode::FORBIDDEN);

    let nobody = McpHttpOptions::default().allowed_hosts(Vec::<String>::new());
    let closed = fixture::server().http_service(nobody);
    assert_eq!(answer(closed, post(list)).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn other_methods_and_media_types_are_refused() {
    let get = Request::get("/mcp").header("host", "localhost");
    let refused = answer(service(), get.body(Full::default()).unwrap()).await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers()["allow"], "POST");
    let mut form = post("a=1");
    form.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(answer(service(), form).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_header_that_repeats_an_argument_has_to_match_it() {
    let ask = |region: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let call = json!({"name": "regional", "arguments": {"region": "north"}, "_meta": meta});
        let mut request = post(message("tools/call", &call));
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "regional"),
            ("mcp-param-region", region),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        answer(service(), request)
    };
    let same = json_body(ask("north").await).await;
    assert_eq!(same["result"]["content"][0]["text"], "\"north\"");
    let other = ask("south").await;
    assert_eq!(other.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_body(other).await["error"]["code"], -32020);
}

/// Returns its arguments unchanged.
#[derive(Debug)]
struct Echo;

impl Tool for Echo {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move { Ok(ToolOutcome::Done(ToolOutput::from(arguments.as_str()))) })
    }
}

/// A service whose tool requires a header that repeats its number.
fn numbered() -> McpHttpService {
    let definition = ToolDefinition::builder("numbered").description("Say it.");
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "integer", "x-mcp-header": "Id"}},
    });
    let definition = definition.input_schema(schema).build().unwrap();
    let mut registry = RegistryBuilder::new();
    let source = Source::new(Layer::Host, "numbered");
    let _ = registry.register(ToolEntry::new(definition, Arc::new(Echo), source));
    let executor = Executor::new(Registry::new(registry.build()), ExecutorConfig::default());
    McpServer::new(executor, McpOptions::default()).http_service(McpHttpOptions::default())
}

#[tokio::test]
async fn a_header_that_repeats_a_wide_number_has_to_match_it() {
    let ask = |number: &str, header: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let call = json!({"name": "numbered", "arguments": {"id": "WIDE"}, "_meta": meta});
        let mut request = post(message("tools/call", &call).replace("\"WIDE\"", number));
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "numbered"),
            ("mcp-param-id", header),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        answer(numbered(), request)
    };
    for number in ["7", "18446744073709551615", "123456789012345678901", "-9223372036854775809"] {
        let same = ask(number, number).await;
        assert_eq!(same.status(), StatusCode::OK, "{number}");
        let same = json_body(same).await;
        let text = format!(r#"{{"id":{number}}}"#);
        assert_eq!(same["result"]["content"][0]["text"], text, "{same}");
    }
    // The same double, but another number.
    let other = ask("123456789012345678901", "123456789012345678902").await;
    assert_eq!(other.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json_body(other).await["error"]["code"], -32020);
}

#[tokio::test]
async fn a_handshake_opens_a_session_with_notifications() {
    let service = service();
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let opened = answer(service.clone(), post(message("initialize", &hello))).await;
    assert_eq!(opened.status(), StatusCode::OK);
    let session = opened.headers()["mcp-session-id"].clone();
    let in_session = |body: String| {
        let mut request = post(body);
        request.headers_mut().insert("mcp-session-id", session.clone());
        request
    };
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let noted = answer(service.clone(), in_session(initialized.to_string())).await;
    assert_eq!(noted.status(), StatusCode::ACCEPTED);
    let level = message("logging/setLevel", &json!({"level": "debug"}));
    let set = answer(service.clone(), in_session(level)).await;
    assert_eq!(set.status(), StatusCode::OK);
    // The level is in effect once that is confirmed.
    let Ok(_) = set.into_body().collect().await;
    let listed = answer(service.clone(), in_session(message("tools/list", &json!({})))).await;
    assert_eq!(listed.headers()["content-type"], "text/event-stream");

    let ended = answer(service.clone(), delete(&session)).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    let gone = answer(service, in_session(message("tools/list", &json!({})))).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

fn delete(session: &HeaderValue) -> Request<Full<Bytes>> {
    let request = Request::delete("/mcp").header("host", "localhost");
    request.header("mcp-session-id", session).body(Full::default()).unwrap()
}

#[tokio::test]
async fn a_session_is_ended_once_and_then_is_not_found() {
    let service = service();
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let opened = answer(service.clone(), post(message("initialize", &hello))).await;
    let session = opened.headers()["mcp-session-id"].clone();
    let ended = answer(service.clone(), delete(&session)).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    let Ok(body) = ended.into_body().collect().await;
    assert!(body.to_bytes().is_empty());
    for unknown in [session, HeaderValue::from_static("made-up")] {
        let refused = answer(service.clone(), delete(&unknown)).await;
        assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    }
    let mut foreign = delete(&HeaderValue::from_static("made-up"));
    foreign.headers_mut().insert("host", HeaderValue::from_static("evil.example"));
    assert_eq!(answer(service, foreign).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_request_that_stands_alone_has_no_log_level_to_set() {
    let level = message("logging/setLevel", &json!({"level": "debug"}));
    let refused = json_body(answer(service(), post(level)).await).await;
    assert_eq!(refused["error"]["code"], -32601);
}
