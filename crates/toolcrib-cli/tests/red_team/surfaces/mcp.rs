//! A hostile MCP client: it consents to every question, over HTTP and over stdio.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::surfaces::http::Client;

const PATH: &str = "/mcp";
const NEWEST: &str = "2026-07-28";
const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
const LIMIT: Duration = Duration::from_secs(40);

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "red team", "version": "1"}}})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// The answer to a server's question: yes.
fn consent(question: &Value) -> Option<Value> {
    let method = question["method"].as_str()?;
    let id = question.get("id")?;
    let result = match method {
        "elicitation/create" => json!({"action": "accept", "content": {"approve": true}}),
        _ => json!({}),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// A session over HTTP.
pub(crate) struct HttpSession {
    client: Client,
    session: Option<String>,
    /// The server's answer to the opening, if it refused it.
    refusal: Option<String>,
}

impl HttpSession {
    pub(crate) fn open(client: &Client) -> Self {
        let mut opened = Self { client: client.clone(), session: None, refusal: None };
        match client.send("POST", PATH, &[ACCEPT], &initialize().to_string()) {
            Ok(answer) if answer.status == 200 => {
                opened.session = answer.header("mcp-session-id").map(str::to_owned);
                answer.text();
                opened.post(&initialized());
            }
            Ok(answer) => {
                let status = answer.status;
                opened.refusal = Some(format!("{status} {}", answer.text()));
            }
            Err(error) => opened.refusal = Some(error),
        }
        opened
    }

    fn post(&self, message: &Value) -> String {
        let mut headers = vec![ACCEPT];
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session));
        }
        match self.client.send("POST", PATH, &headers, &message.to_string()) {
            Ok(answer) => {
                let status = answer.status;
                format!("{status} {}", answer.text())
            }
            Err(error) => error,
        }
    }

    /// Sends a request and consents to every question; returns everything it received, including
    /// questions.
    pub(crate) fn request(&self, method: &str, params: &Value) -> String {
        if let Some(refusal) = &self.refusal {
            return refusal.clone();
        }
        let mut headers = vec![ACCEPT];
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id", session));
        }
        let request = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let mut answer = match self.client.send("POST", PATH, &headers, &request.to_string()) {
            Ok(answer) => answer,
            Err(error) => return error,
        };
        let mut heard = String::new();
        while let Some(line) = answer.line() {
            heard.push_str(&line);
            heard.push('\n');
            let text = line.strip_prefix("data:").unwrap_or(&line).trim();
            let Ok(message) = serde_json::from_str::<Value>(text) else { continue };
            if let Some(reply) = consent(&message) {
                self.post(&reply);
            } else if message["id"] == 2 {
                break;
            }
        }
        heard
    }

    /// A call in the revision without sessions, in which questions are answered by repeating the
    /// call.
    pub(crate) fn newest_call(&self, tool: &str, arguments: &Value) -> String {
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": {"name": "red team", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}});
        let headers = [
            ACCEPT,
            ("Mcp-Protocol-Version", NEWEST),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        let mut heard = String::new();
        for id in 1..4 {
            let request =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let text = match self.client.send("POST", PATH, &headers, &request.to_string()) {
                Ok(answer) => answer.text(),
                Err(error) => error,
            };
            heard.push_str(&text);
            let message = text.lines().find_map(|line| {
                let line = line.strip_prefix("data:").unwrap_or(line).trim();
                serde_json::from_str::<Value>(line).ok()
            });
            let Some(result) = message.map(|message| message["result"].clone()) else { break };
            let Some(requests) = result["inputRequests"].as_object() else { break };
            let yes = json!({"action": "accept", "content": {"approve": true}});
            params["inputResponses"] = requests
                .keys()
                .map(|key| (key.clone(), yes.clone()))
                .collect::<serde_json::Map<_, _>>()
                .into();
            params["requestState"] = result["requestState"].clone();
        }
        heard
    }
}

/// A program that speaks MCP on its standard input and output; killed when dropped.
pub(crate) struct StdioSession {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    next: u64,
}

impl StdioSession {
    pub(crate) fn start(command: &mut Command) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("no pipe");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut session = Self { child, input, lines, next: 1 };
        session.say(&initialize());
        session.until(1);
        session.say(&initialized());
        Ok(session)
    }

    fn say(&mut self, message: &Value) {
        // If the program has ended, there is no answer.
        let _ = writeln!(self.input, "{message}").and_then(|()| self.input.flush());
    }

    /// Everything up to the answer to a request, with every question answered.
    fn until(&mut self, id: u64) -> String {
        let end = Instant::now() + LIMIT;
        let mut heard = String::new();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            heard.push_str(&line);
            heard.push('\n');
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(reply) = consent(&message) {
                self.say(&reply);
            } else if message["id"] == id {
                break;
            }
        }
        heard
    }

    /// Sends a request and consents to every question; returns everything it received, including
    /// questions.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> String {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.until(id)
    }
}

impl Drop for StdioSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
