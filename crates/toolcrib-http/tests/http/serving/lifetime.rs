//! Binding, and shutdown with open requests and connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use toolcrib_http::{HttpError, HttpServer, ServerConfig};

use crate::fixture::{Running, config, served, start};
use crate::raw_client::{Ask, Reply};

fn bind(config: ServerConfig) -> impl Future<Output = Result<HttpServer, HttpError>> {
    let (crib, mcp) = served(Arc::default());
    HttpServer::bind(config, crib, mcp)
}

#[tokio::test]
async fn the_real_port_and_the_token_are_known_before_anything_is_served() {
    let server = bind(ServerConfig { token: None, ..config() }).await.unwrap();
    let address = server.local_addr().unwrap();
    assert_ne!(address.port(), 0);
    assert_eq!(server.mcp_url(), format!("http://{address}/mcp"));
    assert!(server.token_is_new());
    assert_eq!(server.token().unwrap().reveal().len(), 64);
    assert!(!format!("{server:?}").contains(server.token().unwrap().reveal()));

    let chosen = bind(config()).await.unwrap();
    assert!(!chosen.token_is_new() && chosen.token().is_some());
    let open = bind(ServerConfig { token: None, no_auth: true, ..config() }).await.unwrap();
    assert!(open.token().is_none() && !open.token_is_new());
}

#[tokio::test]
async fn unsafe_or_meaningless_settings_do_not_start() {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let open = ServerConfig { listen: everywhere.into(), token: None, no_auth: true, ..config() };
    assert!(matches!(bind(open).await, Err(HttpError::OpenToTheNetwork { .. })));
    let host = ServerConfig { allowed_hosts: vec!["http://a".into()], ..config() };
    assert!(matches!(bind(host).await, Err(HttpError::Host { .. })));
    let origin = ServerConfig { allowed_origins: vec!["*".into()], ..config() };
    assert!(matches!(bind(origin).await, Err(HttpError::Origin { .. })));
}

#[tokio::test]
async fn a_taken_port_is_told_with_what_to_do() {
    let first = bind(config()).await.unwrap();
    let taken = first.local_addr().unwrap();
    let error = bind(ServerConfig { listen: taken.into(), ..config() }).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&taken.to_string()) && text.contains("`server.listen`"), "{text}");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let server = start(config()).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let health = Ask::new(server.address, "GET /health");
    health.write(&mut idle).await;
    assert_eq!(Reply::read(&mut idle).await.status, 200);
    let address = server.address;
    let begun = Instant::now();
    server.end().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(address).await.is_err());
}

/// Starts a request whose answer is an event stream, and reads until it has begun.
async fn open_stream(address: SocketAddr, ask: Ask) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask.write(&mut stream).await;
    let mut head = [0; 15];
    timeout(Duration::from_secs(20), stream.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stream
}

#[tokio::test]
async fn a_stream_that_only_tells_of_changes_does_not_hold_up_the_end() {
    let server = start(config()).await;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    let message = |method: &str, params: Value| {
        Ask::mcp(
            server.address,
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
    };
    let hello = message("initialize", hello).send().await;
    let session = hello.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    Ask::mcp(server.address, ready).with("mcp-session-id", &session).send().await;
    let told = Ask::mcp(server.address, "").without("content-length").without("content-type");
    let told = told.on("GET /mcp").with("mcp-session-id", &session);
    let listen = json!({"notifications": {"toolsListChanged": true}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let listen = message("subscriptions/listen", listen)
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "subscriptions/listen");
    let streams =
        [open_stream(server.address, told).await, open_stream(server.address, listen).await];

    let begun = Instant::now();
    server.end().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for mut stream in streams {
        let mut rest = String::new();
        timeout(Duration::from_secs(20), stream.read_to_string(&mut rest)).await.unwrap().unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "an end, and not a break: {rest}");
    }
}

/// Connects and starts a call that does not end by itself.
async fn start_waiting(server: &Running) -> TcpStream {
    let params = json!({"name": "wait", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    Ask::mcp(server.address, call).write(&mut stream).await;
    told(&server.waits.begun).await;
    stream
}

async fn told(notify: &Notify) {
    timeout(Duration::from_secs(10), notify.notified()).await.expect("news in time");
}

#[tokio::test]
async fn a_client_that_hangs_up_takes_its_call_with_it() {
    let server = start(config()).await;
    let stream = start_waiting(&server).await;
    drop(stream);
    told(&server.waits.dropped).await;
    server.end().await;
}

#[tokio::test]
async fn a_call_that_does_not_end_is_ended_after_the_drain() {
    let server = start(config()).await;
    let mut stream = start_waiting(&server).await;
    let waits = Arc::clone(&server.waits);
    let begun = Instant::now();
    let serving = server.stop();
    timeout(Duration::from_secs(14), serving).await.expect("an end in time").unwrap().unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(9), "running requests get time to finish");
    told(&waits.dropped).await;
    assert_eq!(Reply::read(&mut stream).await.status, 500);
}
