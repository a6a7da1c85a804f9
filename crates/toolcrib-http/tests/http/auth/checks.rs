//! Which requests are admitted: `Host`, `Origin` and token, in this order.

use serde_json::{Value, json};
use toolcrib_http::ServerConfig;

use crate::fixture::{config, start};
use crate::raw_client::Ask;

fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
}

#[tokio::test]
async fn only_the_right_token_is_accepted() {
    let server = start(config()).await;
    let ask = Ask::mcp(server.address, list());
    assert_eq!(ask.clone().send().await.status, 200);

    let none = ask.clone().without("authorization").send().await;
    assert_eq!(none.status, 401);
    assert_eq!(none.header("www-authenticate"), Some(r#"Bearer realm="toolcrib""#));
    assert!(none.problem().contains("Authorization: Bearer"));

    for wrong in [
        "Bearer a-token-for-tests-onlY",
        "Bearer a-token-for-tests-only2",
        "Bearer a-token-for-tests-onl",
        "Bearer ",
    ] {
        let refused = ask.clone().with("authorization", wrong).send().await;
        assert_eq!(refused.status, 401, "{wrong}");
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
    }
    let basic = ask.clone().with("authorization", "Basic a-token-for-tests-only").send().await;
    assert_eq!(basic.status, 401);
    let twice = ask.and("authorization", "Bearer a-token-for-tests-only").send().await;
    assert_eq!(twice.status, 401);
    server.end().await;
}

#[tokio::test]
async fn a_foreign_host_is_refused_before_the_token_is_checked() {
    let server = start(config()).await;
    let port = server.address.port();
    for host in ["evil.example".to_owned(), format!("evil.example:{port}"), "127.0.0.1:1".into()] {
        for ask in [
            Ask::mcp(server.address, list()),
            Ask::mcp(server.address, list()).without("authorization"),
            Ask::new(server.address, "GET /v1/tools"),
            Ask::new(server.address, "GET /nowhere"),
        ] {
            let refused = ask.with("host", &host).send().await;
            assert_eq!(refused.status, 403, "{host}");
            assert!(refused.problem().contains("allowed_hosts"));
        }
    }
    for host in [format!("localhost:{port}"), format!("LocalHost:{port}"), format!("[::1]:{port}")]
    {
        let admitted = Ask::mcp(server.address, list()).with("host", &host).send().await;
        assert_eq!(admitted.status, 200, "{host}");
    }
    server.end().await;
}

#[tokio::test]
async fn probes_may_use_any_host() {
    let server = start(config()).await;
    for line in ["GET /health", "GET /ready", "GET http://pod-7.cluster.local/ready"] {
        let probed = Ask::new(server.address, line).with("host", "10.1.2.3:8414").send().await;
        assert_eq!(probed.status, 200, "{line}");
    }
    let page = Ask::new(server.address, "GET /health")
        .with("host", "10.1.2.3:8414")
        .with("origin", "https://evil.example");
    assert_eq!(page.send().await.status, 403);
    server.end().await;
}

#[tokio::test]
async fn a_wildcard_listener_accepts_the_connections_address_as_host() {
    let listen = ServerConfig { listen: "0.0.0.0:0".parse().unwrap(), ..config() };
    let server = start(listen).await;
    // Another address of this machine than the one that is always served.
    let address: std::net::SocketAddr = ([127, 9, 8, 7], server.address.port()).into();
    for ask in [Ask::mcp(address, list()), Ask::api(address, "GET /v1/tools")] {
        let own = ask.with("host", &address.to_string()).send().await;
        assert_eq!(own.status, 200);
    }
    let other = format!("127.9.8.6:{}", address.port());
    let foreign = Ask::api(address, "GET /v1/tools").with("host", &other).send().await;
    assert_eq!(foreign.status, 403);
    server.end().await;
}

#[tokio::test]
async fn a_request_needs_one_unambiguous_host() {
    let server = start(config()).await;
    let none = Ask::mcp(server.address, list()).without("host").send().await;
    assert_eq!(none.status, 400);
    let own = server.address.to_string();
    let two = Ask::mcp(server.address, list()).and("host", &own).send().await;
    assert_eq!(two.status, 400);
    let line = "GET http://evil.example/v1/tools";
    let in_line = Ask::new(server.address, line).send().await;
    assert_eq!(in_line.status, 403);
    server.end().await;
}

#[tokio::test]
async fn an_unlisted_origin_is_refused_even_with_the_right_token() {
    let page = "https://app.example".to_owned();
    let server = start(ServerConfig { allowed_origins: vec![page], ..config() }).await;
    let own = format!("http://{}", server.address);
    for origin in ["https://evil.example", "http://app.example", "null", "http://127.0.0.1:1"] {
        let ask = Ask::mcp(server.address, list()).with("origin", origin);
        assert_eq!(ask.clone().without("authorization").send().await.status, 403, "{origin}");
        let refused = ask.send().await;
        assert_eq!(refused.status, 403, "{origin}");
        assert!(refused.problem().contains("allowed_origins"));
    }
    // Pages that this server serves may call it.
    for origin in ["https://app.example", "https://app.example:443", &own] {
        let admitted = Ask::mcp(server.address, list()).with("origin", origin).send().await;
        assert_eq!(admitted.status, 200, "{origin}");
    }
    server.end().await;
}

#[tokio::test]
async fn a_listed_host_is_served() {
    let hosts = vec!["tools.example".to_owned()];
    let server = start(ServerConfig { allowed_hosts: hosts, ..config() }).await;
    let admitted = Ask::mcp(server.address, list()).with("host", "tools.example").send().await;
    assert_eq!(admitted.status, 200);
    server.end().await;
}

#[tokio::test]
async fn health_needs_no_token_and_shows_numbers_only() {
    let server = start(config()).await;
    let health = Ask::new(server.address, "GET /health").send().await;
    let body = health.json();
    assert_eq!((health.status, &body["status"]), (200, &json!("ok")));
    let mut others = body.as_object().unwrap().iter().filter(|(key, _)| *key != "status");
    assert!(others.all(|(_, value)| value.is_u64()), "{body}");
    server.end().await;
}

#[tokio::test]
async fn an_unknown_path_says_where_mcp_is() {
    let server = start(config()).await;
    let lost = Ask::new(server.address, "GET /sse").send().await;
    assert_eq!(lost.status, 404);
    assert!(lost.problem().contains("/mcp"));
    server.end().await;
}

#[tokio::test]
async fn without_authentication_the_other_checks_apply() {
    let server = start(ServerConfig { token: None, no_auth: true, ..config() }).await;
    let ask = Ask::mcp(server.address, list()).without("authorization");
    assert_eq!(ask.clone().send().await.status, 200);
    assert_eq!(ask.clone().with("host", "evil.example").send().await.status, 403);
    assert_eq!(ask.with("origin", "https://evil.example").send().await.status, 403);
    server.end().await;
}
