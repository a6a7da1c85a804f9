//! Settings that change while a server runs: whose token is good, and what ends with it.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolcrib_http::{ChangedSettings, ClientConfig, HttpError, Right, ServerConfig, Token};

use crate::fixture::{Running, TOKEN, client, config, start};
use crate::raw_client::{Ask, Reply};

fn with(tokens: impl IntoIterator<Item = (String, ClientConfig)>) -> ServerConfig {
    ServerConfig { tokens: tokens.into_iter().collect(), ..config() }
}

fn prepare(server: &Running, config: &ServerConfig) -> Result<ChangedSettings, HttpError> {
    server.settings.prepare(config, &|_| None)
}

async fn tools(server: &Running, who: &str) -> u16 {
    Ask::new(server.address, "GET /v1/tools").of(who).send().await.status
}

/// Begins a session of MCP.
async fn initialize(server: &Running, who: &str) -> Reply {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    Ask::mcp(server.address, hello).of(who).send().await
}

#[tokio::test]
async fn a_revoked_token_is_refused_and_its_requests_and_streams_end() {
    let server = start(with([client("ada", |_| {}), client("bob", |_| {})])).await;
    let session = initialize(&server, "ada").await.header("mcp-session-id").unwrap().to_owned();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let get = Ask::mcp(server.address, "").on("GET /mcp").of("ada").with("content-length", "0");
    get.with("mcp-session-id", &session).write(&mut stream).await;
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    Ask::new(server.address, "POST /v1/tools/wait/call").of("ada").write(&mut waiting).await;
    server.waits.begun.notified().await;

    let changed = prepare(&server, &with([client("bob", |_| {})])).unwrap();
    assert_eq!(tools(&server, "ada").await, 200, "nothing changes before it is applied");
    assert_eq!(changed.apply(), ["ada".into()]);

    assert_eq!(tools(&server, "ada").await, 401);
    assert_eq!(initialize(&server, "ada").await.status, 401);
    let mut rest = Vec::new();
    // Whether the end is clean or a reset is the system's matter.
    let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    ended.expect("the stream ends").ok();
    server.waits.dropped.notified().await;
    assert_eq!(Reply::read(&mut waiting).await.status, 401);
    assert_eq!(tools(&server, "bob").await, 200);
    server.end().await;
}

#[tokio::test]
async fn clients_of_which_nothing_changed_keep_their_sessions_and_limits() {
    let hasty = || client("hasty", |hasty| hasty.rate = Some("2/h".parse().unwrap()));
    let server = start(with([hasty(), client("ada", |_| {})])).await;
    let session = initialize(&server, "hasty").await.header("mcp-session-id").unwrap().to_owned();
    let changed = prepare(&server, &with([hasty(), client("new", |_| {})])).unwrap();
    assert_eq!(changed.apply(), ["ada".into()]);
    assert_eq!(tools(&server, "new").await, 200);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let ready = Ask::mcp(server.address, ready).of("hasty").with("mcp-session-id", &session);
    assert_eq!(ready.send().await.status, 202, "the session goes on");
    assert_eq!(tools(&server, "hasty").await, 429, "and so does the limit");
    server.end().await;
}

#[tokio::test]
async fn rights_and_the_operators_token_change_too() {
    let server = start(with([client("ada", |_| {})])).await;
    let metrics = || Ask::new(server.address, "GET /metrics").of("ada").send();
    assert_eq!(metrics().await.status, 403);
    let next = ServerConfig {
        token: Some(Token::new("another-token-for-tests").unwrap()),
        ..with([client("ada", |ada| ada.rights = vec![Right::Observe])])
    };
    let mut ended = prepare(&server, &next).unwrap().apply();
    ended.sort();
    assert_eq!(ended, ["ada".into(), "operator".into()]);
    assert_eq!(metrics().await.status, 200);
    let as_operator = |token: &str| {
        let bearer = format!("Bearer {token}");
        Ask::new(server.address, "GET /v1/status").with("authorization", &bearer).send()
    };
    assert_eq!(as_operator(TOKEN).await.status, 401);
    assert_eq!(as_operator("another-token-for-tests").await.status, 200);
    server.end().await;
}

#[tokio::test]
async fn settings_that_cannot_be_used_change_nothing() {
    let server = start(with([client("ada", |_| {})])).await;
    let nowhere = with([client("ada", |ada| ada.toolset = Some("nowhere".into()))]);
    let refused = prepare(&server, &nowhere).unwrap_err();
    assert!(matches!(refused, HttpError::Toolset { .. }), "{refused}");
    let nobody = ServerConfig { token: None, ..config() };
    let refused = prepare(&server, &nobody).unwrap_err();
    assert!(matches!(refused, HttpError::NoTokenLeft), "{refused}");
    assert_eq!(tools(&server, "ada").await, 200);
    server.end().await;
}
