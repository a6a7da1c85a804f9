//! Calls and batches over HTTP.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use toolcrib_http::ServerConfig;

use crate::fixture::{Running, config, start};
use crate::raw_client::{Ask, Reply};

async fn call(server: &Running, tool: &str, body: &Value) -> Reply {
    Ask::api(server.address, &format!("POST /v1/tools/{tool}/call")).json(body).send().await
}

#[tokio::test]
async fn a_successful_call_is_a_complete_200() {
    let server = start(config()).await;
    let body = json!({"arguments": {"name": "Ada"}, "call_id": "c1"});
    let answer = call(&server, "greet", &body).await;
    assert_eq!(answer.status, 200);
    let result = answer.json();
    assert_eq!((&result["output"], &result["call_id"]), (&json!("Hello, Ada!"), &json!("c1")));
    assert_eq!((&result["success"], &result["cached"]), (&json!(true), &json!(false)));
    assert!(result["duration_seconds"].is_f64());
    let data = call(&server, "echo", &json!({"arguments": {"x": [1, "é"]}})).await.json();
    assert_eq!(data["data"], json!({"x": [1, "é"]}));
    server.end().await;
}

#[tokio::test]
async fn a_failed_call_is_a_problem_that_contains_the_whole_answer() {
    let server = start(config()).await;
    let wrong = call(&server, "greet", &json!({"arguments": {"nam": "Ada"}})).await;
    assert_eq!((wrong.status, wrong.kind().as_str()), (422, "invalid_args"));
    let problem: Value = serde_json::from_str(&wrong.body).unwrap();
    let hints = problem["result"]["error"]["hints"].to_string();
    assert!(hints.contains("/nam") && hints.contains("did you mean `name`?"), "{hints}");
    for (tool, status, kind) in
        [("nothing", 404, "not_found"), ("fail", 424, "execution"), ("greet", 422, "invalid_args")]
    {
        let failed = call(&server, tool, &json!({})).await;
        assert_eq!((failed.status, failed.kind().as_str()), (status, kind), "{tool}");
    }
    server.end().await;
}

#[tokio::test]
async fn arguments_may_be_model_text_and_are_repaired_where_safe() {
    let server = start(config()).await;
    let mended = call(&server, "greet", &json!({"arguments": "{\"name\": \"Ada\",}"})).await;
    assert_eq!(mended.json()["output"], "Hello, Ada!");
    let broken = call(&server, "echo", &json!({"arguments": "{\"name\": "})).await;
    assert_eq!((broken.status, broken.kind().as_str()), (400, "invalid_json"));
    // JSON arguments are used as they are, to the last digit.
    let ask = Ask::api(server.address, "POST /v1/tools/greet/call");
    let twice = ask.with("content-type", "application/json");
    let twice = twice.body(r#"{"arguments": {"name": "a", "name": "b"}}"#).send().await;
    assert_eq!((twice.status, twice.kind().as_str()), (400, "invalid_json"));
    server.end().await;
}

#[tokio::test]
async fn a_call_without_an_id_uses_the_request_id() {
    let server = start(config()).await;
    let ask = Ask::api(server.address, "POST /v1/tools/echo/call");
    let given = ask.clone().with("x-request-id", "from-a-proxy-7").send().await;
    assert_eq!(given.header("x-request-id"), Some("from-a-proxy-7"));
    assert_eq!(given.json()["call_id"], "from-a-proxy-7");
    let made = ask.clone().send().await;
    let id = made.header("x-request-id").unwrap().to_owned();
    assert!(id.starts_with("req_"), "{id}");
    assert_eq!(made.json()["call_id"], id.as_str());
    let refused = ask.with("x-request-id", &"x".repeat(200)).with("host", "evil.example");
    assert!(refused.send().await.header("x-request-id").unwrap().starts_with("req_"));
    server.end().await;
}

#[tokio::test]
async fn a_batch_is_answered_in_order() {
    let server = start(config()).await;
    let body = json!({"calls": [
        {"tool": "greet", "arguments": {"name": "Ada"}},
        {"tool": "fail", "call_id": "mine"},
        {"tool": "echo", "arguments": "{\"x\": 1}"},
    ], "max_concurrency": 1});
    let answer = Ask::api(server.address, "POST /v1/batch").json(&body).send().await;
    assert_eq!(answer.status, 200);
    let request = answer.header("x-request-id").expect("every answer has one").to_owned();
    let results = answer.json()["results"].clone();
    let ids: Vec<_> = (0..3).map(|n| results[n]["call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&*format!("{request}_1"), "mine", &*format!("{request}_3")]);
    assert_eq!(results[1]["error"]["kind"], "execution");
    assert_eq!(results[2]["data"], json!({"x": 1}));
    server.end().await;
}

#[tokio::test]
async fn invalid_bodies_are_refused_with_the_position() {
    let server = start(config()).await;
    let many: Vec<_> = (0..257).map(|_| json!({"tool": "echo"})).collect();
    for (line, body, says) in [
        ("POST /v1/tools/echo/call", json!({"argument": {}}), "`argument`"),
        ("POST /v1/tools/echo/call", json!([]), "the body"),
        ("POST /v1/tools/echo/call", json!({"call_id": ""}), "/call_id"),
        ("POST /v1/tools/echo/call", json!({"session": 7}), "/session"),
        ("POST /v1/batch", json!({"calls": [[null, "echo", {}]]}), "/calls/0: an object"),
        ("POST /v1/batch", json!({}), "`calls`"),
        ("POST /v1/batch", json!({"calls": []}), "/calls: 1 to 256 calls"),
        ("POST /v1/batch", json!({"calls": many}), "/calls: 1 to 256 calls"),
        ("POST /v1/batch", json!({"calls": [{"tool": "echo"}, {"name": "echo"}]}), "/calls/1"),
        (
            "POST /v1/batch",
            json!({"calls": [{"tool": "echo", "call_id": "a"}, {"tool": "echo", "call_id": "a"}]}),
            "/calls/1/call_id: another call has the id",
        ),
    ] {
        let refused = Ask::api(server.address, line).json(&body).send().await;
        assert_eq!((refused.status, refused.kind().as_str()), (422, "invalid_request"), "{body}");
        assert!(refused.problem().contains(says), "{body}: {}", refused.body);
    }
    let text = Ask::api(server.address, "POST /v1/batch").with("content-type", "text/plain");
    assert_eq!(text.body("{}").send().await.status, 415);
    server.end().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_by_every_route() {
    let server =
        start(ServerConfig { body_limit: toolcrib_tool::units::SizeLimit(64), ..config() }).await;
    for path in ["/v1/batch", "/v1/runs", "/v1/tools/echo/call", "/mcp"] {
        let ask = Ask::api(server.address, &format!("POST {path}"));
        let refused = ask.json(&json!({"x": "x".repeat(64)})).send().await;
        assert_eq!((refused.status, refused.kind().as_str()), (413, "too_large"), "{path}");
    }
    server.end().await;
}

#[tokio::test]
async fn the_configured_body_limit_holds_above_two_mebibytes() {
    let server = start(config()).await;
    let mebibytes = |count: usize| json!({"arguments": {"x": "x".repeat(count * 1024 * 1024)}});
    for path in ["/v1/batch", "/v1/runs", "/v1/tools/echo/call"] {
        let ask = || Ask::api(server.address, &format!("POST {path}"));
        let read = ask().json(&mebibytes(3)).send().await;
        assert_ne!(read.status, 413, "{path}: {}", read.body);
        let refused = ask().json(&mebibytes(4)).send().await;
        assert_eq!((refused.status, refused.kind().as_str()), (413, "too_large"), "{path}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_writing() {
    let server =
        start(ServerConfig { body_limit: toolcrib_tool::units::SizeLimit(1024), ..config() }).await;
    for (line, token, status) in [
        ("POST /v1/batch", true, 413),
        ("POST /mcp", true, 413),
        ("POST /v1/batch", false, 401),
        ("POST /nowhere", true, 404),
    ] {
        // More than the socket buffers can hold.
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let ask = Ask::api(server.address, line).with("content-type", "application/json");
        let ask = if token { ask } else { ask.without("authorization") };
        ask.with("content-length", "33554432").write(&mut stream).await;
        let blanks = vec![b' '; 65_536];
        for _ in 0..512 {
            stream.write_all(&blanks).await.expect("the client can finish writing");
        }
        assert_eq!(Reply::read(&mut stream).await.status, status, "{line}");
        // The rest was read, so the connection can be used again.
        Ask::api(server.address, "GET /health").write(&mut stream).await;
        assert_eq!(Reply::read(&mut stream).await.status, 200, "{line}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_wrong_method_gets_the_allowed_one() {
    let server = start(config()).await;
    let refused = Ask::api(server.address, "GET /v1/batch").send().await;
    assert_eq!((refused.status, refused.kind().as_str()), (405, "method_not_allowed"));
    assert_eq!(refused.header("allow"), Some("POST"));
    server.end().await;
}
