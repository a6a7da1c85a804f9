//! The model: one stream of the Responses API for every request, with a pause after each delta.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use toolcrib_testkit::model_server::Reply;
use toolcrib_wire::model::Wire;

use crate::Failure;
use crate::client::DELTA;

/// Deltas of an answer of which the first is awaited, and of one of many at once.
pub(crate) const SHORT: usize = 4;
pub(crate) const LONG: usize = 200;

/// Between two deltas of a short and of a long answer.
const SHORT_PAUSE: Duration = Duration::from_millis(2);
const LONG_PAUSE: Duration = Duration::from_millis(10);

/// What a request says if its answer is to be long.
pub(crate) const LONG_INPUT: &str = "Go on.";

/// The events of an answer, each framed as a chunk.
struct Script {
    chunks: Vec<(Vec<u8>, bool)>,
    pause: Duration,
}

impl Script {
    fn new(deltas: usize, pause: Duration) -> Self {
        // Seven characters are a delta.
        let stream = Reply::text("answer ".repeat(deltas)).stream(Wire::Responses, 1);
        let stream = String::from_utf8_lossy(&stream).into_owned();
        let events = stream.split_inclusive("\n\n");
        let chunk = |event: &str| format!("{:x}\r\n{event}\r\n", event.len()).into_bytes();
        let is_delta = |event: &str| memchr::memmem::find(event.as_bytes(), DELTA).is_some();
        Self { chunks: events.map(|event| (chunk(event), is_delta(event))).collect(), pause }
    }
}

/// Serves in a thread of its own for as long as this process lives.
pub(crate) fn start() -> Result<SocketAddr, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    let scripts = Arc::new([Script::new(SHORT, SHORT_PAUSE), Script::new(LONG, LONG_PAUSE)]);
    std::thread::spawn(move || {
        runtime.block_on(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let scripts = Arc::clone(&scripts);
                // A client that hangs up ends its answer.
                tokio::spawn(async move { drop(converse(connection, &scripts).await) });
            }
        });
    });
    Ok(address)
}

/// Answers the requests of a connection.
async fn converse(mut connection: TcpStream, scripts: &[Script; 2]) -> Result<(), Failure> {
    connection.set_nodelay(true)?;
    let mut read = Vec::new();
    loop {
        let head = loop {
            if let Some(at) = memchr::memmem::find(&read, b"\r\n\r\n") {
                break at + 4;
            }
            if connection.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let end = head + length.ok_or("a request without a length")?.trim().parse::<usize>()?;
        while read.len() < end {
            if connection.read_buf(&mut read).await? == 0 {
                return Err("a request without its end".into());
            }
        }
        let is_long = memchr::memmem::find(&read[..end], LONG_INPUT.as_bytes()).is_some();
        read.drain(..end);
        let script = &scripts[usize::from(is_long)];
        connection
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            .await?;
        for (chunk, is_delta) in &script.chunks {
            connection.write_all(chunk).await?;
            if *is_delta {
                tokio::time::sleep(script.pause).await;
            }
        }
        connection.write_all(b"0\r\n\r\n").await?;
    }
}
