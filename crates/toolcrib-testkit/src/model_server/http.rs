//! The HTTP of the scripted model, by hand, so that it can break at any byte.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::reply::{Fault, Reply};

/// The largest request.
const MAX_REQUEST: usize = 64 * 1024 * 1024;

/// A request.
pub(super) struct HttpRequest {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

pub(super) async fn read_request(connection: &mut TcpStream) -> io::Result<HttpRequest> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if connection.read_buf(&mut bytes).await? == 0 || bytes.len() > MAX_REQUEST {
            return Err(invalid("the request has no head"));
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if connection.read_buf(&mut body).await? == 0 {
            return Err(invalid("the request's body is cut"));
        }
    }
    let body = String::from_utf8(body).map_err(|_| invalid("the request is not UTF-8"))?;
    Ok(HttpRequest { path, headers, body })
}

pub(super) async fn send_status(
    connection: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    head.push_str("\r\n");
    head.push_str(body);
    connection.write_all(head.as_bytes()).await?;
    connection.shutdown().await
}

/// Sends a reply's stream with its fault.
pub(super) async fn send(
    connection: &mut TcpStream,
    reply: &Reply,
    bytes: Vec<u8>,
) -> io::Result<()> {
    let part = |count: usize| &bytes[..count.min(bytes.len())];
    match &reply.fault {
        Fault::Status { status, headers, body } => {
            return send_status(connection, *status, headers, body).await;
        }
        Fault::NoStatus => return connection.shutdown().await,
        _ => {}
    }
    let is_breaking = matches!(reply.fault, Fault::BreakAfter(_));
    // A chunk that is never complete breaks the connection; otherwise its end is the answer's.
    let framing = if is_breaking { "transfer-encoding: chunked\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req_scripted\r\n{framing}connection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await?;
    match reply.fault {
        Fault::CutAfter(count) => connection.write_all(part(count)).await?,
        Fault::BreakAfter(count) => {
            let part = part(count);
            connection.write_all(format!("{:x}\r\n", part.len() + 1).as_bytes()).await?;
            connection.write_all(part).await?;
        }
        Fault::StallAfter(count) => {
            connection.write_all(part(count)).await?;
            connection.flush().await?;
            // Until the client gives up.
            let mut rest = [0; 64];
            while connection.read(&mut rest).await? > 0 {}
        }
        Fault::Pieces(size) => {
            for piece in bytes.chunks(size.max(1)) {
                connection.write_all(piece).await?;
                connection.flush().await?;
                tokio::time::sleep(Duration::from_micros(50)).await;
            }
        }
        _ => connection.write_all(&bytes).await?,
    }
    connection.shutdown().await
}
