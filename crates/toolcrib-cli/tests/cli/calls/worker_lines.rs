//! Progress, images and questions of a worker before its answer, on every surface.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::live_output::at_a_terminal;
use crate::harness::connection::Connection;
use crate::harness::crib::Crib;
use crate::harness::http::Http;
use crate::harness::server::{Server, command, request};

const TOOLS: &str = r#"
toolcrib: 1
defaults: {timeout: 30s}
tools:
  - name: work
    description: Work, and say how far it is. Read-only.
    annotations: {read_only: true}
    run: {worker: [python3, worker.py], env: {KEY: "${secret.key}"}}
  - name: careful
    description: Work after somebody has agreed.
    approval: always
    run: {worker: [python3, worker.py], env: {KEY: "${secret.key}"}}
  - name: endless
    description: Report progress, again and again. Read-only.
    annotations: {read_only: true}
    limits: {concurrent: 2}
    run: {worker: [python3, worker.py], env: {KEY: "${secret.key}"}}
  - name: ask
    description: Greet whoever says who it is. Read-only.
    annotations: {read_only: true}
    run: {worker: [python3, worker.py], env: {KEY: "${secret.key}"}}
"#;

const WORKER: &str = r#"
import json, os, sys, time

key = os.environ["KEY"]

def say(id, **line):
    print(json.dumps({"id": id, **line}), flush=True)

for line in sys.stdin:
    call = json.loads(line)
    id = call.get("id")
    if "cancel" in call:
        say(call["cancel"], error="given up")
    elif call["tool"] == "endless":
        for n in range(10_000):
            say(id, progress=n, message=f"step {n} of {os.getpid()}")
            time.sleep(0.02)
    elif call["tool"] in ("work", "careful"):
        say(id, progress=1, total=4, message=f"begun with {key}")
        say(id, chunk="one ")
        time.sleep(0.2)
        say(id, chunk=f"two {key[:7]}")
        time.sleep(0.2)
        say(id, chunk=f"{key[7:]} end")
        picture = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
        say(id, output=f"one two {key} end", content=[picture])
        say(id, chunk="too late")
    elif "answer" in call:
        say(id, output=f"Hello, {call['answer']['name']} of {call['remembered']}!")
    else:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        say(id, message="about to ask")
        say(id, ask={"message": f"Who are you? Not {key}?", "schema": schema}, remember="Ulm")
"#;

fn crib() -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS), ("worker.py", WORKER)]);
    crib.config("state: {dir: state}\nsecrets: {key: {env: KEY}}\n");
    crib
}

fn program(arguments: &[&str]) -> std::process::Command {
    let mut program = command(env!("CARGO_BIN_EXE_toolcrib"));
    program.args(arguments).env("KEY", "hunter2-secret").env_remove("TOOLCRIB_TOKEN");
    program
}

/// An MCP server on standard input and output, with a client that has these capabilities.
fn mcp(crib: &Crib, capabilities: &Value) -> Server {
    let mut server = Server::spawn(crib, program(&["mcp"]));
    server.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }}));
    assert_eq!(server.receive()["id"], 1);
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    server
}

#[test]
fn an_mcp_client_gets_progress_chunks_and_a_picture() {
    let crib = crib();
    let mut server = mcp(&crib, &json!({}));
    for _ in 0..2 {
        server.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "work", "arguments": {}, "_meta": {"progressToken": 7},
        }}));
        let mut messages = vec![server.receive()];
        while messages.last().is_some_and(|message| message["id"] != 3) {
            messages.push(server.receive());
        }
        let answer = messages.pop().expect("the last one");
        let image = json!({"type": "image", "data": "AAEC", "mimeType": "image/png"});
        assert_eq!(answer["result"]["content"][0]["text"], "one two [masked] end");
        assert_eq!(answer["result"]["content"][1], image);
        let numbers: Vec<_> =
            messages.iter().map(|message| message["params"]["progress"].as_f64()).collect();
        assert!(numbers.contains(&Some(1.0)) && numbers.is_sorted(), "{messages:?}");
        let texts: Vec<_> =
            messages.iter().filter_map(|message| message["params"]["message"].as_str()).collect();
        let text = texts.concat();
        assert!(text.contains("begun with [masked]") && text.contains("one "), "{texts:?}");
        assert!(text.contains("[masked] end") && !text.contains("hunter2"), "{texts:?}");
        assert!(!text.contains("too late"), "{texts:?}");
    }
}

/// A call by a client that asks for progress.
fn watched(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": tool, "arguments": {}, "_meta": {"progressToken": id},
    }})
}

#[test]
fn a_cancelled_call_reports_nothing_more_and_others_are_answered() {
    let crib = crib();
    let mut server = mcp(&crib, &json!({}));
    server.send(&watched(3, "endless"));
    assert_eq!(server.receive()["params"]["progressToken"], 3);
    let cancelled = json!({"requestId": 3, "reason": "enough"});
    server
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    server.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}));
    while server.receive()["id"] != 4 {}
    server.send(&watched(5, "work"));
    loop {
        let message = server.receive();
        if message["id"] == 5 {
            assert_eq!(message["result"]["content"][0]["text"], "one two [masked] end");
            break;
        }
        assert_eq!(message["params"]["progressToken"], 5, "{message}");
    }
    // The worker does not acknowledge the cancellation, for which it has half a second, so it is replaced.
    std::thread::sleep(Duration::from_millis(700));
    server.send(&watched(6, "endless"));
    let message = server.receive();
    assert_eq!(message["params"]["progressToken"], 6, "{message}");
}

#[test]
fn a_call_that_was_approved_reports_its_progress() {
    let crib = crib();
    crib.config(
        "state: {dir: state}\nsecrets: {key: {env: KEY}}\nmcp: {stdio: {rights: [call, approve]}}\n",
    );
    let mut server = mcp(&crib, &json!({"elicitation": {}}));
    server.send(&watched(3, "careful"));
    let asked = server.receive();
    assert_eq!(asked["method"], "elicitation/create", "nothing is reported before: {asked}");
    server.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {
        "action": "accept", "content": {"approve": true},
    }}));
    let mut text = String::new();
    loop {
        let message = server.receive();
        if message["id"] == 3 {
            assert_eq!(message["result"]["content"][0]["text"], "one two [masked] end");
            break;
        }
        text.push_str(message["params"]["message"].as_str().unwrap_or_default());
    }
    assert!(text.contains("begun with [masked]") && text.contains("[masked] end"), "{text}");
}

#[test]
fn a_call_whose_worker_is_killed_fails_and_the_next_call_has_another() {
    let crib = crib();
    // Its process id is the same inside and outside.
    crib.write(
        "tools.yaml",
        &TOOLS.replace("limits: {concurrent: 2}", "sandbox: {profile: trusted}"),
    );
    crib.config(
        "state: {dir: state}\nsecrets: {key: {env: KEY}}\nmanifests: {trusted: [tools.d/tools.yaml]}\n",
    );
    let mut server = mcp(&crib, &json!({}));
    server.send(&watched(2, "endless"));
    let message = server.receive()["params"]["message"].as_str().expect("a message").to_owned();
    let worker = message.rsplit(' ').next().expect("a process id").to_owned();
    assert_cmd::Command::new("kill").args(["-s", "KILL", &worker]).assert().success();
    let failed = loop {
        let message = server.receive();
        if message["id"] == 2 {
            break message;
        }
    };
    assert!(failed.to_string().contains("the worker was ended by SIGKILL"), "{failed}");
    // It has shown that it can start, so there is no backoff.
    server.send(&watched(3, "endless"));
    let again = server.receive();
    let again = again["params"]["message"].as_str().expect("a message").to_owned();
    assert!(again.starts_with("step ") && !again.ends_with(&worker), "{again}");
}

#[test]
fn an_http_client_gets_chunks_as_events() {
    let crib = crib();
    let http =
        Http::spawn(&crib, program(&["serve", "--no-auth", "--listen", "127.0.0.1:0", "--json"]));
    let mut stream = TcpStream::connect(&http.address).expect("it listens");
    let body = r#"{"arguments":{}}"#;
    write!(
        stream,
        "POST /v1/tools/work/call HTTP/1.1\r\naccept: text/event-stream\r\nhost: {}\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        http.address,
        body.len()
    )
    .expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part}: {text}"));
    assert!(place("begun with [masked]") < place("event: result"));
    assert!(place("call.output") < place("event: result"));
    assert!(place("[masked] end") < place("event: result"));
    assert!(!text.contains("hunter2") && !text.contains("too late"), "{text}");
}

#[test]
fn a_person_at_a_terminal_sees_chunks_of_a_line_on_one_line_and_once() {
    let crib = crib();
    let mut child = at_a_terminal(&crib, "work", Stdio::null());
    let mut seen = String::new();
    BufReader::new(child.stdout.take().expect("it is piped"))
        .read_to_string(&mut seen)
        .expect("it ends");
    assert!(child.wait().expect("it ends").success(), "{seen}");
    assert!(seen.contains("begun with [masked]"), "{seen}");
    assert!(seen.contains("one two [masked] end\r\n"), "{seen}");
    assert!(seen.contains("[image image/png, 3 bytes]"), "{seen}");
}

#[test]
fn an_mcp_client_is_asked_and_one_that_cannot_be_asked_gets_what_native_tools_say() {
    let crib = crib();
    let mut server = mcp(&crib, &json!({"elicitation": {}}));
    server.send(&request(3, "ask", &json!({})));
    let asked = server.receive();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["message"], "Who are you? Not [masked]?");
    server.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {
        "action": "accept", "content": {"name": "Ada"},
    }}));
    let answer = server.receive();
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada of Ulm!", "{answer}");

    server.send(&request(4, "ask", &json!({})));
    let asked = server.receive();
    server.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}));
    let declined = server.receive();
    assert_eq!(declined["result"]["isError"], true, "{declined}");
    assert!(declined.to_string().contains("the user declined to answer"), "{declined}");

    let mut server = mcp(&crib, &json!({}));
    let refused = server.call("ask", &json!({}));
    assert!(refused.to_string().contains("elicitation"), "{refused}");
}

#[test]
fn a_question_outlives_the_server_and_its_worker() {
    let crib = crib();
    let token = "operator-token-for-tests";
    let serve = || {
        let mut serve = program(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        serve.env("TOOLCRIB_TOKEN", token);
        Http::spawn(&crib, serve)
    };
    let ask = |http: &Http, line: &str, body: &Value| {
        let mut connection = Connection::open(&http.address, token).expect("it listens");
        connection.ask(line, &[], body).expect("an answer")
    };
    let http = serve();
    let run = ask(&http, "POST /v1/tools/ask/call", &json!({"arguments": {}}));
    assert_eq!(run.body["status"], "requires_action", "{run:?}");
    let waiting = &run.body["waiting"][0];
    assert_eq!(waiting["message"], "Who are you? Not [masked]?", "{run:?}");
    assert!(!run.body.to_string().contains("Ulm"), "what it remembers is shown to nobody: {run:?}");
    http.server.signal("KILL");

    let http = serve();
    let line = format!("POST /v1/runs/{}/resolve", run.body["id"].as_str().expect("an id"));
    let wrong = json!({"id": waiting["id"], "answer": {"name": 7}});
    assert_eq!(ask(&http, &line, &wrong).status, 422);
    let right = json!({"id": waiting["id"], "answer": {"name": "Ada"}});
    let done = ask(&http, &line, &right);
    assert_eq!(done.body["results"][0]["output"], "Hello, Ada of Ulm!", "{done:?}");
}
