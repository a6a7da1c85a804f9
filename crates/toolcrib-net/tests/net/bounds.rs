//! Limits on time and size, and servers that exceed them.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolcrib_net::{Client, Error, Limits, Method, NamedBy, Request, Target};

use crate::server::{Server, answer, get, local};

const MIB: usize = 1024 * 1024;

/// A server that sends these bytes to every client, then nothing, and keeps the connection open until the client closes
/// it; reports when that happens.
async fn raw(bytes: &'static [u8]) -> (String, tokio::sync::mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (closed, when_closed) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let closed = closed.clone();
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                let _ = socket.read(&mut asked).await;
                let _ = socket.write_all(bytes).await;
                while socket.read(&mut asked).await.is_ok_and(|read| read > 0) {}
                let _ = closed.send(());
            });
        }
    });
    (url, when_closed)
}

fn within(total: Duration) -> Client {
    let mut limits = Limits::default();
    limits.total = total;
    local().limits(limits).build()
}

#[tokio::test]
async fn a_silent_server_times_out() {
    for bytes in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let (url, mut closed) = raw(bytes).await;
        let began = Instant::now();
        let error = get(&within(Duration::from_millis(200)), &url).await.unwrap_err();
        assert!(matches!(error, Error::Timeout { connecting: false, .. }), "{error:?}");
        assert_eq!(error.to_string(), "no complete answer within 200ms");
        assert!(began.elapsed() < Duration::from_secs(2));
        let gone = tokio::time::timeout(Duration::from_secs(2), closed.recv()).await;
        assert_eq!(gone, Ok(Some(())), "the connection is closed");
    }
}

/// Single bytes keep a connection alive, but not the request.
#[tokio::test]
async fn a_server_that_drips_bytes_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 4096]).await;
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        while socket.write_all(b".").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let began = Instant::now();
    let error = get(&within(Duration::from_millis(300)), &url).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_request_that_is_dropped_closes_its_connection_at_once() {
    let (url, mut closed) = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    let client = local().build();
    let request = tokio::spawn(async move { get(&client, &url).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    request.abort();
    let gone = tokio::time::timeout(Duration::from_secs(1), closed.recv()).await;
    assert_eq!(gone, Ok(Some(())));
}

#[tokio::test]
async fn redirects_share_the_time_of_one_request() {
    let server = Server::start(|_| async {
        tokio::time::sleep(Duration::from_millis(120)).await;
        answer(302, &[("location", "/again")], "")
    })
    .await;
    let began = Instant::now();
    let error = get(&within(Duration::from_millis(300)), &server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_body_may_reach_the_limit_but_not_exceed_it() {
    let server = Server::start(|asked| async move {
        let size: usize = asked.trim_start_matches('/').parse().unwrap();
        answer(200, &[], vec![b'x'; size])
    })
    .await;
    let client = local().build();
    let size = |path: usize| {
        let (client, url) = (client.clone(), server.url(&format!("/{path}")));
        async move { get(&client, &url).await.map(|response| response.body.len()) }
    };
    assert_eq!(size(5 * MIB).await.unwrap(), 5 * MIB);
    let error = size(5 * MIB + 1).await.unwrap_err();
    assert_eq!(error.to_string(), "the response is larger than 5242880 bytes");
    let target = Target::parse(&server.url("/11"), NamedBy::Operator).unwrap();
    let small = Request::new(Method::GET, target).max_bytes(10);
    assert!(matches!(client.send(small).await, Err(Error::TooLarge { limit: 10 })));
}

/// Without a stated length the size is known only at the end.
#[tokio::test]
async fn an_endless_body_is_ended_at_the_size_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sent = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 4096]).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let _ = socket.write_all(head).await;
        let mut piece = b"10000\r\n".to_vec();
        piece.resize(piece.len() + 0x10000, b'x');
        piece.extend_from_slice(b"\r\n");
        let mut sent = 0;
        while socket.write_all(&piece).await.is_ok() {
            sent += 0x10000;
        }
        sent
    });
    let error = get(&local().build(), &url).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    assert!(sent.await.unwrap() < 32 * MIB, "the connection was closed");
}

#[tokio::test]
async fn a_compressed_body_counts_by_its_decompressed_size() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..100 {
        bomb.write_all(&vec![0; MIB]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < MIB / 2, "100 MiB in {} bytes", bomb.len());
    let mut small = GzEncoder::new(Vec::new(), Compression::best());
    small.write_all("grüße".as_bytes()).unwrap();
    let small = small.finish().unwrap();
    let server = Server::start(move |asked| {
        let body = if asked == "/bomb" { bomb.clone() } else { small.clone() };
        async move { answer(200, &[("content-encoding", "gzip")], body) }
    })
    .await;
    let client = local().build();
    let response = get(&client, &server.url("/small")).await.unwrap();
    assert_eq!(response.body, "grüße".as_bytes());
    assert_eq!(server.seen()[0].headers["accept-encoding"], "gzip");
    let error = get(&client, &server.url("/bomb")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn malformed_or_truncated_http_is_reported_without_the_url() {
    for (bytes, broken) in [
        (&b"SSH-2.0-OpenSSH_9.6\r\n"[..], true),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncontent-encoding: gzip\r\n\r\nnot gzip!", true),
    ] {
        let (url, _closed) = raw(bytes).await;
        let url = format!("{url}s3cret/path?key=s3cret");
        let error = get(&within(Duration::from_secs(2)), &url).await.unwrap_err();
        assert_eq!(matches!(error, Error::Broken { .. }), broken, "{error:?}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = get(&local().build(), &format!("http://{nobody}/s3cret")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert!(error.to_string().starts_with(&format!("cannot connect to http://{nobody}: ")));
    assert!(error.nothing_was_sent());
}

/// TLS is available, and trusts no server that it cannot verify.
#[tokio::test]
async fn https_to_a_plain_http_server_fails_to_connect() {
    let (url, _closed) = raw(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let url = url.replace("http://", "https://");
    let error = get(&within(Duration::from_secs(2)), &url).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert!(error.to_string().starts_with("cannot connect to https://127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn retry_after_is_parsed_in_both_notations() {
    let at = std::time::SystemTime::now() + Duration::from_secs(60);
    let date = httpdate::fmt_http_date(at);
    let server = Server::start(move |asked| {
        let wish = match asked.as_str() {
            "/seconds" => "7".to_owned(),
            "/date" => date.clone(),
            "/past" => "Wed, 21 Oct 2015 07:28:00 GMT".to_owned(),
            _ => "soon".to_owned(),
        };
        async move { answer(429, &[("retry-after", &wish)], "slow down") }
    })
    .await;
    let client = local().build();
    let wish = |path: &'static str| {
        let (client, url) = (client.clone(), server.url(path));
        async move { get(&client, &url).await.unwrap().retry_after() }
    };
    assert_eq!(wish("/seconds").await, Some(Duration::from_secs(7)));
    assert!(wish("/date").await.is_some_and(|wait| (50..=60).contains(&wait.as_secs())));
    assert_eq!(wish("/past").await, Some(Duration::ZERO));
    assert_eq!(wish("/else").await, None);
}
