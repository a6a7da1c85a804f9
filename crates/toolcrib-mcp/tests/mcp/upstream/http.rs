//! Servers over HTTP: which addresses are contacted, and what is sent there.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;
use toolcrib_mcp::upstream::{HttpServer, Upstream, UpstreamState};

use super::{PATIENCE, Room};

fn detail(room: &Room, upstream: &str) -> String {
    match room.state(upstream) {
        UpstreamState::Down { reason, detail, .. } => {
            format!("{reason}: {}", detail.unwrap_or_default())
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = |host: &str| HttpServer::new(format!("http://{host}:{port}/mcp"));
    let elsewhere = at("127.0.0.1").allow("10.0.0.0/8".parse().unwrap());
    let room = Room::with([
        Upstream::http("literal", at("127.0.0.1")),
        Upstream::http("named", at("localhost")),
        Upstream::http("elsewhere", elsewhere),
    ])
    .await;
    for name in ["literal", "named", "elsewhere"] {
        let said = detail(&room, name);
        assert!(said.contains("loopback"), "{name}: {said}");
    }
    let dialled = timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(dialled.is_err(), "somebody connected");
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn the_token_and_headers_are_sent_to_the_server_and_appear_in_no_message() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut byte = [0; 1];
            stream.read_exact(&mut byte).await.unwrap();
            head.push(byte[0]);
        }
        let refused = "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\n\
                       content-length: 26\r\nconnection: close\r\n\r\nhunter22-token: go away!!!\n";
        stream.write_all(refused.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap().to_lowercase()
    });
    let server = HttpServer::new(format!("http://127.0.0.1:{port}/mcp"))
        .bearer("hunter22-token")
        .header("X-Team", "operators")
        .allow("127.0.0.0/8".parse().unwrap());
    let slow = Duration::from_secs(60);
    let room = Room::with([Upstream::http("far", server).reconnect(slow, slow)]).await;
    let head = timeout(PATIENCE, asked).await.unwrap().unwrap();
    assert!(head.contains("authorization: bearer hunter22-token"), "{head}");
    assert!(head.contains("x-team: operators"), "{head}");
    let said = detail(&room, "far");
    assert!(said.starts_with("it does not open an MCP session: "), "{said}");
    assert!(said.contains("403") && !said.contains("hunter22"), "{said}");
    room.upstreams.shutdown().await;
}
