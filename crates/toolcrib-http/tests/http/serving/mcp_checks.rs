//! MCP messages pass the same checks as every other request.

use serde_json::{Value, json};
use toolcrib_http::{Right, ServerConfig};

use crate::fixture::{client, config, start};
use crate::raw_client::Ask;

fn call(name: &str) -> Value {
    let params = json!({"name": name, "arguments": {"x": 1}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

#[tokio::test]
async fn rights_toolset_rate_and_calls_at_once_are_those_of_the_token() {
    let tokens = [
        client("watcher", |watcher| watcher.rights = vec![Right::Observe]),
        client("narrow", |narrow| narrow.toolset = Some("echoes".into())),
        client("hasty", |hasty| hasty.rate = Some("2/h".parse().unwrap())),
        client("broad", |broad| broad.concurrent = Some(1)),
    ];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    let ask = |who: &str, tool: &str| Ask::mcp(server.address, call(tool)).of(who);

    let refused = ask("watcher", "echo").send().await;
    assert_eq!((refused.status, refused.kind().as_str()), (403, "forbidden"));
    assert!(refused.problem().contains("lacks the right `call`"));
    assert_eq!(ask("nobody", "echo").send().await.status, 401);

    let seen = ask("narrow", "echo").send().await.json();
    assert_eq!(seen["result"]["structuredContent"], json!({"x": 1}));
    let hidden = ask("narrow", "whoami").send().await.json();
    assert_eq!(hidden["error"]["code"], -32602);

    for status in [200, 200, 429] {
        let answer = ask("hasty", "echo").send().await;
        assert_eq!(answer.status, status);
        if status == 429 {
            assert_eq!(answer.kind(), "rate_limited");
            assert!(answer.header("retry-after").is_some());
        }
    }

    let mut waiting = tokio::net::TcpStream::connect(server.address).await.unwrap();
    ask("broad", "wait").write(&mut waiting).await;
    server.waits.begun.notified().await;
    assert_eq!(ask("broad", "echo").send().await.status, 429);
    assert_eq!(ask("narrow", "echo").send().await.status, 200);
    // A client that disconnects cancels its call.
    drop(waiting);
    server.waits.dropped.notified().await;
    server.end().await;
}

#[tokio::test]
async fn they_have_ids_and_are_counted() {
    let server = start(config()).await;
    let ask = Ask::mcp(server.address, call("echo"));
    let named = ask.clone().with("x-request-id", "mine-7").send().await;
    assert_eq!((named.status, named.header("x-request-id")), (200, Some("mine-7")));
    let unnamed = ask.clone().send().await;
    assert!(unnamed.header("x-request-id").unwrap().starts_with("req_"));
    assert_eq!(ask.clone().without("authorization").send().await.status, 401);
    assert_eq!(ask.with("host", "evil.example").send().await.status, 403);

    let metrics = Ask::api(server.address, "GET /metrics").send().await;
    for line in [
        r#"toolcrib_http_requests_total{method="POST",route="/mcp",status="200"} 2"#,
        r#"toolcrib_http_requests_total{method="POST",route="(other)",status="401"} 1"#,
        r#"toolcrib_http_requests_total{method="POST",route="(other)",status="403"} 1"#,
        r#"toolcrib_calls_total{tool="echo",outcome="success"} 2"#,
        // The one that asks.
        "toolcrib_http_requests_in_flight 1",
    ] {
        assert!(metrics.body.contains(line), "{line}\n{}", metrics.body);
    }
    server.end().await;
}

#[tokio::test]
async fn their_calls_are_on_record_with_whose_they_are() {
    let tokens = [client("ada", |ada| ada.rights = vec![Right::Call, Right::Observe])];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    for (tool, outcome) in [("echo", "success"), ("fail", "execution"), ("nobody", "not_found")] {
        Ask::mcp(server.address, call(tool)).of("ada").send().await;
        let tail =
            Ask::api(server.address, "GET /v1/audit?limit=100").of("ada").send().await.json();
        let records = tail["records"].as_array().unwrap();
        let record = records.last().unwrap();
        assert_eq!(record["outcome"], outcome, "{record}");
        assert_eq!(record["user"], "ada", "{record}");
        assert_eq!(record["call_id"], "1", "{record}");
    }
    let tail = Ask::api(server.address, "GET /v1/audit?limit=100").of("ada").send().await.json();
    assert_eq!(tail["records"].as_array().unwrap().len(), 3, "each once: {tail}");
    server.end().await;
}

#[tokio::test]
async fn what_is_too_deep_or_no_json_is_refused_before_anything_runs() {
    let server = start(config()).await;
    let post = |body: String| Ask::mcp(server.address, body).send();
    let deep = |levels: usize| {
        let argument = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        call("echo").to_string().replace(r#""x":1"#, &format!(r#""x":{argument}"#))
    };
    // The message, its parameters and the arguments are three levels.
    let there = post(deep(124)).await;
    assert_eq!((there.status, &there.json()["result"]["isError"]), (200, &json!(false)));
    for (body, why) in [
        (deep(126), "levels of nesting"),
        (deep(100_000), "levels of nesting"),
        ("{\"jsonrpc\":".to_owned(), "the text ends"),
    ] {
        let refused = post(body).await;
        let answer = refused.json();
        assert_eq!((refused.status, &answer["error"]["code"]), (400, &json!(-32700)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    }
    let tail = Ask::api(server.address, "GET /v1/audit?limit=100").send().await.json();
    assert_eq!(tail["records"].as_array().unwrap().len(), 1, "{tail}");
    server.end().await;
}
