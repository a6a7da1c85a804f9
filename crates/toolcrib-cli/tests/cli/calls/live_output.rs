//! The output of a program arrives while it runs, on every surface.
//!
//! The program waits for a file between its two lines, and the file is created only after the first line has arrived: a
//! surface that held the line back would fail at the time limit of the call.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::Http;
use crate::harness::server::{Server, command};

const TOOLS: &str = r#"
toolcrib: 1
defaults: {timeout: 30s}
tools:
  - name: build
    description: Build something. Read-only.
    annotations: {read_only: true}
    progress: ['(\d+)%']
    run:
      argv: [sh, -c, 'echo "10% first $KEY"; echo warned >&2; while [ ! -e go ]; do sleep 0.02; done; echo last']
      env: {KEY: "${secret.key}"}
  - name: halves
    description: Print a secret in two writes. Read-only.
    annotations: {read_only: true}
    run:
      argv: [sh, -c, 'printf "a hunter2-"; sleep 0.2; printf "secret b\n"; while [ ! -e go ]; do sleep 0.02; done']
  - name: flood
    description: Print 100 MB. Read-only.
    annotations: {read_only: true}
    limits: {output: 100KiB}
    run: {argv: [sh, -c, 'yes 0123456789012345678901234567890123456789012345678 | head -n 2000000']}
  - name: key_block
    description: Print what a pattern hides that goes over lines. Read-only.
    annotations: {read_only: true}
    output: {redact: ['(?s)BEGIN.*END']}
    run: {argv: [sh, -c, 'echo BEGIN; echo key; echo END']}
"#;

fn crib() -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config("secrets: {key: {env: KEY}}\n");
    crib
}

fn server(crib: &Crib) -> Server {
    let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
    program.arg("mcp").env("KEY", "hunter2-secret").env_remove("TOOLCRIB_TOKEN");
    Server::spawn(crib, program).greeted()
}

fn called(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": tool, "arguments": {}, "_meta": {"progressToken": 7},
    }})
}

fn go(crib: &Crib) {
    std::fs::write(crib.path().join("go"), "").expect("it can be written");
}

/// The messages of a call up to its answer, which is the last one.
fn until_answered(server: &mut Server) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = server.receive();
        let is_answer = message["id"] == 3;
        messages.push(message);
        if is_answer {
            return messages;
        }
    }
}

#[test]
fn an_mcp_client_gets_lines_as_progress_while_the_program_runs() {
    let crib = crib();
    let mut server = server(&crib);
    server.send(&called("build"));
    let number = server.receive();
    assert_eq!(number["method"], "notifications/progress", "{number}");
    assert_eq!(number["params"]["progress"], 10.0, "{number}");
    let line = server.receive();
    assert!(line["params"]["progress"].as_f64() > Some(10.0), "{line}");
    assert_eq!(line["params"]["total"], 100.0, "{line}");
    assert_eq!(line["params"]["message"], "10% first [masked]", "{line}");
    go(&crib);
    let rest = until_answered(&mut server);
    let text = rest.iter().map(Value::to_string).collect::<String>();
    assert!(text.contains("warned") && text.contains("last"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn an_mcp_client_that_set_a_log_level_gets_lines_as_log_messages() {
    let crib = crib();
    let mut server = server(&crib);
    server.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel",
        "params": {"level": "info"}}));
    assert_eq!(server.receive()["id"], 2);
    server.send(&called("build"));
    let mut message = server.receive();
    while message["method"] != "notifications/message" {
        message = server.receive();
    }
    assert_eq!(message["params"]["data"], "10% first [masked]", "{message}");
    assert_eq!(message["params"]["logger"], "build");
    go(&crib);
    until_answered(&mut server);
}

#[test]
fn a_secret_in_two_writes_is_masked() {
    let crib = crib();
    let mut server = server(&crib);
    server.send(&called("halves"));
    let first = server.receive();
    assert_eq!(first["params"]["message"], "a [masked] b", "{first}");
    go(&crib);
    until_answered(&mut server);
}

#[test]
fn a_flood_is_shown_in_part_and_costs_no_more_memory() {
    let crib = crib();
    let mut server = server(&crib);
    server.send(&called("flood"));
    let messages = until_answered(&mut server);
    let told: usize = messages.iter().map(|message| message.to_string().len()).sum();
    let text = messages.iter().map(Value::to_string).collect::<String>();
    assert!(text.contains("not shown live"), "{} messages", messages.len());
    assert!(told < 1024 * 1024, "{told} bytes");
    let peak = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 256 * 1024, "{peak} KiB");
}

#[test]
fn live_output_waits_for_multiline_redaction_patterns() {
    let crib = crib();
    let mut server = server(&crib);
    server.send(&called("key_block"));
    let messages = until_answered(&mut server);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["result"]["content"][0]["text"], "[redacted]\n");
}

/// Sends a request and reads the answer up to a text, then the rest.
fn over_http(crib: &Crib, request: &str, body: &Value) -> (String, String) {
    let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
    program.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--json"]);
    program.env("KEY", "hunter2-secret").env_remove("TOOLCRIB_TOKEN");
    let http = Http::spawn(crib, program);
    let mut reader = BufReader::new(http.stream(request, body));
    let mut early = String::new();
    while !early.contains("first") {
        assert!(reader.read_line(&mut early).expect("it answers") > 0, "it ended: {early}");
    }
    go(crib);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("it answers");
    (early, rest)
}

#[test]
fn an_http_client_gets_lines_as_events_while_the_program_runs() {
    let request = "POST /v1/tools/build/call HTTP/1.1\r\naccept: text/event-stream";
    let (early, rest) = over_http(&crib(), request, &json!({"arguments": {}}));
    assert!(early.contains("first [masked]") && !early.contains("last"), "{early}");
    assert!(rest.contains("last") && rest.contains("event: result"), "{rest}");
}

#[test]
fn an_mcp_client_over_http_gets_lines_while_the_program_runs() {
    let request = "POST /mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\n\
                   mcp-protocol-version: 2025-11-25";
    let (early, rest) = over_http(&crib(), request, &called("build"));
    assert!(early.contains("notifications/progress"), "{early}");
    assert!(rest.contains("last"), "{rest}");
}

/// Starts `toolcrib call` with a terminal as its standard streams; what the terminal shows is piped.
pub(super) fn at_a_terminal(crib: &Crib, tool: &str) -> Child {
    let mut python = command("python3");
    python.args(["-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"]);
    python.arg(env!("CARGO_BIN_EXE_toolcrib")).args(["call", tool]);
    python
        .current_dir(crib.path())
        .env("TOOLCRIB__WORKSPACE__ROOT", ".")
        .env("KEY", "hunter2-secret");
    python.env("HOME", crib.home()).env("XDG_STATE_HOME", crib.state_home());
    python.env("XDG_RUNTIME_DIR", crib.runtime_dir());
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    python.spawn().expect("python3 is needed by these tests")
}

#[test]
fn a_person_at_a_terminal_sees_lines_while_the_program_runs_and_no_line_twice() {
    let crib = crib();
    let mut child = at_a_terminal(&crib, "build");
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut seen = String::new();
    while !seen.contains("first") {
        assert!(reader.read_line(&mut seen).expect("it writes") > 0, "it ended: {seen}");
    }
    assert!(!seen.contains("last"), "{seen}");
    go(&crib);
    reader.read_to_string(&mut seen).expect("it ends");
    assert!(child.wait().expect("it ends").success(), "{seen}");
    assert_eq!(seen.matches("10% first [masked]").count(), 1, "{seen}");
    assert!(seen.contains("warned") && seen.contains("last"), "{seen}");
}
