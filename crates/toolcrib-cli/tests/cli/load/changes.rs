//! A server under load: many clients call over the HTTP API and MCP while manifests change and another MCP
//! server dies and returns; then it is asked to stop, or killed.
//!
//! The regular run uses few clients for a few seconds. `TOOLCRIB_LOAD_CLIENTS` and `TOOLCRIB_LOAD_SECONDS` extend it to
//! a soak test.

use std::collections::BTreeMap;
use std::fs;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::server::Server;

const TOKEN: &str = "a-token-that-is-kept-over-restarts";

/// The scripted server of the MCP crate's tests. Its tool `crash` ends the server.
const UPSTREAM: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../toolcrib-mcp/tests/mcp/upstream/server.py");

const TOOLS: &str = concat!(
    include_str!("../../greet.yaml"),
    "
  - name: pick
    description: Ask the person for a file.
    client: true
"
);

fn crib() -> Crib {
    let crib = Crib::new(&[]);
    let folder = crib.path().display();
    let tool = |name: &str| json!({"name": name, "description": "Do it.", "inputSchema": {"type": "object"}});
    let script = json!({"tools": [tool("get"), tool("crash")]});
    fs::write(crib.path().join("script.json"), script.to_string()).expect("a script");
    crib.write(
        "tools.yaml",
        &format!(
            "toolcrib: 1\nupstream:\n  - name: notes\n    command: [python3, -I, -S, '{UPSTREAM}', \
             '{folder}/script.json']\n    sandbox: {{read: ['{UPSTREAM}'], write: ['{folder}']}}\n{TOOLS}"
        ),
    );
    crib.config(&format!(
        "state: {{dir: state}}\naudit: {{file: audit.jsonl}}\nserver: {{token: {TOKEN}}}\n"
    ));
    crib
}

fn start(crib: &Crib) -> (Server, String) {
    let mut server = Server::start(crib, &["serve", "--listen", "127.0.0.1:0", "--json"]);
    let said = server.receive();
    let address = said["api"].as_str().expect("a URL").trim_start_matches("http://").to_owned();
    // The other server is connected in the background.
    let mut connection = Connection::open(&address, TOKEN).expect("it listens");
    let deadline = Instant::now() + Duration::from_secs(60);
    while connection.ask("GET /v1/tools/notes_get", &[], &Value::Null).expect("an answer").status
        != 200
    {
        assert!(Instant::now() < deadline, "the other server is not there");
        std::thread::sleep(Duration::from_millis(20));
    }
    (server, address)
}

fn setting<T: FromStr>(name: &str, otherwise: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// A native tool over the HTTP API.
    Native,
    /// A native tool over MCP, in both families of revisions.
    Mcp,
    /// A tool that starts a program.
    Program,
    /// A tool of the other MCP server.
    Upstream,
    /// The list of tools.
    List,
}

impl Work {
    fn of(number: usize) -> Self {
        match number % 8 {
            0 => Self::Program,
            1 | 5 => Self::Upstream,
            2 | 6 => Self::Mcp,
            3 => Self::List,
            _ => Self::Native,
        }
    }
}

/// The outcome of a call for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Answered correctly.
    Right,
    /// The other server was not available.
    NotThere,
    /// The server is stopping.
    Refused,
}

struct Answered {
    id: String,
    work: Work,
    outcome: Outcome,
    took: Duration,
}

/// One of the clients.
struct Client<'a> {
    number: usize,
    address: &'a str,
    connection: Option<Connection>,
}

impl<'a> Client<'a> {
    fn new(number: usize, address: &'a str) -> Self {
        Self { number, address, connection: None }
    }

    /// One request; `None` if it was not answered because the connection is closed.
    fn ask(&mut self, number: usize) -> Option<Answered> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address, TOKEN).ok()?,
        };
        let connection = self.connection.insert(connection);
        let work = Work::of(self.number + number);
        let id = format!("{}-{number}", self.number);
        let began = Instant::now();
        let Ok(reply) = send(connection, work, &id) else {
            self.connection = None;
            return None;
        };
        let took = began.elapsed();
        Some(Answered { outcome: judged(work, &id, &reply), id, work, took })
    }
}

fn send(connection: &mut Connection, work: Work, id: &str) -> std::io::Result<Reply> {
    let call = |tool: &str| format!("POST /v1/tools/{tool}/call");
    let body = |arguments: Value| json!({"arguments": arguments, "call_id": id});
    match work {
        Work::List => connection.ask("GET /v1/tools", &[], &Value::Null),
        Work::Native => connection.ask(
            &call("text_process"),
            &[],
            &body(json!({"text": id, "operation": "trim"})),
        ),
        Work::Program => connection.ask(&call("greet"), &[], &body(json!({"name": id}))),
        Work::Upstream => connection.ask(&call("notes_get"), &[], &body(json!({"id": id}))),
        Work::Mcp => {
            let arguments = json!({"text": id, "operation": "trim"});
            let mut params = json!({"name": "text_process", "arguments": arguments});
            let accept = ("accept", "application/json, text/event-stream");
            let mut headers = vec![accept, ("mcp-protocol-version", "2025-11-25")];
            if id.len().is_multiple_of(2) {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                headers = vec![
                    accept,
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "text_process"),
                ];
            }
            let message =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            connection.ask("POST /mcp", &headers, &message)
        }
    }
}

/// Checks that the answer belongs to this call and is correct.
#[track_caller]
fn judged(work: Work, id: &str, reply: &Reply) -> Outcome {
    let Reply { status, body, .. } = reply;
    match work {
        Work::List => {
            assert!(*status == 200 && body["tools"].as_array().is_some_and(|all| all.len() > 3));
            return Outcome::Right;
        }
        Work::Mcp => {
            assert_eq!((*status, &body["id"]), (200, &json!(id)), "{body}");
            let text = body["result"]["content"][0]["text"].as_str().unwrap_or_default();
            if body["result"]["isError"] == true {
                assert!(text.contains("takes no more calls"), "{body}");
                return Outcome::Refused;
            }
            assert_eq!(text, id);
            return Outcome::Right;
        }
        Work::Native | Work::Program | Work::Upstream => {}
    }
    if *status == 200 {
        assert_eq!(body["call_id"], id);
        let output = body["output"].as_str().unwrap_or_default();
        match work {
            Work::Upstream => assert!(output.contains(&format!(r#"{{"id": "{id}"}}"#)), "{body}"),
            Work::Program => assert_eq!(output, format!("Hello, {id}!")),
            _ => assert_eq!(output, id),
        }
        return Outcome::Right;
    }
    assert_eq!(body["result"]["call_id"], id, "{body}");
    if body["detail"].as_str().is_some_and(|detail| detail.contains("takes no more calls")) {
        assert_eq!((*status, &body["kind"]), (503, &json!("unavailable")), "{body}");
        return Outcome::Refused;
    }
    // Its server has just died, or is not available again yet.
    assert_eq!(work, Work::Upstream, "{body}");
    let kind = body["kind"].as_str().unwrap_or_default();
    assert!(
        matches!(kind, "unavailable" | "execution" | "cancelled" | "outcome_unknown"),
        "{body}"
    );
    Outcome::NotThere
}

/// Changes manifests, and ends the other MCP server now and then, until it is told to stop. Returns how often.
fn churn(crib: &Crib, address: &str, is_over: &AtomicBool) -> (usize, usize) {
    let mut connection = Connection::open(address, TOKEN).expect("it listens");
    let (mut reloads, mut deaths) = (0, 0);
    let mut last_death = Instant::now();
    while !is_over.load(Ordering::SeqCst) || reloads < 10 || deaths < 1 {
        let tools =
            format!("toolcrib: 1\n{TOOLS}").replace("greet", "hail").replace("pick", "choose");
        crib.write("more.yaml", &tools.replace("Greet", &format!("Greet, {reloads},")));
        let reloaded = connection.ask("POST /v1/reload", &[], &Value::Null).expect("an answer");
        assert_eq!(reloaded.status, 200, "{:?}", reloaded.body);
        reloads += 1;
        if reloads % 7 == 0 {
            fs::remove_file(crib.path().join("tools.d/more.yaml")).expect("it is there");
        }
        if deaths == 0 || last_death.elapsed() > Duration::from_secs(15) {
            let died = connection.ask("POST /v1/tools/notes_crash/call", &[], &json!({}));
            let said = died.expect("an answer").body["detail"].to_string();
            // If it is not available again yet, there is nothing to end.
            if !said.contains("is not connected") {
                assert!(said.contains("the MCP server `notes`"), "{said}");
                (deaths, last_death) = (deaths + 1, Instant::now());
            }
        }
    }
    (reloads, deaths)
}

/// Outcomes by call, from the audit log. A call that occurs twice fails the test.
fn audited(crib: &Crib) -> BTreeMap<String, bool> {
    let text = fs::read_to_string(crib.path().join("audit.jsonl")).expect("it is written");
    assert!(text.ends_with('\n'), "no half line");
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        let record: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if record["tool"] == "notes_crash" {
            continue;
        }
        let id = record["call_id"].as_str().expect("an id").to_owned();
        let known = calls.insert(id, record["outcome"] == "success");
        // A call that its client runs is recorded twice: when it is handed to the client and when
        // the output arrives.
        assert!(known.is_none() || record["tool"] == "pick", "twice: {record}");
    }
    calls
}

fn succeeded(answers: &[Answered]) -> BTreeMap<String, bool> {
    let calls = answers.iter().filter(|one| one.work != Work::List);
    calls.map(|one| (one.id.clone(), one.outcome == Outcome::Right)).collect()
}

/// The response times.
fn times<'a>(answers: impl IntoIterator<Item = &'a Answered>) -> String {
    let mut took: Vec<_> = answers.into_iter().map(|one| one.took).collect();
    took.sort_unstable();
    let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    format!("{} answers, p50 {:.1?}, p99 {:.1?}", took.len(), at(50), at(99))
}

#[test]
fn under_load_no_answer_is_lost_or_doubled_while_files_change_and_a_server_dies_and_returns() {
    let clients = setting("TOOLCRIB_LOAD_CLIENTS", 8_usize);
    let seconds = setting("TOOLCRIB_LOAD_SECONDS", 2_u64);
    let crib = crib();
    let (mut server, address) = start(&crib);
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let (mut answers, (reloads, deaths)): (Vec<_>, _) = std::thread::scope(|scope| {
        let churn = scope.spawn(|| churn(&crib, &address, &is_over));
        let all: Vec<_> = (0..clients)
            .map(|number| {
                let mut client = Client::new(number, &address);
                scope.spawn(move || {
                    let mut answers = Vec::new();
                    while begun.elapsed() < Duration::from_secs(seconds) || answers.len() < 16 {
                        answers.push(client.ask(answers.len()).expect("an answer"));
                    }
                    answers
                })
            })
            .collect();
        let answers: Vec<_> = all.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        // This comes before any failure of the test, which would wait for the other thread.
        is_over.store(true, Ordering::SeqCst);
        let answers = answers.into_iter().flat_map(|one| one.expect("it has not failed")).collect();
        (answers, churn.join().expect("it has not failed"))
    });
    assert!(answers.iter().all(|one| one.outcome != Outcome::Refused));
    for work in [Work::Native, Work::Mcp, Work::List, Work::Program, Work::Upstream] {
        println!("{work:?}: {}", times(answers.iter().filter(|one| one.work == work)));
    }
    let not_there = answers.iter().filter(|one| one.outcome == Outcome::NotThere).count();
    println!("{clients} clients, {:.1?}: {}", begun.elapsed(), times(&answers));
    println!(
        "{reloads} reloads; the other server died {deaths} times, {not_there} calls of it were told so"
    );
    assert!(answers.iter().any(|one| one.work == Work::Upstream && one.outcome == Outcome::Right));

    // It is available, or will be.
    let mut client = Client::new(clients, &address);
    let deadline = Instant::now() + Duration::from_secs(60);
    for number in (1..).step_by(8) {
        let number = number + 8 - clients % 8;
        let answered = client.ask(number).expect("an answer");
        let is_back = answered.outcome == Outcome::Right;
        assert_eq!(answered.work, Work::Upstream);
        answers.push(answered);
        if is_back {
            break;
        }
        assert!(Instant::now() < deadline, "the other server has not returned");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut connection = Connection::open(&address, TOKEN).expect("it listens");
    let health = connection.ask("GET /health", &[], &Value::Null).expect("an answer");
    assert_eq!(health.body["audit_lost"], 0, "{:?}", health.body);
    drop(connection);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
    assert_eq!(audited(&crib), succeeded(&answers), "what was answered is what is on record");
}

#[test]
fn asked_to_stop_under_load_it_answers_what_runs_and_refuses_the_rest() {
    let clients = setting("TOOLCRIB_LOAD_CLIENTS", 8_usize);
    let crib = crib();
    let (mut server, address) = start(&crib);
    let answered = AtomicUsize::new(0);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients)
            .map(|number| {
                let (address, answered) = (&address, &answered);
                scope.spawn(move || {
                    let mut client = Client::new(number, address);
                    let mut answers = Vec::new();
                    let deadline = Instant::now() + Duration::from_secs(120);
                    for number in 0.. {
                        assert!(Instant::now() < deadline, "the server has not ended");
                        match client.ask(number) {
                            Some(answer) => {
                                answers.push(answer);
                                answered.fetch_add(1, Ordering::SeqCst);
                            }
                            // Nobody listens any more.
                            None if Connection::open(address, TOKEN).is_err() => break,
                            None => {}
                        }
                    }
                    answers
                })
            })
            .collect();
        let deadline = Instant::now() + Duration::from_secs(120);
        while answered.load(Ordering::SeqCst) < 16 * clients {
            assert!(Instant::now() < deadline, "the clients get no answers");
            assert!(!all.iter().any(ScopedJoinHandle::is_finished), "a client has failed");
            std::thread::sleep(Duration::from_millis(5));
        }
        server.signal("TERM");
        all.into_iter().flat_map(|client| client.join().expect("it has not failed")).collect()
    });
    assert_eq!(server.ended(), Some(0));
    let refused = answers.iter().filter(|one| one.outcome == Outcome::Refused).count();
    println!("{} answered, {refused} refused", answers.len() - refused);
    // Every call that ran was reported to its client and to nobody else.
    let of_success = |calls: BTreeMap<String, bool>| -> Vec<String> {
        calls.into_iter().filter_map(|(id, is_success)| is_success.then_some(id)).collect()
    };
    assert_eq!(of_success(audited(&crib)), of_success(succeeded(&answers)));
}

#[test]
fn killed_under_load_it_comes_back_with_its_runs_and_its_audit_log() {
    const CLIENTS: usize = 4;
    let crib = crib();
    let (server, address) = start(&crib);
    let mut operator = Connection::open(&address, TOKEN).expect("it listens");
    let calls = json!({"calls": [
        {"tool": "greet", "call_id": "run-greet", "arguments": {"name": "Ada"}},
        {"tool": "pick", "call_id": "run-pick"},
    ]});
    let run = operator.ask("POST /v1/runs", &[], &calls).expect("an answer");
    assert_eq!(run.status, 201, "{:?}", run.body);
    let id = run.body["id"].as_str().expect("an id").to_owned();

    let answered = AtomicUsize::new(0);
    let is_killed = AtomicBool::new(false);
    let (answers, known): (Vec<_>, _) = std::thread::scope(|scope| {
        let all: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (address, answered, is_killed) = (&address, &answered, &is_killed);
                scope.spawn(move || {
                    let mut client = Client::new(number, address);
                    let mut answers = Vec::new();
                    for number in 0.. {
                        let Some(answer) = client.ask(number) else {
                            assert!(is_killed.load(Ordering::SeqCst), "it broke off by itself");
                            break;
                        };
                        answers.push(answer);
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                    answers
                })
            })
            .collect();
        let deadline = Instant::now() + Duration::from_secs(120);
        while answered.load(Ordering::SeqCst) < 16 * CLIENTS {
            assert!(Instant::now() < deadline, "the clients get no answers");
            assert!(!all.iter().any(ScopedJoinHandle::is_finished), "a client has failed");
            std::thread::sleep(Duration::from_millis(5));
        }
        // A call does not wait for its record to be written; a later request sees that it is.
        let tail = operator.ask("GET /v1/audit?limit=500", &[], &Value::Null).expect("an answer");
        is_killed.store(true, Ordering::SeqCst);
        server.signal("KILL");
        let known: Vec<_> = tail.body["records"].as_array().expect("records").clone();
        (
            all.into_iter().flat_map(|client| client.join().expect("it has not failed")).collect(),
            known,
        )
    });
    drop(server);

    let (mut server, address) = start(&crib);
    let mut operator = Connection::open(&address, TOKEN).expect("it listens");
    let shown = operator.ask(&format!("GET /v1/runs/{id}"), &[], &Value::Null).expect("an answer");
    assert_eq!(shown.body["status"], "requires_action", "{:?}", shown.body);
    assert_eq!(shown.body["results"][0]["output"], "Hello, Ada!");
    let outputs = json!({"tool_outputs": [{"tool_call_id": "run-pick", "output": "a.txt"}]});
    let line = format!("POST /v1/runs/{id}/submit_tool_outputs");
    let over = operator.ask(&line, &[], &outputs).expect("an answer");
    assert_eq!(over.body["status"], "completed", "{:?}", over.body);
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));

    // Every line is complete, none occurs twice, and earlier records are still there.
    let audit = audited(&crib);
    assert!(audit["run-greet"] && audit["run-pick"]);
    assert!(known.len() >= 16);
    for record in known.iter().filter(|record| record["tool"] != "pick") {
        let id = record["call_id"].as_str().expect("an id");
        assert_eq!(audit.get(id), Some(&(record["outcome"] == "success")), "{record}");
    }
    for Answered { id, outcome, work, .. } in &answers {
        let is_right = work == &Work::List
            || audit.get(id).is_none_or(|ok| *ok == (*outcome == Outcome::Right));
        assert!(is_right, "{id}");
    }
}
