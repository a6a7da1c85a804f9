//! Messages of broken clients, over both transports: each gets an error, and the server keeps
//! running.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;
use toolcrib_mcp::{McpHttpOptions, McpHttpService, McpServer};
use tower::Service as _;

use crate::fixture;

const PATIENCE: Duration = Duration::from_secs(30);

/// Serves a client that sends `bytes` after the handshake, and then a call; returns the server's messages up to the
/// answer to that call.
async fn survived(server: &McpServer, bytes: &[u8]) -> Vec<Value> {
    let said = said_in_answer(server, bytes, 0).await;
    let answer = said.last().unwrap();
    assert_eq!(answer["id"], "probe", "{answer}");
    said
}

/// The same, up to this many messages at least.
async fn said_in_answer(server: &McpServer, bytes: &[u8], least: usize) -> Vec<Value> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let own = server.clone();
    let serving =
        tokio::spawn(async move { own.serve_io(read, write, std::future::pending()).await });
    let (read, mut write) = tokio::io::split(ours);
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let add = json!({"name": "add", "arguments": {"a": 1, "b": 1}});
    let mut text = request("hello", "initialize", &hello).into_bytes();
    text.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    text.extend_from_slice(bytes);
    text.extend_from_slice(format!("\n{}\n", request("probe", "tools/call", &add)).as_bytes());
    // A server that reads slowly must not keep the test from reading its answers.
    let writing = tokio::spawn(async move {
        let _ = write.write_all(&text).await;
        write
    });
    let mut lines = BufReader::new(read).lines();
    let mut said = Vec::new();
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("an answer in time").unwrap();
        let line = line.unwrap_or_else(|| panic!("the connection was ended after {said:?}"));
        let message: Value = serde_json::from_str(&line).expect("only messages are said");
        said.push(message);
        if said.len() >= least && said.iter().any(|message| message["id"] == "probe") {
            break;
        }
    }
    drop(writing.await.unwrap());
    drop(lines);
    timeout(PATIENCE, serving).await.expect("an end in time").unwrap().unwrap();
    let answer = said.iter().find(|message| message["id"] == "probe").unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "2", "{answer}");
    said
}

fn request(id: &str, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn deep(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

#[tokio::test]
async fn each_invalid_line_gets_an_error() {
    let server = fixture::server();
    for (broken, code) in [
        (&b"\xff\xfe\x00"[..], -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"to\xc3\x28\"}", -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\":", -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1e999, \"method\": \"ping\"}", -32700),
        ("[".repeat(100_000).as_bytes(), -32700),
        (deep(100_000).as_bytes(), -32700),
        (b"[1, 2]", -32600),
        (b"null", -32600),
        (b"\"ping\"", -32600),
    ] {
        let said = survived(&server, broken).await;
        // The greeting, the error, and the answer.
        let codes: Vec<_> = said.iter().map(|one| one["error"]["code"].as_i64()).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(codes.contains(&Some(code)), "{said:?}");
    }
    assert_eq!(survived(&server, b" \r\n\t\n").await.len(), 2);
}

#[tokio::test]
async fn every_line_that_could_be_a_request_gets_an_answer() {
    let server = fixture::server();
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let unended = r#"{"a":"#.repeat(100_000);
    for broken in [
        r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1e400,"method":"tools/call","params":{"name":"add"}}"#.to_owned(),
        r#"{"id":1e400}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":-1e400,"method":"tools/list"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"x","method":"ping","params":{"n":1e400}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"add","x":1e400}}"#
            .to_owned(),
        format!("{ping}\r{ping}"),
        unended,
        deep(100_000),
        deep(127),
        deep(128),
        format!(r#"{{"jsonrpc":"2.0","id":"x","method":"ping","params":{}}}"#, deep(126)),
        format!(r#"{{"jsonrpc":"2.0","id":"x","method":"ping","params":{}}}"#, deep(127)),
    ] {
        let said = survived(&server, broken.as_bytes()).await;
        let shown: String = broken.chars().take(80).collect();
        assert_eq!(said.len(), 3, "{shown}: {said:?}");
    }
}

#[tokio::test]
async fn of_requests_with_one_id_each_gets_an_answer_or_an_error() {
    let add = json!({"name": "add", "arguments": {"a": 1, "b": 1}, "_meta": {"progressToken": 1}});
    let many = [request("one", "tools/call", &add), String::new()].join("\n").repeat(50);
    let said = said_in_answer(&fixture::server(), many.as_bytes(), 52).await;
    let of_it: Vec<_> = said.iter().filter(|one| one["id"] == "one").collect();
    let refused = of_it.iter().filter(|one| one["error"]["code"] == -32600).count();
    let done = of_it.iter().filter(|one| one["result"]["content"][0]["text"] == "2").count();
    assert!(
        done >= 1 && done + refused == 50 && said.len() == 52,
        "{refused} refused, {done} done"
    );
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused() {
    let long = format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"x\": \"{}\"}}", "x".repeat(17 << 20));
    let said = survived(&fixture::server(), long.as_bytes()).await;
    let refused = said.iter().filter(|one| one["error"]["code"] == -32700).count();
    assert_eq!((said.len(), refused), (3, 1), "{said:?}");
}

#[tokio::test]
async fn arguments_that_are_too_deep_are_refused() {
    // The reader of arguments refuses what the reader of messages accepts.
    for levels in [100, 120, 126, 200] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"add","arguments":{}}}}}"#,
            deep(levels)
        );
        let said = survived(&fixture::server(), call.as_bytes()).await;
        let refused = |one: &&Value| one["id"] == "deep" && one["result"]["isError"] != true;
        assert!(!said.iter().any(|one| refused(&one) && one.get("error").is_none()), "{said:?}");
    }
}

#[tokio::test]
async fn input_that_ends_within_a_message_ends_serving_cleanly() {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move {
        fixture::server().serve_io(read, write, std::future::pending()).await
    });
    ours.write_all(br#"{"jsonrpc":"2.0","id":1,"method":"init"#).await.unwrap();
    drop(ours);
    timeout(PATIENCE, serving).await.expect("an end in time").unwrap().unwrap();
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é\u{1F600}]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z_/]{1,10}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Something like a message: every member may be valid, invalid or missing.
fn any_message() -> impl Strategy<Value = Value> {
    let methods = prop::sample::select(vec![
        "ping",
        "initialize",
        "server/discover",
        "tools/list",
        "tools/call",
        "prompts/get",
        "resources/read",
        "resources/subscribe",
        "completion/complete",
        "logging/setLevel",
        "tasks/get",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/initialized",
        "notifications/roots/list_changed",
    ]);
    let method = prop_oneof![
        6 => methods.prop_map(Value::from),
        1 => "[a-z/]{0,20}".prop_map(Value::from),
        1 => any_json(),
    ];
    let params = prop_oneof![
        2 => any_json(),
        1 => any_json().prop_map(|arguments| json!({"name": "add", "arguments": arguments})),
        1 => any_json().prop_map(|name| json!({"name": name, "arguments": {"a": 1, "b": 2}})),
        1 => any_json().prop_map(|meta| json!({"name": "echo", "_meta": meta, "arguments": {}})),
        1 => any_json().prop_map(|uri| json!({"uri": uri, "cursor": uri, "level": uri, "ref": uri})),
        1 => Just(json!({"requestId": "probe", "reason": 7})),
    ];
    let id = prop_oneof![
        3 => any::<u16>().prop_map(Value::from),
        2 => "[a-z]{1,4}".prop_map(Value::from),
        1 => any_json(),
    ];
    let version = prop_oneof![8 => Just(json!("2.0")), 1 => any_json()];
    let members =
        (weighted(0.95, version), weighted(0.8, id), weighted(0.95, method), weighted(0.9, params));
    members.prop_map(|(version, id, method, params)| {
        let members = [("jsonrpc", version), ("id", id), ("method", method), ("params", params)];
        let there = members.into_iter().filter_map(|(name, own)| Some((name.to_owned(), own?)));
        Value::Object(there.collect())
    })
}

fn cases(of: u32) -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = of;
    }
    config
}

/// Whether a message may cancel the call with which the test checks that the server is running.
fn cancels_the_probe(message: &Value) -> bool {
    message["method"] == "notifications/cancelled" && message["params"]["requestId"] == "probe"
}

/// The number of complete lines that are not JSON.
fn unreadable(sent: &[u8]) -> usize {
    let lines = sent.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.filter(|line| serde_json::from_slice::<Value>(line).is_err()).count()
}

#[test]
fn unreadable_lines_get_errors_and_the_next_call_is_answered() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = fixture::server();
    let line = prop_oneof![
        3 => any_message().prop_map(|message| message.to_string().into_bytes()),
        1 => (any_message(), any::<prop::sample::Index>()).prop_map(|(message, at)| {
            let mut bytes = message.to_string().into_bytes();
            bytes.truncate(at.index(bytes.len()));
            bytes
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..64),
    ];
    let lines = proptest::collection::vec(line, 1..6);
    let outcome = TestRunner::new(cases(64)).run(&lines, |lines| {
        // A call that does not exist yet is not cancelled, but another one with the same id is.
        let is_fair = |line: &Vec<u8>| {
            serde_json::from_slice(line).map_or(true, |message: Value| !cancels_the_probe(&message))
        };
        prop_assume!(lines.iter().all(is_fair));
        let sent = lines.join(&b'\n');
        let said = runtime.block_on(survived(&server, &sent));
        let refused = said.iter().filter(|one| one["error"]["code"] == -32700).count();
        prop_assert_eq!(refused, unreadable(&sent), "{:?}", said);
        Ok(())
    });
    outcome.unwrap();
}

async fn posted(mut service: McpHttpService, revision: &str, body: String) -> (u16, Bytes) {
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", revision)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let Ok(response) = service.call(request).await;
    let status = response.status().as_u16();
    let Ok(body) = timeout(PATIENCE, response.into_body().collect()).await.expect("an end in time");
    (status, body.to_bytes())
}

#[test]
fn any_posted_message_is_answered_without_a_server_error() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let service = fixture::server().http_service(McpHttpOptions::default());
    let revisions = prop::sample::select(vec!["2025-11-25", "2026-07-28", "2024-11-05", "x"]);
    let outcome =
        TestRunner::new(cases(256)).run(&(any_message(), revisions), |(message, revision)| {
            // The stream of a session ends separately.
            prop_assume!(message["method"] != "initialize");
            let answer = posted(service.clone(), revision, message.to_string());
            let (status, body) = runtime.block_on(answer);
            prop_assert!(status < 500, "{status}: {body:?}");
            prop_assert!(status != 200 || !body.is_empty());
            Ok(())
        });
    outcome.unwrap();
    let add = request("1", "tools/call", &json!({"name": "add", "arguments": {"a": 1, "b": 1}}));
    let (status, _) = runtime.block_on(posted(service, "2025-11-25", add));
    assert_eq!(status, 200);
}
