//! Tests that plain messages get the same answers as from the protocol library.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolcrib_core::{Executor, Registry, ToolFilter, Toolset, TurnOptions};
use tower::Service as _;

use super::fixture::{define, executor, server};
use crate::fast_path::HttpFastPath;
use crate::{McpHttpOptions, McpHttpService, McpOptions, McpServer};

const JSON: &str = "application/json";
const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// One server, with and without the fast path.
struct BothPaths {
    service: McpHttpService,
    fast: HttpFastPath,
}

/// The parts of an answer that clients may rely on.
#[derive(Debug, PartialEq)]
struct ComparedAnswer {
    status: StatusCode,
    kind: Option<String>,
    /// The body as JSON where possible.
    body: Result<Value, Bytes>,
}

impl BothPaths {
    fn of(server: &McpServer) -> Self {
        Self {
            service: server.http_service(McpHttpOptions::default()),
            fast: HttpFastPath::new(server.clone(), vec!["localhost".to_owned()]),
        }
    }

    async fn answer(
        &self,
        body: &str,
        head: &[(&'static str, &str)],
        accept: &str,
    ) -> ComparedAnswer {
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", JSON)
            .header("accept", accept);
        for (name, value) in head {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let Ok(response) = self.service.clone().call(request).await;
        let status = response.status();
        let kind = response.headers().get("content-type");
        let kind = kind.map(|kind| kind.to_str().unwrap().to_owned());
        let Ok(body) = response.into_body().collect().await;
        let body = body.to_bytes();
        let body = serde_json::from_slice(&body).map_err(|_| body);
        ComparedAnswer { status, kind, body: body.map(without_state) }
    }

    /// Whether the message is answered on the fast path.
    async fn is_plain(&self, body: &str, head: &[(&'static str, &str)]) -> bool {
        let mut request = Request::post("/mcp")
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in head {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        self.fast.answer(&parts, body.as_bytes()).await.is_some()
    }

    /// The answer, which has to be the same both ways.
    async fn same(&self, body: &str, head: &[(&'static str, &str)]) -> ComparedAnswer {
        let short = self.answer(body, head, "application/json, text/event-stream").await;
        // A quality value changes nothing but sends the request to the library.
        let long = self.answer(body, head, "application/json;q=1, text/event-stream").await;
        assert_eq!(short, long, "{head:?} {body}");
        short
    }
}

/// Removes the random state of a waiting call.
fn without_state(mut answer: Value) -> Value {
    if let Some(state) = answer.pointer_mut("/result/requestState") {
        assert!(state.is_string());
        *state = Value::Null;
    }
    answer
}

fn old(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#)
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

fn new(name: &str, more: &str) -> (String, Vec<(&'static str, String)>) {
    let text = old(&format!(r#"{{"name":"{name}"{more},{META}}}"#));
    let head = [("mcp-protocol-version", NEW), ("mcp-method", "tools/call"), ("mcp-name", name)];
    (text, head.map(|(name, value)| (name, value.to_owned())).to_vec())
}

fn lent<'h>(head: &'h [(&'static str, String)]) -> Vec<(&'static str, &'h str)> {
    head.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[tokio::test]
async fn calls_have_the_same_outcome_in_both_revisions() {
    let both = BothPaths::of(&server());
    for (name, arguments, plain) in [
        ("echo", r#"{"a":[1,-2,2.5,1e3,"x\n",null,true,{"b":{}}],"z":"\ud83e\udd80"}"#, true),
        ("echo", "{}", true),
        ("echo", "null", true),
        ("strict", r#"{"path":"src"}"#, true),
        ("strict", r#"{"path":"src","limit":"5"}"#, true),
        ("strict", r#"{"limit":0,"more":1}"#, true),
        ("strict", "{}", true),
        ("words", "{}", true),
        ("parts", "{}", true),
        ("nothing", "{}", true),
        ("id", "{}", true),
        ("later", "{}", true),
        ("fail", "{}", true),
        ("lookup", "{}", true),
        ("nobody", "{}", true),
        ("echos", "{}", true),
        ("regional", r#"{"region":"north"}"#, false),
        ("ask", "{}", true),
        // These are ambiguous or of another type.
        ("echo", r#"{"a":1,"a":2}"#, false),
        ("echo", r#"{"a":"\ud800"}"#, false),
        ("echo", "[]", false),
        ("echo", r#""{}""#, false),
        ("echo", "{", false),
    ] {
        let text = old(&format!(r#"{{"name":"{name}","arguments":{arguments}}}"#));
        for head in [&[][..], &[("mcp-protocol-version", OLD)]] {
            let seen = both.same(&text, head).await;
            // Without 2026-07-28 nothing can be asked, and no argument is repeated.
            let plain = plain || name == "regional";
            assert_eq!(both.is_plain(&text, head).await, plain, "{text}");
            assert!(!plain || seen.kind.as_deref() == Some(JSON), "{seen:?}");
        }
        let (text, head) = new(name, &format!(r#","arguments":{arguments}"#));
        both.same(&text, &lent(&head)).await;
        assert_eq!(both.is_plain(&text, &lent(&head)).await, plain, "{text}");
    }
}

#[tokio::test]
async fn messages_that_are_not_plain_are_answered_the_same() {
    let both = BothPaths::of(&server());
    let deep =
        format!(r#"{{"name":"echo","arguments":{{"a":{}1{}}}}}"#, "[".repeat(140), "]".repeat(140));
    for text in [
        old(r#"{"name":"echo"}"#),
        old(r#"{"name":"echo","arguments":{"n":12345678901234567890123}}"#),
        old(r#"{"name":"echo","arguments":{"n":1e400}}"#),
        old(&deep),
        old(r#"{"name":"echo","more":1}"#),
        old(r#"{"name":"echo","_meta":{"progressToken":"p"}}"#),
        old(r#"{"name":"echo","_meta":{"traceparent":"00-1-2-03"}}"#),
        old(r#"{"name":"echo","_meta":{"io.modelcontextprotocol/logLevel":"debug"}}"#),
        old(r#"{"name":"echo","_meta":7}"#),
        old(&format!(r#"{{"name":"echo",{META}}}"#)),
        old(r#"{"name":"echo","task":{"ttl":1}}"#),
        old(r#"{"name":"echo","requestState":"nothing"}"#),
        old(r#"{"name":7}"#),
        old(r#"{"name":"\u0065cho"}"#),
        old(r#"{"arguments":{}}"#),
        old("[]"),
        old("null"),
        r#"{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":"","method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":"\"\\","method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":7.5,"method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":-0,"method":"tools/call","params":{"name":"id"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":[],"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null}}"#.into(),
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#.into(),
        r#"{"id":1,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/lists"}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into(),
        r#"{"jsonrpc":"2.0","method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(),
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#.into(),
        "[]".into(),
        "{".into(),
        String::new(),
        "\u{feff}{}".into(),
    ] {
        for head in [&[][..], &[("mcp-protocol-version", OLD)], &[("mcp-protocol-version", NEW)]] {
            both.same(&text, head).await;
        }
    }
}

#[tokio::test]
async fn requests_with_unusual_headers_are_answered_the_same() {
    let both = BothPaths::of(&server());
    let (text, head) = new("echo", "");
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let new = ("mcp-protocol-version", NEW);
    for (text, head) in [
        (&text, vec![]),
        (&text, vec![new]),
        (&text, vec![new, ("mcp-method", "tools/list")]),
        (&text, vec![new, ("mcp-method", "tools/call")]),
        (&text, vec![new, ("mcp-method", "tools/call"), ("mcp-name", "strict")]),
        (&text, vec![new, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?ZWNobw==?=")]),
        (&text, vec![("mcp-protocol-version", OLD), head_pair(&head, 1), head_pair(&head, 2)]),
        (
            &text,
            vec![("mcp-protocol-version", "2099-01-01"), head_pair(&head, 1), head_pair(&head, 2)],
        ),
        (&text, vec![new, head_pair(&head, 1), head_pair(&head, 1), head_pair(&head, 2)]),
        (&list, vec![new, ("mcp-method", "tools/list")]),
        (&list, vec![new, ("mcp-method", "tools/list"), ("mcp-name", "x")]),
        (&list, vec![new]),
        (&old(r#"{"name":"echo"}"#), vec![("mcp-protocol-version", "2024-11-05")]),
        (&old(r#"{"name":"echo"}"#), vec![("mcp-protocol-version", "1999-01-01")]),
        (&old(r#"{"name":"echo"}"#), vec![("origin", "http://localhost")]),
        (&old(r#"{"name":"echo"}"#), vec![("mcp-session-id", "nobody's")]),
    ] {
        both.same(text, &head).await;
    }
}

fn head_pair<'h>(head: &'h [(&'static str, String)], at: usize) -> (&'static str, &'h str) {
    (head[at].0, head[at].1.as_str())
}

#[tokio::test]
async fn a_list_is_written_once_per_set_of_tools() {
    let executor = executor();
    let server = McpServer::new(executor.clone(), McpOptions::default());
    let both = BothPaths::of(&server);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let names = |seen: &ComparedAnswer| -> Vec<String> {
        let tools = seen.body.as_ref().unwrap()["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(both.is_plain(list, &[]).await);
    let before = names(&both.same(list, &[]).await);
    let written = |server: &McpServer| {
        let data_form = toolcrib_wire::McpData::Objects;
        server.tools(&server.turn()).written(data_form).unwrap()
    };
    assert_eq!(written(&server).as_ptr(), written(&server).as_ptr());

    let source = toolcrib_tool::Source::new(toolcrib_tool::Layer::Host, "later");
    let more = toolcrib_tool::tool_fn(|_: Value, _| async { "more" });
    let more =
        toolcrib_tool::ToolEntry::new(define("more").build().unwrap(), Arc::new(more), source);
    let _ = executor.registry().register(more).unwrap();
    let after = names(&both.same(list, &[]).await);
    assert!(!before.contains(&"more".to_owned()) && after.contains(&"more".to_owned()));

    // Each toolset has its own list, shared by all its clients.
    let toolset = || Toolset::new().include(ToolFilter::new().name("echo"));
    let client = server.for_client(TurnOptions::default().toolset(toolset()));
    let other = server.for_client(TurnOptions::default().toolset(toolset()));
    let all = server.for_client(TurnOptions::default());
    assert_eq!(written(&client).as_ptr(), written(&other).as_ptr());
    assert_eq!(written(&server).as_ptr(), written(&all).as_ptr());
    assert_eq!(names(&BothPaths::of(&client).same(list, &[]).await), ["echo"]);
    let hidden = BothPaths::of(&client).same(&old(r#"{"name":"words"}"#), &[]).await;
    assert_eq!(hidden.body.unwrap()["error"]["code"], -32602);
}

#[tokio::test]
async fn requests_get_the_same_answers_with_and_without_a_session() {
    let service = server().http_service(McpHttpOptions::default());
    let send = async |request: http::request::Builder, body: String| {
        let request = request
            .header("host", "localhost")
            .header("content-type", JSON)
            .header("accept", "application/json, text/event-stream")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let Ok(response) = service.clone().call(request).await;
        response
    };
    let hello = json!({
        "protocolVersion": OLD,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let opened = send(Request::post("/mcp"), hello.to_string()).await;
    let session = opened.headers()["mcp-session-id"].clone();
    let in_session = |request: http::request::Builder| request.header("mcp-session-id", &session);
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    send(in_session(Request::post("/mcp")), initialized.to_owned()).await;

    let ask = async |text: String| {
        let response = send(in_session(Request::post("/mcp")), text).await;
        assert_eq!(response.status(), StatusCode::OK);
        let kind = response.headers()["content-type"].clone();
        let Ok(body) = response.into_body().collect().await;
        let text = String::from_utf8(body.to_bytes().into()).unwrap();
        // The first event may be empty.
        let mut events = text.lines().filter_map(|line| line.strip_prefix("data:").map(str::trim));
        let json = events.find(|data| !data.is_empty()).unwrap_or(&text);
        (kind, serde_json::from_str::<Value>(json).unwrap())
    };
    let alone = async |text: &str| {
        let response = send(Request::post("/mcp"), text.to_owned()).await;
        assert_eq!(response.headers()["content-type"], JSON);
        let Ok(body) = response.into_body().collect().await;
        serde_json::from_slice::<Value>(&body.to_bytes()).unwrap()
    };
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}"#.to_owned();
    let calls = ["words", "parts", "fail", "nobody", "regional", "later", "ask"];
    let calls = calls.map(|name| old(&format!(r#"{{"name":"{name}"}}"#)));
    for text in calls.into_iter().chain([list]) {
        let answer = alone(&text).await;
        assert_eq!(ask(text).await, ("text/event-stream".parse().unwrap(), answer));
    }

    let ended = send(in_session(Request::delete("/mcp")), String::new()).await;
    assert!(ended.status().is_success(), "{}", ended.status());
    let gone = send(in_session(Request::post("/mcp")), old(r#"{"name":"words"}"#)).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

/// Reports when the call that holds it is dropped.
struct DropWitness(mpsc::UnboundedSender<&'static str>);

impl Drop for DropWitness {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[tokio::test]
async fn disconnecting_or_closing_the_server_cancels_the_call() {
    let (events, mut seen) = mpsc::unbounded_channel();
    let registry = Registry::scratch()
        .tool("wait", move |_, _| {
            let events = events.clone();
            async move {
                let _ = events.send("begun");
                let _witness = DropWitness(events);
                pending::<String>().await
            }
        })
        .build()
        .unwrap();
    let server = McpServer::new(Executor::builder(registry).build(), McpOptions::default());
    let both = Arc::new(BothPaths::of(&server));
    let call = || {
        let both = Arc::clone(&both);
        tokio::spawn(async move {
            both.answer(&old(r#"{"name":"wait"}"#), &[], "application/json, text/event-stream")
                .await
        })
    };
    let left = call();
    assert_eq!(seen.recv().await, Some("begun"));
    left.abort();
    assert_eq!(seen.recv().await, Some("dropped"));
    let ended = call();
    assert_eq!(seen.recv().await, Some("begun"));
    server.close();
    assert_eq!(seen.recv().await, Some("dropped"));
    assert_eq!(ended.await.unwrap().status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(seen.try_recv().is_err(), "nothing runs twice");
}

/// JSON whose numbers are exact in every parser.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|quarters| Value::from(f64::from(quarters) / 4.0)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,6}|.{1,3}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A message whose parts may be missing and are mostly valid.
fn message() -> impl Strategy<Value = Value> {
    let id = prop_oneof![
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        json_value()
    ];
    let name = prop_oneof![
        prop::sample::select(vec!["echo", "strict", "words", "parts", "fail", "lookup", "id"])
            .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        json_value(),
    ];
    let arguments = prop_oneof![
        4 => prop::collection::btree_map("path|limit|[a-z]{1,3}", json_value(), 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        1 => json_value(),
    ];
    let params = (
        prop::option::weighted(0.9, name),
        prop::option::weighted(0.9, arguments),
        prop::option::weighted(0.2, json_value()),
    );
    let method = prop_oneof![8 => Just("tools/call"), 2 => Just("tools/list"), 1 => Just("ping")];
    (prop::option::weighted(0.95, id), method, params, prop::option::weighted(0.1, json_value()))
        .prop_map(|(id, method, (name, arguments, meta), more)| {
            let mut message = json!({"jsonrpc": "2.0", "method": method});
            let mut put = |object: &str, key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    let target =
                        if object.is_empty() { &mut message } else { &mut message[object] };
                    target[key] = value;
                }
            };
            put("", "id", id);
            if method == "tools/call" {
                put("params", "name", name);
                put("params", "arguments", arguments);
                put("params", "_meta", meta);
            }
            put("", "more", more);
            message
        })
}

proptest! {
    #[test]
    fn any_message_is_answered_the_same(message in message(), revision in prop::sample::select(vec!["", OLD, NEW])) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let both = BothPaths::of(&server());
            let head = [("mcp-protocol-version", revision)];
            let head = if revision.is_empty() { &[][..] } else { &head };
            both.same(&message.to_string(), head).await;
        });
    }
}
