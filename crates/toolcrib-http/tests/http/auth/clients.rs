//! Clients with their own tokens: what each may do, and with which identity.

use serde_json::{Value, json};
use toolcrib_core::policy::{OnAsk, Policy, PolicyRule};
use toolcrib_http::{HttpError, HttpServer, Right, ServerConfig};

use crate::fixture::{Running, client, config, served, start};
use crate::raw_client::{Ask, Reply};

async fn call(server: &Running, who: &str, tool: &str, body: &Value) -> Reply {
    let ask = Ask::new(server.address, &format!("POST /v1/tools/{tool}/call"));
    ask.of(who).json(body).send().await
}

#[tokio::test]
async fn each_token_has_its_own_rights_tools_rules_and_identity() {
    let no_echo = Policy::new(OnAsk::Wait, [PolicyRule::deny().tool("echo")]).unwrap();
    let tokens = [
        client("ada", |_| {}),
        client("bob", |bob| {
            bob.toolset = Some("echoes".into());
            bob.context = [("tenant".to_owned(), json!("acme"))].into();
        }),
        client("watcher", |watcher| watcher.rights = vec![Right::Observe]),
        client("guest", |guest| guest.policy = no_echo),
    ];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    let whoami = call(&server, "ada", "whoami", &json!({"session": "s1"})).await.json();
    assert_eq!(whoami["data"], json!({"user": "ada", "tenant": null, "session": "s1"}));
    let operator = Ask::api(server.address, "POST /v1/tools/whoami/call").send().await.json();
    assert_eq!(operator["data"]["user"], json!(null));

    // Tools outside of its toolset do not exist for it, over MCP either.
    assert_eq!(call(&server, "bob", "whoami", &json!({})).await.kind(), "not_found");
    assert_eq!(call(&server, "bob", "echo", &json!({})).await.status, 200);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let listed = Ask::mcp(server.address, list).of("bob").send().await.json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);

    assert_eq!(call(&server, "guest", "echo", &json!({})).await.kind(), "denied");
    assert_eq!(call(&server, "guest", "count", &json!({})).await.status, 200);

    let refused = call(&server, "watcher", "echo", &json!({})).await;
    assert_eq!((refused.status, refused.kind().as_str()), (403, "forbidden"));
    assert!(refused.problem().contains("lacks the right `call`"));
    let metrics = |who: &str| Ask::new(server.address, "GET /metrics").of(who).send();
    assert_eq!(metrics("watcher").await.status, 200);
    assert_eq!(metrics("ada").await.status, 403);
    assert_eq!(metrics("nobody").await.status, 401);
    server.end().await;
}

#[tokio::test]
async fn a_client_over_its_limits_learns_when_to_retry() {
    let tokens = [
        client("hasty", |hasty| hasty.rate = Some("2/h".parse().unwrap())),
        client("broad", |broad| broad.concurrent = Some(1)),
    ];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    for status in [200, 200, 429] {
        let answer = call(&server, "hasty", "echo", &json!({})).await;
        assert_eq!(answer.status, status);
        if status == 429 {
            assert_eq!(answer.kind(), "rate_limited");
            let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1700..=1800).contains(&seconds), "{seconds}");
        }
    }
    // Another client is not affected.
    assert_eq!(call(&server, "broad", "echo", &json!({})).await.status, 200);
    let mut waiting = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let ask = Ask::new(server.address, "POST /v1/tools/wait/call").of("broad");
    ask.write(&mut waiting).await;
    server.waits.begun.notified().await;
    assert_eq!(call(&server, "broad", "echo", &json!({})).await.status, 429);
    drop(waiting);
    server.waits.dropped.notified().await;
    let mut answer = call(&server, "broad", "echo", &json!({})).await;
    // The connection's end is noticed a moment later than the call's.
    for _ in 0..200 {
        if answer.status != 429 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        answer = call(&server, "broad", "echo", &json!({})).await;
    }
    assert_eq!(answer.status, 200);
    server.end().await;
}

#[tokio::test]
async fn work_that_continues_without_its_client_counts_until_it_is_done() {
    let tokens = [client("broad", |broad| broad.concurrent = Some(1))];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    let mut left = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let ask = Ask::new(server.address, "POST /v1/tools/wait/call").of("broad");
    ask.with("idempotency-key", "k").write(&mut left).await;
    server.waits.begun.notified().await;
    drop(left);
    // Until the end is noticed; then only the client that requests the metrics is there.
    let alone = "toolcrib_http_requests_in_flight 1\n";
    let noticed = async {
        while !Ask::api(server.address, "GET /metrics").send().await.body.contains(alone) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    tokio::time::timeout(limit, noticed).await.expect("its end is noticed");
    assert_eq!(call(&server, "broad", "echo", &json!({})).await.status, 429);
    // The work does not end by itself.
    server.stop().abort();
}

#[tokio::test]
async fn without_authentication_clients_may_call_and_observe_only() {
    let server = start(ServerConfig { token: None, no_auth: true, ..config() }).await;
    let ask = |line: &str| Ask::new(server.address, line).send();
    assert_eq!(ask("POST /v1/tools/echo/call").await.status, 200);
    assert_eq!(ask("GET /v1/stats").await.status, 200);
    assert_eq!(ask("POST /v1/reload").await.status, 403);
    assert_eq!(ask("GET /v1/approvals").await.status, 403);
    let waits = ask("POST /v1/tools/remove/call").await.json();
    let resolve = format!("POST /v1/runs/{}/resolve", waits["id"].as_str().unwrap());
    let approve = json!({"id": waits["waiting"][0]["id"], "decision": "approve"});
    let refused = Ask::new(server.address, &resolve).json(&approve).send().await;
    assert_eq!(refused.status, 403);
    assert!(refused.problem().contains("`server.no_auth`"), "{}", refused.body);
    server.end().await;
}

#[tokio::test]
async fn invalid_clients_are_refused_at_the_start() {
    let bind = async |config: ServerConfig| {
        let (crib, mcp) = served(std::sync::Arc::default());
        HttpServer::bind(config, crib, mcp).await
    };
    let lost = client("ada", |ada| ada.toolset = Some("nowhere".into()));
    let error = bind(ServerConfig { tokens: [lost].into(), ..config() }).await.unwrap_err();
    assert_eq!(error.to_string(), "server.tokens.ada.toolset: there is no toolset `nowhere`");
    let config_of_all = ServerConfig { toolset: Some("nowhere".into()), ..config() };
    let error = bind(config_of_all).await.unwrap_err();
    assert_eq!(error.to_string(), "server.toolset: there is no toolset `nowhere`");
    let (one, hash) = client("ada", |_| {});
    let twins = [(one, hash.clone()), ("eve".to_owned(), hash)];
    let error = bind(ServerConfig { tokens: twins.into(), ..config() }).await.unwrap_err();
    assert!(matches!(&error, HttpError::SameToken { .. }), "{error}");
    for own in ["operator", "owner", "anyone"] {
        let tokens = [client(own, |_| {})].into();
        let error = bind(ServerConfig { tokens, ..config() }).await.unwrap_err();
        assert!(matches!(&error, HttpError::ReservedName { .. }), "{error}");
    }
    // If clients have tokens, no token is created for an operator.
    let only = ServerConfig { token: None, tokens: [client("ada", |_| {})].into(), ..config() };
    assert!(bind(only).await.unwrap().token().is_none());
}
