//! How soon a line reaches the client after a program has printed it.
//!
//! The program prints the time and continues for a while; the client reads the clock when the line
//! arrives. `-- --nocapture` prints the figures.

use std::io::{BufRead as _, BufReader, Read};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::live_output::at_a_terminal;
use crate::harness::crib::Crib;
use crate::harness::http::Http;
use crate::harness::server::{Server, command};

const TOOLS: &str = r#"
toolcrib: 1
defaults: {timeout: 30s}
tools:
  - name: command
    description: Print the time, and go on for a while. Read-only.
    annotations: {read_only: true}
    run: {argv: [python3, -c, "import time; print('at', time.time_ns(), 'now', flush=True); time.sleep(0.4)"]}
  - name: worker
    description: Say the time, and go on for a while. Read-only.
    annotations: {read_only: true}
    run: {worker: [python3, worker.py]}
"#;

const WORKER: &str = r#"
import json, sys, time

for line in sys.stdin:
    id = json.loads(line)["id"]
    print(json.dumps({"id": id, "chunk": f"at {time.time_ns()} now\n"}), flush=True)
    time.sleep(0.4)
    print(json.dumps({"id": id, "output": "done"}), flush=True)
"#;

/// The maximum delay of a line.
const LIMIT: Duration = Duration::from_millis(100);
/// The number of lines measured on each surface. The minimum delay counts, because a busy machine
/// only adds to it.
const LINES: usize = 5;

/// Reads until there is a complete line with a time, and returns its age.
fn age(text: impl Read) -> Duration {
    let mut text = BufReader::new(text);
    let mut line = String::new();
    loop {
        line.clear();
        assert!(text.read_line(&mut line).expect("it answers") > 0, "it ended");
        let stamp = line.split_once("at ").and_then(|(_, rest)| rest.split_once(" now"));
        if let Some(nanos) = stamp.and_then(|(stamp, _)| stamp.parse().ok()) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
            return now.saturating_sub(Duration::from_nanos(nanos));
        }
    }
}

fn stdio(crib: &Crib, tool: &str) -> Vec<Duration> {
    let mut server = Server::start(crib, &["mcp"]).greeted();
    let measured = (0..LINES).map(|_| {
        server.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": tool, "arguments": {}, "_meta": {"progressToken": 7},
        }}));
        let found = age(server.receive_line().as_bytes());
        while server.receive()["id"] != 3 {}
        found
    });
    measured.collect()
}

fn http(crib: &Crib, request: &str, body: &serde_json::Value) -> Vec<Duration> {
    let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
    program.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--json"]);
    program.env_remove("TOOLCRIB_TOKEN");
    let http = Http::spawn(crib, program);
    let measured = (0..LINES).map(|_| {
        let mut stream = http.stream(request, body);
        let found = age(&stream);
        stream.read_to_end(&mut Vec::new()).expect("it ends");
        found
    });
    measured.collect()
}

fn terminal(crib: &Crib, tool: &str) -> Vec<Duration> {
    let measured = (0..LINES).map(|_| {
        let mut child = at_a_terminal(crib, tool, std::process::Stdio::null());
        let mut output = child.stdout.take().expect("it is piped");
        let found = age(&mut output);
        output.read_to_end(&mut Vec::new()).expect("it ends");
        child.wait().expect("it ends");
        found
    });
    measured.collect()
}

#[test]
fn the_first_line_is_at_the_client_within_100_ms() {
    let crib = Crib::new(&[("tools.yaml", TOOLS), ("worker.py", WORKER)]);
    for tool in ["command", "worker"] {
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": tool, "arguments": {}, "_meta": {"progressToken": 7},
        }});
        let mcp = "POST /mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\n\
                   mcp-protocol-version: 2025-11-25";
        let rest = format!("POST /v1/tools/{tool}/call HTTP/1.1\r\naccept: text/event-stream");
        for (surface, mut measured) in [
            ("MCP stdio", stdio(&crib, tool)),
            ("MCP HTTP", http(&crib, mcp, &call)),
            ("REST SSE", http(&crib, &rest, &json!({"arguments": {}}))),
            ("terminal", terminal(&crib, tool)),
        ] {
            measured.sort();
            let (least, median) = (measured[0], measured[LINES / 2]);
            println!("{tool}, {surface}: least {least:.1?}, median {median:.1?}");
            assert!(least <= LIMIT, "{tool}, {surface}: {measured:?}");
        }
    }
}
