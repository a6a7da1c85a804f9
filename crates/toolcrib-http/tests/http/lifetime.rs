//! Binding, and ending with requests and connections still open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
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
    assert_ne!(server.local_addr().port(), 0);
    assert_eq!(server.mcp_url(), format!("http://{}/mcp", server.local_addr()));
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
    let open = ServerConfig { listen: everywhere, token: None, no_auth: true, ..config() };
    assert!(matches!(bind(open).await, Err(HttpError::OpenToTheNetwork { .. })));
    let host = ServerConfig { allowed_hosts: vec!["http://a".into()], ..config() };
    assert!(matches!(bind(host).await, Err(HttpError::Host { .. })));
    let origin = ServerConfig { allowed_origins: vec!["*".into()], ..config() };
    assert!(matches!(bind(origin).await, Err(HttpError::Origin { .. })));
}

#[tokio::test]
async fn a_taken_port_is_told_with_what_to_do() {
    let first = bind(config()).await.unwrap();
    let error = bind(ServerConfig { listen: first.local_addr(), ..config() }).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&first.local_addr().to_string()) && text.contains("port 0"), "{text}");
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
