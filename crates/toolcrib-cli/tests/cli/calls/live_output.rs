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
  - name: report
    description: Write the report. Read-only.
    final_output: true
    annotations: {read_only: true}
    run: {argv: [sh, -c, 'echo "Part one."; while [ ! -e go ]; do sleep 0.02; done; echo "Part two."']}
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

/// The head of a call over MCP's HTTP.
const MCP_REQUEST: &str = "POST /mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\n\
                           mcp-protocol-version: 2025-11-25";

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

/// Where a call can be watched.
const SURFACES: [&str; 6] =
    ["MCP stdio", "MCP HTTP", "REST SSE", "terminal", "terminal of a run", "events of a run"];

/// All that a client on a surface gets of a call, and the greatest memory of the server in KiB.
fn everything(crib: &Crib, surface: &str, tool: &str) -> (String, u64) {
    match surface {
        "MCP stdio" => {
            let mut server = server(crib);
            server.send(&called(tool));
            let messages = until_answered(&mut server);
            let lines: Vec<_> = messages.iter().map(ToString::to_string).collect();
            (lines.join("\n"), peak(server.id()))
        }
        "terminal" => ended(crib, at_a_terminal(crib, tool, Stdio::null())),
        "terminal of a run" => ended(crib, terminal(crib, &running(crib, tool), Stdio::null())),
        "events of a run" => {
            let mut python =
                measured(crib, "import subprocess\nended = subprocess.call(sys.argv[1:]) << 8");
            python.args(running(crib, tool)).arg("--events");
            ended(crib, python.stdin(Stdio::null()).spawn().expect("python3 runs"))
        }
        _ => {
            let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
            program.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--json"]);
            program.env("KEY", "hunter2-secret").env_remove("TOOLCRIB_TOKEN");
            let http = Http::spawn(crib, program);
            let rest = format!("POST /v1/tools/{tool}/call HTTP/1.1\r\naccept: text/event-stream");
            let (request, body) = match surface {
                "REST SSE" => (rest.as_str(), json!({"arguments": {}})),
                _ => (MCP_REQUEST, called(tool)),
            };
            let mut text = String::new();
            http.stream(request, &body).read_to_string(&mut text).expect("it answers");
            (text, peak(http.server.id()))
        }
    }
}

/// What a command has printed, and its greatest memory in KiB.
fn ended(crib: &Crib, child: Child) -> (String, u64) {
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{ended:?}");
    let kib = std::fs::read_to_string(crib.data().join("peak")).expect("python wrote it");
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    (text, kib.trim().parse().expect("a number"))
}

/// The command line of an agent whose model calls a tool.
fn running(crib: &Crib, tool: &str) -> [&'static str; 4] {
    let script = json!([{"call": tool}, {"text": "Done."}]);
    std::fs::write(crib.path().join("script.json"), script.to_string()).expect("a script");
    ["run", "--model", "scripted:script.json", "Go."]
}

/// The greatest memory that a process has had, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn on_every_surface_a_secret_in_two_writes_is_masked_in_the_lines_and_in_the_result() {
    for surface in SURFACES {
        let crib = crib();
        go(&crib);
        let (text, _) = everything(&crib, surface, "halves");
        // A terminal shows no line twice.
        let times = if surface.starts_with("terminal") { 1 } else { 2 };
        assert!(text.matches("a [masked] b").count() >= times, "{surface}: {text}");
        assert!(!text.contains("hunter2") && !text.contains("secret b"), "{surface}: {text}");
    }
}

#[test]
fn on_every_surface_a_flood_is_shown_in_part_and_costs_no_more_memory() {
    for surface in SURFACES {
        let (text, peak) = everything(&crib(), surface, "flood");
        assert!(text.contains("not shown live"), "{surface}: {} bytes", text.len());
        assert!(text.len() < 1024 * 1024, "{surface}: {} bytes", text.len());
        assert!(peak < 256 * 1024, "{surface}: {peak} KiB");
        println!("{surface}: {} bytes of 100 MB, {peak} KiB", text.len());
    }
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
    let (early, rest) = over_http(&crib(), MCP_REQUEST, &called("build"));
    assert!(early.contains("notifications/progress"), "{early}");
    assert!(rest.contains("last"), "{rest}");
}

/// Runs a program as python says, and writes down the greatest memory that it has had.
fn measured(crib: &Crib, run: &str) -> std::process::Command {
    let script = format!(
        "import os, resource, sys\n{run}\n\
         with open(os.environ['PEAK'], 'w') as file:\n\
         \x20   print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=file)\n\
         sys.exit(ended >> 8)\n"
    );
    let mut python = command("python3");
    python.args(["-c", &script]).env("PEAK", crib.data().join("peak"));
    python.arg(env!("CARGO_BIN_EXE_toolcrib"));
    python
        .current_dir(crib.path())
        .env("TOOLCRIB__WORKSPACE__ROOT", ".")
        .env("KEY", "hunter2-secret");
    python.env("HOME", crib.home()).env("XDG_STATE_HOME", crib.state_home());
    python.env("XDG_RUNTIME_DIR", crib.runtime_dir());
    python.stdout(Stdio::piped()).stderr(Stdio::inherit());
    python
}

/// Starts toolcrib with a terminal as its standard streams, on which this is typed; what the terminal shows is piped.
fn terminal(crib: &Crib, arguments: &[&str], typed: Stdio) -> Child {
    let mut python = measured(crib, "import pty\nended = pty.spawn(sys.argv[1:])");
    python.args(arguments).stdin(typed);
    python.spawn().expect("python3 is needed by these tests")
}

/// Starts `toolcrib call` at a terminal.
pub(super) fn at_a_terminal(crib: &Crib, tool: &str, typed: Stdio) -> Child {
    terminal(crib, &["call", tool], typed)
}

#[test]
fn a_person_at_a_terminal_sees_lines_while_the_program_runs_and_no_line_twice() {
    let crib = crib();
    let mut child = at_a_terminal(&crib, "build", Stdio::null());
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

#[test]
fn a_person_at_a_terminal_sees_lines_of_the_built_in_shell_while_it_runs_and_no_line_twice() {
    let crib = crib();
    crib.config("secrets: {key: {env: KEY}}\npolicy: {rules: [{tool: bash, action: allow}]}\n");
    let waits = "while [ ! -e go ]; do sleep 0.02; done";
    for (command, last) in [
        (format!("echo first hunter2-secret; {waits}; echo last"), "last"),
        (format!("echo first hunter2-secret; {waits}; echo last >&2; exit 3"), "[exit code 3]"),
    ] {
        let _ = std::fs::remove_file(crib.path().join("go"));
        let command = format!("command={command}");
        let mut child = terminal(&crib, &["call", "bash", &command], Stdio::null());
        let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut seen = String::new();
        while !seen.contains("first") {
            assert!(reader.read_line(&mut seen).expect("it writes") > 0, "it ended: {seen}");
        }
        assert!(!seen.contains("last"), "{seen}");
        go(&crib);
        reader.read_to_string(&mut seen).expect("it ends");
        child.wait().expect("it ends");
        assert_eq!(seen.matches("first [masked]").count(), 1, "{seen}");
        assert_eq!((seen.matches("last").count(), seen.matches(last).count()), (1, 1), "{seen}");
    }
}

#[test]
fn a_person_who_runs_an_agent_sees_lines_of_its_calls_while_they_run() {
    let crib = crib();
    let mut child = terminal(&crib, &running(&crib, "build"), Stdio::null());
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut seen = String::new();
    while !seen.contains("first") {
        assert!(reader.read_line(&mut seen).expect("it writes") > 0, "it ended: {seen}");
    }
    assert!(seen.contains("build │ 10% first [masked]") && !seen.contains("last"), "{seen}");
    go(&crib);
    reader.read_to_string(&mut seen).expect("it ends");
    assert!(child.wait().expect("it ends").success(), "{seen}");
    assert_eq!(seen.matches("10% first [masked]").count(), 1, "{seen}");
    let (last, answered) = (seen.find("build │ last"), seen.find("Done."));
    assert!(seen.contains("build │ warned") && last.is_some() && last < answered, "{seen}");
}

#[test]
fn what_a_final_tool_writes_is_the_answer_at_a_terminal_while_it_runs_and_is_shown_once() {
    let crib = crib();
    let mut child = terminal(&crib, &running(&crib, "report"), Stdio::null());
    let mut reader = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut seen = String::new();
    while !seen.contains("Part one.") {
        assert!(reader.read_line(&mut seen).expect("it writes") > 0, "it ended: {seen}");
    }
    assert!(!seen.contains("report │") && !seen.contains("Part two."), "{seen}");
    go(&crib);
    reader.read_to_string(&mut seen).expect("it ends");
    assert!(child.wait().expect("it ends").success(), "{seen}");
    for part in ["Part one.", "Part two."] {
        assert_eq!(seen.matches(part).count(), 1, "{seen}");
    }
    assert!(!seen.contains("Done."), "the model is not asked again: {seen}");
}
