//! Rights in a session of MCP (revision 2025-11-25): who is asked for consent, and what happens to
//! a session and its calls when its client is revoked.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolcrib_http::{ClientConfig, Right, ServerConfig};

use crate::fixture::{Running, client, config, start};
use crate::raw_client::Ask;

fn rights(rights: &[Right]) -> impl FnOnce(&mut ClientConfig) {
    let rights = rights.to_vec();
    move |client| client.rights = rights
}

fn with(tokens: impl IntoIterator<Item = (String, ClientConfig)>) -> ServerConfig {
    ServerConfig { tokens: tokens.into_iter().collect(), ..config() }
}

/// A session of a client that can be asked for consent.
async fn session(server: &Running, who: &str) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    let hello = Ask::mcp(server.address, hello).of(who).send().await;
    let session = hello.header("mcp-session-id").expect("a session").to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = Ask::mcp(server.address, ready).of(who).with("mcp-session-id", &session);
    assert_eq!(ready.send().await.status, 202);
    session
}

fn call(server: &Running, who: &str, session: &str, tool: &str) -> Ask {
    let params = json!({"name": tool, "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    Ask::mcp(server.address, call).of(who).with("mcp-session-id", session)
}

/// The status and everything before the end of an answer, which may be an event stream.
async fn said(server: &Running, ask: Ask) -> (u16, String) {
    let mut stream = TcpStream::connect(server.address).await.expect("it listens");
    ask.with("connection", "close").write(&mut stream).await;
    let mut bytes = Vec::new();
    let read = timeout(Duration::from_secs(60), stream.read_to_end(&mut bytes)).await;
    read.expect("an end in time").expect("it can be read");
    let text = String::from_utf8(bytes).expect("text");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), text)
}

async fn approvals(server: &Running) -> Vec<Value> {
    let list = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    list["approvals"].as_array().expect("a list").clone()
}

/// The last record of a tool in the audit log, once it has this outcome.
async fn audited(server: &Running, tool: &str, outcome: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..250 {
        let audit = Ask::api(server.address, "GET /v1/audit?limit=100").send().await.json();
        let mut records = audit["records"].as_array().expect("a list").iter();
        last = records.rfind(|one| one["tool"] == tool).cloned().unwrap_or_default();
        if last["outcome"] == outcome {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{tool} is not on record as {outcome}: {last}")
}

#[tokio::test]
async fn in_a_session_a_client_without_the_right_to_approve_is_not_asked_and_cannot_approve() {
    let server = start(with([client("agent", rights(&[Right::Call]))])).await;
    let session = session(&server, "agent").await;
    let (_, refused) = said(&server, call(&server, "agent", &session, "remove")).await;
    assert!(!refused.contains("elicitation/create"), "{refused}");
    assert!(refused.contains("requires_approval"), "{refused}");
    let [waiting] = &*approvals(&server).await else { panic!("one call waits") };
    let id = waiting["id"].as_str().expect("an id").to_owned();

    // Consent without a question, in any form.
    let consent = json!({"action": "accept", "content": {"approve": true}});
    for id in [json!(0), json!(1), json!(2), json!(id)] {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": consent});
        let answer = Ask::mcp(server.address, answer).of("agent").with("mcp-session-id", &session);
        answer.send().await;
    }
    let ahead = json!({"name": "remove", "arguments": {}, "requestState": id,
        "inputResponses": {"answer": consent}});
    let ahead = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ahead});
    let ahead = Ask::mcp(server.address, ahead).of("agent").with("mcp-session-id", &session);
    // The call may wait for the decision; the client that approves disconnects meanwhile.
    if let Ok((_, ahead)) = timeout(Duration::from_secs(2), said(&server, ahead)).await {
        assert!(!ahead.contains("removed"), "{ahead}");
    }
    for (line, body) in [
        (format!("POST /v1/approvals/{id}"), json!({"decision": "approve"})),
        (format!("GET /v1/approvals/{id}"), Value::Null),
    ] {
        let refused = Ask::new(server.address, &line).of("agent").json(&body).send().await;
        assert_eq!(refused.status, 403, "{line}: {}", refused.body);
    }
    assert!(approvals(&server).await.iter().any(|one| one["id"] == id.as_str()), "it still waits");

    // A client with the right approves; the repeated call gets the answer.
    let approve = Ask::api(server.address, &format!("POST /v1/approvals/{id}"));
    assert_eq!(approve.json(&json!({"decision": "approve"})).send().await.status, 200);
    let (_, again) = said(&server, call(&server, "agent", &session, "remove")).await;
    assert!(again.contains("removed"), "{again}");
    server.end().await;
}

#[tokio::test]
async fn a_client_that_is_revoked_in_its_session_is_refused_and_its_calls_end_on_record() {
    let server = start(with([client("ada", |_| {}), client("bob", |_| {})])).await;
    let (hers, his) = (session(&server, "ada").await, session(&server, "bob").await);
    let (_, waits) = said(&server, call(&server, "ada", &hers, "remove")).await;
    assert!(waits.contains("requires_approval"), "{waits}");
    assert_eq!(approvals(&server).await.len(), 1);
    let mut running = TcpStream::connect(server.address).await.expect("it listens");
    call(&server, "ada", &hers, "wait").write(&mut running).await;
    server.waits.begun.notified().await;

    let next = with([client("bob", |_| {})]);
    let changed = server.settings.prepare(&next, &|_| None).expect("right settings");
    assert_eq!(changed.apply(), ["ada".into()]);
    timeout(Duration::from_secs(5), server.waits.dropped.notified()).await.expect("it is ended");
    // A waiting call is denied automatically, so that it can no longer be approved.
    let ran = audited(&server, "wait", "revoked").await;
    assert_eq!((&ran["user"], &ran["decision"]["verdict"]), (&json!("ada"), &json!("allowed")));
    let waited = audited(&server, "remove", "denied").await;
    assert_eq!(waited["user"], "ada", "{waited}");
    assert!(waited["decision"].to_string().contains("removed"), "the reason is told: {waited}");
    assert_eq!(approvals(&server).await, Vec::<Value>::new());

    for tool in ["echo", "remove"] {
        let refused = call(&server, "ada", &hers, tool).send().await;
        assert_eq!(refused.status, 401, "{}", refused.body);
    }
    // Nobody else can use her session.
    let stolen = call(&server, "bob", &hers, "echo").send().await;
    assert!([401, 403, 404].contains(&stolen.status), "{}", stolen.body);
    assert_eq!(call(&server, "bob", &his, "echo").send().await.status, 200);
    server.end().await;
}

#[tokio::test]
async fn a_client_whose_rights_are_narrowed_in_its_session_is_refused_on_record() {
    let deny = json!({"rules": [{"tool": "count", "action": "deny"}]});
    let server = start(with([client("ada", |_| {})])).await;
    let before = session(&server, "ada").await;
    assert_eq!(call(&server, "ada", &before, "count").send().await.status, 200);
    let rules = |ada: &mut ClientConfig| ada.policy = serde_json::from_value(deny).expect("rules");
    let next = with([client("ada", rules)]);
    server.settings.prepare(&next, &|_| None).expect("right settings").apply();
    // The session follows the change, or has ended.
    let (mut status, mut refused) = said(&server, call(&server, "ada", &before, "count")).await;
    if status == 404 {
        let after = session(&server, "ada").await;
        (status, refused) = said(&server, call(&server, "ada", &after, "count")).await;
    }
    assert!(status == 200 && refused.contains("denied"), "{status}: {refused}");
    let record = audited(&server, "count", "denied").await;
    assert_eq!(record["user"], "ada", "{record}");
    server.end().await;
}
