//! JSON lines over an in-memory pipe: what another client implementation would send and receive.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolcrib_mcp::{McpError, McpServer};

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Wire {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<Result<(), McpError>>,
    stop: oneshot::Sender<()>,
    next_id: u64,
}

impl Wire {
    pub(crate) fn connect(server: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            let shutdown = async {
                // A dropped sender is not a shutdown.
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            server.serve_io(read, write, shutdown).await
        });
        let (read, writer) = tokio::io::split(ours);
        Self { lines: BufReader::new(read).lines(), writer, serving, stop, next_id: 0 }
    }

    /// Connects as a client without capabilities; returns the server's greeting.
    pub(crate) async fn initialized(server: McpServer) -> (Self, Value) {
        Self::initialized_with(server, &json!({})).await
    }

    /// Connects as a client with these capabilities, under revision 2025-11-25; returns the
    /// server's greeting.
    pub(crate) async fn initialized_with(server: McpServer, capabilities: &Value) -> (Self, Value) {
        let mut wire = Self::connect(server);
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "0"},
        });
        let greeting = wire.request("initialize", hello).await;
        wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        (wire, greeting["result"].clone())
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text().await).unwrap()
    }

    /// The text of a message.
    pub(crate) async fn receive_text(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("an answer in time");
        line.unwrap().expect("an open connection")
    }

    /// Sends a request and returns the next message, which has to be its answer.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request and returns its answer; other messages are skipped.
    pub(crate) async fn request_past_notices(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let message = self.receive().await;
            if message.get("method").is_none() {
                assert_eq!(message["id"], id, "{message}");
                return message;
            }
        }
    }

    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Closes the client's end; returns how serving ended.
    pub(crate) async fn close(self) -> Result<(), McpError> {
        let Self { writer, lines, serving, stop, .. } = self;
        drop((writer, lines));
        let ended = timeout(PATIENCE, serving).await.expect("an end in time").unwrap();
        drop(stop);
        ended
    }

    /// Asks the server to stop while the client stays connected; returns how serving ended.
    pub(crate) async fn shut_down(self) -> Result<(), McpError> {
        let Self { writer, lines, serving, stop, .. } = self;
        stop.send(()).unwrap();
        let ended = timeout(PATIENCE, serving).await.expect("an end in time").unwrap();
        drop((writer, lines));
        ended
    }
}
