//! An HTTP/1.1 client that sends exactly what it is told.

use std::fmt::{Display, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::fixture::{TOKEN, token_of};

const PATIENCE: Duration = Duration::from_secs(15);

/// A request under construction: exactly these headers are sent, in this order.
#[derive(Clone)]
pub(crate) struct Ask {
    address: SocketAddr,
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Ask {
    pub(crate) fn new(address: SocketAddr, line: &str) -> Self {
        let headers = vec![("host".to_owned(), address.to_string())];
        Self { address, line: line.to_owned(), headers, body: String::new() }
    }

    /// A valid request to the API with the correct token.
    pub(crate) fn api(address: SocketAddr, line: &str) -> Self {
        Self::new(address, line).with("authorization", &format!("Bearer {TOKEN}"))
    }

    /// The same as another client.
    pub(crate) fn of(self, client: &str) -> Self {
        self.with("authorization", &format!("Bearer {}", token_of(client)))
    }

    /// A body of JSON.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.with("content-type", "application/json").body(body)
    }

    /// A valid MCP request with the correct token.
    pub(crate) fn mcp(address: SocketAddr, body: impl Display) -> Self {
        Self::new(address, "POST /mcp")
            .with("authorization", &format!("Bearer {TOKEN}"))
            .with("accept", "application/json, text/event-stream")
            .with("content-type", "application/json")
            .with("mcp-protocol-version", "2025-11-25")
            .body(body)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// The same headers for another request.
    pub(crate) fn on(mut self, line: &str) -> Self {
        line.clone_into(&mut self.line);
        self
    }

    /// Adds a header, replacing any of that name.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// Adds a header, even if one with that name exists.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl Display) -> Self {
        self.body = body.to_string();
        let length = self.body.len().to_string();
        self.with("content-length", &length)
    }

    pub(crate) async fn send(self) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        self.write(&mut stream).await;
        Reply::read(&mut stream).await
    }

    /// Reads an event stream to its end: the name and the data of each event.
    pub(crate) async fn events(self) -> Vec<(String, Value)> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        self.with("accept", "text/event-stream")
            .with("connection", "close")
            .write(&mut stream)
            .await;
        let mut bytes = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an end in time").unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("text/event-stream"), "{text}");
        unchunked(body).split("\n\n").filter(|event| !event.trim().is_empty()).map(event).collect()
    }

    /// Sends on a connection that stays open.
    pub(crate) async fn write(&self, stream: &mut TcpStream) {
        let mut text = format!("{} HTTP/1.1\r\n", self.line);
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        text.push_str(&self.body);
        stream.write_all(text.as_bytes()).await.unwrap();
    }
}

/// The chunks of a body, put together.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        body = &rest[length + 2..];
    }
    whole
}

fn event(text: &str) -> (String, Value) {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    (field("event: ").to_owned(), serde_json::from_str(field("data: ")).unwrap())
}

impl Reply {
    /// Reads one answer, which must have a `Content-Length`.
    pub(crate) async fn read(stream: &mut TcpStream) -> Self {
        timeout(PATIENCE, Self::read_patiently(stream)).await.expect("an answer in time")
    }

    async fn read_patiently(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        loop {
            if let Some(reply) = Self::parse(&bytes) {
                return reply;
            }
            let read = stream.read_buf(&mut bytes).await.unwrap();
            assert!(read > 0, "cut off: {}", String::from_utf8_lossy(&bytes));
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut reply = Self { status, headers, body: String::new() };
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        (body.len() >= length).then(|| {
            body[..length].clone_into(&mut reply.body);
            reply
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap()
    }

    /// The kind of a problem, after a check of its form.
    pub(crate) fn kind(&self) -> String {
        self.problem();
        let problem: Value = serde_json::from_str(&self.body).unwrap();
        problem["kind"].as_str().unwrap().to_owned()
    }

    /// The detail of a problem, after a check of its form.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["type"], "about:blank");
        assert!(problem["title"].is_string());
        problem["detail"].as_str().unwrap().to_owned()
    }
}
