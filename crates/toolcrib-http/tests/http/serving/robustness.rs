//! Invalid requests of broken and hostile clients: each gets an answer or a closed connection, and
//! the server keeps running.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolcrib_http::ServerConfig;

use crate::fixture::{TOKEN, config, start};
use crate::raw_client::Ask;

/// How a client continues after it has sent everything.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// It waits for the answer.
    Waits,
    /// It closes its side of the connection, and may lose the answer.
    Leaves,
}

/// Sends bytes and reads to the end; returns the status, if there was an answer.
async fn status_of(address: SocketAddr, bytes: &[u8], then: Then) -> Option<u16> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may stop reading before everything is sent.
    let _ = stream.write_all(bytes).await;
    if then == Then::Leaves {
        let _ = stream.shutdown().await;
    }
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    let _ = read.expect("an answer or an end");
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2025-11-25\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The fixture's settings, reachable as `localhost` with any port.
fn any_port() -> ServerConfig {
    ServerConfig { allowed_hosts: vec!["localhost".to_owned()], ..config() }
}

const PATHS: [&str; 6] = [
    "/mcp",
    "/v1/batch",
    "/v1/runs",
    "/v1/tools/echo/call",
    "/v1/runs/00000000000000000000000000000000/submit_tool_outputs",
    "/v1/runs/00000000000000000000000000000000/resolve",
];

async fn lives(address: SocketAddr) {
    assert_eq!(Ask::new(address, "GET /health").send().await.status, 200);
}

#[tokio::test]
async fn bodies_that_are_no_request_are_refused_by_every_route() {
    let server = start(any_port()).await;
    let deep = "[".repeat(100_000);
    let deep_object = format!("{}1{}", "{\"arguments\":".repeat(200), "}".repeat(200));
    let bodies: [&[u8]; 10] = [
        b"{",
        b"nul",
        b"\"text\"",
        b"\xff\xfe{}",
        b"{\"calls\": [{\"tool\": \"\xc3\x28\"}]}",
        b"{\"calls\": 1, \"calls\": 2}",
        b"{\"call_id\": \"\\ud800\"}",
        deep.as_bytes(),
        deep_object.as_bytes(),
        b"{} {}",
    ];
    for path in PATHS {
        for body in bodies {
            let status = status_of(server.address, &post(path, body), Then::Waits).await;
            assert!(
                status.is_some_and(|status| (400..500).contains(&status)),
                "{path}: {status:?} for {}",
                String::from_utf8_lossy(&body[..body.len().min(60)])
            );
        }
    }
    lives(server.address).await;
    server.end().await;
}

#[test]
fn whatever_is_sent_is_answered_or_ended_and_the_server_lives() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(start(any_port()));
    let address = server.address;
    let json = prop_oneof![
        Just(json!({"tool": "echo"})),
        Just(json!([{"tool": "echo", "arguments": {"x": [1, 2.5, null]}}])),
        Just(
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}})
        ),
        Just(json!({"jsonrpc": "2.0", "method": "tools/list", "id": {}, "params": []})),
        "[a-z_]{1,12}".prop_map(|key| json!({ key: [1, "x", {}] })),
    ]
    .prop_map(|value| value.to_string().into_bytes());
    let body = prop_oneof![json, proptest::collection::vec(any::<u8>(), 0..200)];
    // The parts that are removed from a request, or inserted into it.
    let damage =
        (any::<prop::sample::Index>(), proptest::collection::vec(any::<u8>(), 0..8), 0..3_u8);
    let cases = (0..PATHS.len(), body, damage);
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 96;
    }
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&cases, |(path, body, (place, bytes, kind))| {
        let mut request = post(PATHS[path], &body);
        let at = place.index(request.len());
        match kind {
            0 => request.truncate(at),
            1 => drop(request.splice(at..at, bytes)),
            _ => {}
        }
        let status = runtime.block_on(status_of(address, &request, Then::Leaves));
        prop_assert!(status.is_none_or(|status| status < 500), "{status:?}");
        Ok(())
    });
    outcome.unwrap();
    runtime.block_on(async {
        lives(address).await;
        server.end().await;
    });
}

#[tokio::test]
async fn a_request_that_does_not_arrive_in_time_is_given_up() {
    let server = start(ServerConfig {
        read_timeout: toolcrib_tool::units::Timeout(Duration::from_secs(1)),
        ..any_port()
    })
    .await;
    let slow_body = {
        let mut request = post("/v1/batch", b"{\"calls\": []}");
        request.truncate(request.len() - 3);
        request
    };
    let mut answers = Vec::new();
    for begun in [b"GET /health HTTP/1.1\r\nhost: loc".as_slice(), b"", &slow_body] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        let since = Instant::now();
        let mut answer = Vec::new();
        let end = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
        let _ = end.expect("an end in time");
        assert!(since.elapsed() >= Duration::from_millis(900), "it was given its time");
        answers.push(String::from_utf8(answer).unwrap());
    }
    assert!(answers[2].starts_with("HTTP/1.1 408"), "{answers:?}");
    assert!(!answers[0].contains(" 200 "), "{answers:?}");
    lives(server.address).await;
    server.end().await;
}

#[tokio::test]
async fn a_connection_that_is_idle_after_an_answer_is_closed_once_the_read_timeout_has_passed() {
    let server = start(ServerConfig {
        read_timeout: toolcrib_tool::units::Timeout(Duration::from_secs(1)),
        ..any_port()
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for request in 1..=2 {
        Ask::new(server.address, "GET /health").write(&mut stream).await;
        let answer = crate::raw_client::Reply::read(&mut stream).await;
        assert_eq!(answer.status, 200, "request {request}");
    }
    let idle_since = Instant::now();
    let mut rest = Vec::new();
    let end = timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
    let _ = end.expect("an end in time");
    assert!(idle_since.elapsed() >= Duration::from_millis(900), "{:?}", idle_since.elapsed());
    assert!(!String::from_utf8_lossy(&rest).contains(" 200 "), "nothing more was asked for");
    server.end().await;
}

#[tokio::test]
async fn connections_beyond_the_bound_are_told_to_come_back() {
    let server = start(ServerConfig { connections: 3, ..config() }).await;
    let health = Ask::new(server.address, "GET /health");
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        health.write(&mut stream).await;
        crate::raw_client::Reply::read(&mut stream).await;
        held.push(stream);
    }
    let refused = health.clone().send().await;
    assert_eq!((refused.status, refused.kind().as_str()), (503, "unavailable"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    held.clear();
    let mut answer = health.clone().send().await;
    for _ in 0..500 {
        if answer.status == 200 {
            break;
        }
        // That a connection has ended is noticed a moment later.
        tokio::time::sleep(Duration::from_millis(10)).await;
        answer = health.clone().send().await;
    }
    assert_eq!(answer.status, 200);
    server.end().await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let server = start(any_port()).await;
    let mut request = post("/v1/batch", b"{}");
    let filler = format!("x-filler: {}\r\n", "x".repeat(400_000));
    let place = request.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
    request.splice(place..place, filler.into_bytes());
    let status = status_of(server.address, &request, Then::Waits).await;
    assert!(status.is_none_or(|status| status == 431), "{status:?}");
    lives(server.address).await;
    server.end().await;
}

#[tokio::test]
async fn a_request_with_two_lengths_is_the_last_of_its_connection() {
    let server = start(config()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let address = server.address;
    let text = format!(
        "POST /v1/tools/echo/call HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
         2\r\n{{}}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nhost: {address}\r\n\r\n"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answers = String::new();
    // Reading stops: what follows the request is not parsed as another one.
    timeout(Duration::from_secs(10), stream.read_to_string(&mut answers)).await.unwrap().unwrap();
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
    assert!(answers.to_lowercase().contains("connection: close"), "{answers}");
    server.end().await;
}
