//! The HTTP API of the built program: tokens, calls, runs, operations, and what survives a restart.

use std::fs::{self, DirBuilder};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::{Crib, run};
use crate::harness::http::{Http, Reply, ask};
use crate::harness::server::Server;

const TOOLS: &str = concat!(
    "toolcrib: 1\n",
    include_str!("../../greet.yaml"),
    "
  - name: pick
    description: Ask the person for a file.
    input: {properties: {filter: {type: string}}}
    client: true
"
);

const NAP: &str = r#"
toolcrib: 1
tools:
  - name: nap
    description: Sleep.
    limits: {timeout: 10m}
    input: {properties: {mark: {type: string}}, required: [mark]}
    run: {argv: [bash, -c, 'touch "$MARK"; sleep 600'], env: {MARK: '${args.mark}'}}
"#;

fn crib() -> Crib {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    crib.config("state: {dir: state}\naudit: {file: audit.jsonl}\n");
    crib
}

#[test]
fn tools_are_listed_called_and_counted_and_a_reload_brings_new_ones() {
    let crib = crib();
    let http = Http::start(&crib, "");
    let greet = json!({"arguments": {"name": "Ada"}, "call_id": "c1"});
    let answer = http.ask("POST /v1/tools/greet/call", Some(&greet));
    assert_eq!((answer.status, &answer.json()["output"]), (200, &json!("Hello, Ada!")));
    let wrong = http.ask("POST /v1/tools/greet/call", Some(&json!({"arguments": {}})));
    assert_eq!((wrong.status, &wrong.json()["kind"]), (422, &json!("invalid_args")));

    crib.write("more.yaml", &TOOLS.replace("greet", "hail").replace("pick", "choose"));
    let reloaded = http.ask("POST /v1/reload", None);
    assert_eq!(reloaded.status, 200, "{}", reloaded.body);
    assert_eq!(http.ask("GET /v1/tools/hail", None).status, 200);

    let counted = http.ask("GET /v1/stats", None).json();
    let greet =
        counted["tools"].as_array().expect("tools").iter().find(|one| one["tool"] == "greet");
    assert_eq!(greet.expect("it was called")["successes"], 1);
    let audit = http.ask("GET /v1/audit?limit=2", None).json();
    assert_eq!(audit["records"][0]["call_id"], "c1");
    assert_eq!(audit["records"][1]["outcome"], "invalid_args");
    let status = http.ask("GET /v1/status", None).json();
    assert_eq!(status["files"].as_array().map(Vec::len), Some(2));
}

#[test]
fn readiness_and_metrics_report_problems() {
    let crib = crib();
    let http = Http::start(&crib, "");
    crib.write("tools.yaml", "toolcrib: 1\ntools: [");
    crib.write("bad.yaml", "nonsense");
    http.ask("POST /v1/reload", None);
    let ready = http.ask("GET /ready", None);
    assert_eq!(ready.status, 200, "the last good tools serve on");
    let ready = ready.json();
    assert_eq!(ready["status"], "degraded");
    assert_eq!((&ready["files_stale"], &ready["files_broken"]), (&json!(1), &json!(1)));
    let metrics = http.ask("GET /metrics", None).body;
    for line in [
        "toolcrib_files{state=\"stale\"} 1",
        "toolcrib_files{state=\"broken\"} 1",
        "toolcrib_degraded 1",
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line}\n{metrics}");
    }
}

#[test]
fn a_token_made_by_the_command_lets_its_client_in_as_itself() {
    let crib = crib();
    let made = crib.run(&["token", "ci", "--json"]).json();
    let (token, hash) = (made["token"].as_str().expect("a token"), &made["hash"]);
    // Hashing the token gives the same result, and the printed entry is valid.
    let mut command = crib.command(&["token", "ci", "--hash"]);
    let entry = run(command.write_stdin(format!("{token}\n")));
    assert!(entry.stdout.contains(hash.as_str().expect("text")), "{entry:?}");
    let config =
        "audit: {file: audit.jsonl}\ntoolsets: {sums: {include: [{names: [calculator]}]}}\n";
    crib.config(&format!("{config}{}      toolset: sums\n", entry.stdout));
    let mut http = Http::start(&crib, token);
    let tools = http.ask("GET /v1/tools", None).json();
    let names: Vec<_> =
        tools["tools"].as_array().expect("tools").iter().map(|one| one["name"].clone()).collect();
    assert!(names.contains(&json!("calculator")) && !names.contains(&json!("greet")), "{names:?}");
    let sum = json!({"arguments": {"expression": "2+2"}});
    assert_eq!(http.ask("POST /v1/tools/calculator/call", Some(&sum)).status, 200);
    assert_eq!(http.ask("GET /v1/stats", None).status, 403);
    assert_eq!(
        ask(&http.address, "not-the-token-of-anybody", "GET /v1/tools", None)
            .map(|reply| reply.status),
        Some(401)
    );
    http.server.signal("TERM");
    assert_eq!(http.server.ended(), Some(0));
    let audit = fs::read_to_string(crib.path().join("audit.jsonl")).expect("it is written");
    assert!(audit.contains(r#""user":"ci""#), "{audit}");
    let wrong = crib.run(&["token", "a b"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("letters, digits"), "{wrong:?}");
}

#[test]
fn a_run_and_the_audit_log_survive_a_server_that_is_killed() {
    let crib = crib();
    let token = "a-token-that-is-kept-over-restarts";
    crib.config(&format!(
        "state: {{dir: state}}\naudit: {{file: audit.jsonl}}\nserver: {{token: {token}}}\n"
    ));
    let http = Http::start(&crib, token);
    let calls = json!({"calls": [
        {"tool": "greet", "call_id": "g", "arguments": {"name": "Ada"}},
        {"tool": "pick", "call_id": "p"},
    ]});
    let run = http.ask("POST /v1/runs", Some(&calls));
    assert_eq!(run.status, 201, "{}", run.body);
    let id = run.json()["id"].as_str().expect("an id").to_owned();
    // A call does not wait for its record to be written; a later request sees that it is.
    assert!(http.ask("GET /v1/audit", None).body.contains(r#""call_id":"g""#));
    http.server.signal("KILL");
    drop(http);

    let http = Http::start(&crib, token);
    let shown = http.ask(&format!("GET /v1/runs/{id}"), None).json();
    assert_eq!(shown["status"], "requires_action");
    assert_eq!(shown["results"][0]["output"], "Hello, Ada!");
    let outputs = json!({"tool_outputs": [{"tool_call_id": "p", "output": "a.txt"}]});
    let over = http.ask(&format!("POST /v1/runs/{id}/submit_tool_outputs"), Some(&outputs)).json();
    assert_eq!(
        (&over["status"], &over["results"][1]["output"]),
        (&json!("completed"), &json!("a.txt"))
    );
    let audit = http.ask("GET /v1/audit", None).json();
    let ids: Vec<_> = audit["records"]
        .as_array()
        .expect("records")
        .iter()
        .map(|one| one["call_id"].clone())
        .collect();
    assert!(ids.contains(&json!("g")) && ids.contains(&json!("p")), "{ids:?}");
}

#[test]
fn a_waiting_call_survives_a_restart_of_a_default_server() {
    let crib = crib();
    let token = "a-token-that-is-kept-over-restarts";
    crib.config(&format!("server: {{token: {token}}}\n"));
    assert!(!crib.state_home().exists());
    let http = Http::start(&crib, token);
    let calls = json!({"calls": [{"tool": "pick", "call_id": "p"}]});
    let run = http.ask("POST /v1/runs", Some(&calls));
    let id = run.json()["id"].as_str().expect("an id").to_owned();
    http.server.signal("KILL");
    drop(http);

    let folders = fs::read_dir(crib.state_home().join("toolcrib")).expect("the state folder");
    let folders: Vec<_> = folders.map(|folder| folder.expect("a folder").path()).collect();
    let [folder] = folders.as_slice() else { panic!("{folders:?}") };
    let mode = fs::metadata(folder).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);

    let http = Http::start(&crib, token);
    let outputs = json!({"tool_outputs": [{"tool_call_id": "p", "output": "a.txt"}]});
    let over = http.ask(&format!("POST /v1/runs/{id}/submit_tool_outputs"), Some(&outputs)).json();
    assert_eq!(over["status"], "completed", "{over}");
}

#[test]
fn a_key_is_one_piece_of_work_over_restarts_too() {
    let crib = Crib::new(&[("tools.yaml", TOOLS), ("nap.yaml", NAP)]);
    let token = "a-token-that-is-kept-over-restarts";
    crib.config(&format!(
        "state: {{dir: state}}\naudit: {{file: audit.jsonl}}\nserver: {{token: {token}}}\n"
    ));
    let http = Http::start(&crib, token);
    let ada = json!({"name": "Ada"});
    let first = http.ask_under("k1", "greet", &ada).expect("an answer");
    assert_eq!((first.status, first.header("idempotency-replayed")), (200, None));
    // Another call is started, and the server is killed during it.
    let mark = crib.path().join("began");
    let nap = json!({"mark": mark});
    std::thread::scope(|scope| {
        let cut = scope.spawn(|| http.ask_under("k2", "nap", &nap));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !mark.exists() {
            assert!(Instant::now() < deadline, "the call has not begun");
            std::thread::sleep(Duration::from_millis(10));
        }
        http.server.signal("KILL");
        assert!(cut.join().expect("it has not failed").is_err());
    });
    drop(http);

    let http = Http::start(&crib, token);
    let again = http.ask_under("k1", "greet", &ada).expect("an answer");
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(again.body, first.body);
    let other = http.ask_under("k1", "greet", &json!({"name": "Bob"})).expect("an answer");
    assert_eq!(other.status, 422);
    let cut = http.ask_under("k2", "nap", &nap).expect("an answer");
    assert_eq!((cut.status, &cut.body["kind"]), (424, &json!("outcome_unknown")));
    assert_eq!(cut.header("idempotency-replayed"), None);
    let audit = http.ask("GET /v1/audit", None).json();
    let greeted = |record: &&Value| record["tool"] == "greet";
    assert_eq!(audit["records"].as_array().expect("records").iter().filter(greeted).count(), 1);
}

#[test]
fn on_a_socket_it_says_where_serves_and_cleans_up() {
    let crib = crib();
    let folder = crib.runtime_dir();
    DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
    let path = folder.join("crib.sock");
    let listen = format!("unix:{}", path.display());
    let mut server = Server::start(&crib, &["serve", "--listen", &listen, "--no-auth", "--json"]);
    let said = server.receive();
    assert_eq!(said["socket"], json!(path));
    assert_eq!(said["url"], "http://localhost/mcp");
    let mut stream = UnixStream::connect(&path).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    let body = json!({"arguments": {"name": "Ada"}}).to_string();
    write!(
        stream,
        "POST /v1/tools/greet/call HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Hello, Ada!"), "{answer}");

    let taken = crib.run(&["serve", "--listen", &listen]);
    assert_eq!(taken.code, Some(2));
    let of = format!("is in use: the server {} already runs with this config", server.id());
    assert!(taken.stderr.contains(&of), "{taken:?}");
    let relative = crib.run(&["serve", "--listen", "unix:crib.sock"]);
    assert!(relative.stderr.contains("the path of a socket is absolute"), "{relative:?}");
    server.signal("TERM");
    assert_eq!(server.ended(), Some(0));
    assert!(!path.exists());
}

#[test]
fn the_log_is_json_lines_where_that_is_asked_for() {
    let crib = crib();
    let mut command =
        crib.command(&["-v", "--log-format", "json", "call", "calculator", "expression=2+2"]);
    let run = run(command.env_remove("RUST_LOG"));
    let lines: Vec<Value> = run
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert!(
        lines.iter().any(|line| line["level"] == "INFO" && line["message"].is_string()),
        "{lines:?}"
    );
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Compares an answer with the schema of its status in the server's own document.
fn assert_documented(document: &Value, line: &str, path: &str, answer: &Reply) {
    let method = line.split(' ').next().expect("a method").to_lowercase();
    let response = &document["paths"][path][&method]["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{line}: {} is not documented: {}", answer.status, answer.body);
    let Some(content) = response.get("content").and_then(Value::as_object) else {
        assert!(answer.body.is_empty(), "{line}: {}", answer.body);
        return;
    };
    let body = answer.json();
    let json = content.iter().filter(|(media, _)| media.ends_with("json"));
    let fits = |(_, content): (&String, &Value)| {
        let mut schema = content["schema"].clone();
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<_> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
        // A schema that allows anything would prove nothing.
        if path.starts_with("/v1") && answer.status == 200 {
            let anything = validator.is_valid(&json!({"no_such_key": 1}));
            assert!(!anything, "{line}: the schema allows anything");
        }
        errors
    };
    let errors: Vec<Vec<String>> = json.map(fits).collect();
    assert!(errors.iter().any(Vec::is_empty), "{line}: {errors:#?}\n{body:#}");
}

/// A manifest with tools whose programs do not exist.
fn unavailable_tools(number: usize) -> String {
    let tool = |number| {
        format!(
            "  - {{name: gone_{number:03}, description: Gone., run: {{argv: [no-such-program]}}}}\n"
        )
    };
    let tools: Vec<String> = (0..number).map(tool).collect();
    format!("toolcrib: 1\ntools:\n{}", tools.concat())
}

/// Operations whose answers are streams or texts, or belong to sessions of MCP clients.
const NOT_ASKED: [&str; 8] = [
    "delete /mcp",
    "delete /mcp/{toolset}",
    "get /mcp",
    "get /mcp/{toolset}",
    "get /metrics",
    "get /v1/events",
    "get /v1/prompt",
    "post /mcp/{toolset}",
];

/// The methods and paths that a document of the API describes.
fn operations(document: &Value) -> std::collections::BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let of_path = |(path, item): (&String, &Value)| -> Vec<String> {
        let methods = item.as_object().into_iter().flat_map(|all| all.keys());
        methods.map(|method| format!("{method} {path}")).collect()
    };
    paths.flat_map(of_path).collect()
}

#[test]
fn answers_of_a_running_server_are_as_its_document_says() {
    let crib = crib();
    crib.write("gone.yaml", &unavailable_tools(120));
    crib.write("far.yaml", "toolcrib: 1\nupstream:\n  - {name: far, command: [no-such-server]}\n");
    let http = Http::start(&crib, "");
    crib.write("a.yaml", TOOLS);
    crib.write("bad.yaml", "nonsense");
    crib.write("more.yaml", &TOOLS.replace("greet", "hail").replace("pick", "choose"));
    crib.write(
        "asks.yaml",
        "toolcrib: 1\ntools:\n  - {name: asks, description: Ask., approval: always, run: {argv: [echo]}}\n",
    );
    let greet = json!({"arguments": {"name": "Ada"}});
    let batch =
        json!({"calls": [{"tool": "greet", "arguments": {"name": "Ada"}}, {"tool": "gone_001"}]});
    let waits = json!({"calls": [{"tool": "pick"}]});
    let none = Value::Null;
    http.ask("POST /v1/reload", None);
    let made = |body: Value| http.ask("POST /v1/runs", Some(&body)).json();
    let run = made(waits.clone());
    let (run, call) =
        (text(&run["id"]), &run["required_action"]["submit_tool_outputs"]["tool_calls"][0]["id"]);
    let outputs = json!({"tool_outputs": [{"tool_call_id": call, "output": "a.txt"}]});
    let at = |path: &str, id: &str| path.replace("ID", id);
    let asks = || made(json!({"calls": [{"tool": "asks"}]}));
    let (one, other, third) = (asks(), asks(), asks());
    let waiting = |run: &Value| text(&run["waiting"][0]["id"]);
    let resolve = json!({"id": waiting(&one), "decision": "approve"});
    let approve = json!({"decision": "approve"});
    let input = json!({"input": "Hello."});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "nothing"});
    let document = http.ask("GET /openapi.json", None).json();
    let mut seen = std::collections::BTreeSet::new();
    for (line, path, body) in [
        (&*at("GET /v1/runs/ID", &run), "/v1/runs/{id}", &none),
        (
            &at("POST /v1/runs/ID/submit_tool_outputs", &run),
            "/v1/runs/{id}/submit_tool_outputs",
            &outputs,
        ),
        (&at("DELETE /v1/runs/ID", &run), "/v1/runs/{id}", &none),
        (&at("GET /v1/approvals/ID", &waiting(&one)), "/v1/approvals/{id}", &none),
        (&at("POST /v1/runs/ID/resolve", &text(&one["id"])), "/v1/runs/{id}/resolve", &resolve),
        (&at("POST /v1/approvals/ID", &waiting(&other)), "/v1/approvals/{id}", &approve),
        (&at("POST /v1/runs/ID/cancel", &text(&third["id"])), "/v1/runs/{id}/cancel", &none),
        (&at("POST /v1/runs/ID/resume", &text(&third["id"])), "/v1/runs/{id}/resume", &none),
        (&at("GET /v1/runs/ID/events", &text(&third["id"])), "/v1/runs/{id}/events", &none),
        (&at("GET /v1/runs/ID/items", &text(&third["id"])), "/v1/runs/{id}/items", &none),
        (&at("POST /v1/runs/ID/steer", &text(&third["id"])), "/v1/runs/{id}/steer", &input),
        ("POST /mcp", "/mcp", &list),
        ("POST /v1/reload", "/v1/reload", &none),
        ("GET /health", "/health", &none),
        ("GET /ready", "/ready", &none),
        ("GET /openapi.json", "/openapi.json", &none),
        ("GET /v1/status", "/v1/status", &none),
        ("GET /v1/tools", "/v1/tools", &none),
        ("GET /v1/tools/greet", "/v1/tools/{name}", &none),
        ("GET /v1/tools/nothing", "/v1/tools/{name}", &none),
        ("GET /v1/search?q=greet", "/v1/search", &none),
        ("POST /v1/tools/greet/call", "/v1/tools/{name}/call", &greet),
        ("POST /v1/tools/greet/call", "/v1/tools/{name}/call", &json!({"arguments": {}})),
        ("POST /v1/tools/gone_001/call", "/v1/tools/{name}/call", &json!({})),
        ("POST /v1/batch", "/v1/batch", &batch),
        ("POST /v1/runs", "/v1/runs", &waits),
        ("GET /v1/runs", "/v1/runs", &none),
        ("GET /v1/approvals", "/v1/approvals", &none),
        ("POST /v1/responses", "/v1/responses", &input),
        ("POST /v1/responses", "/v1/responses", &approve),
        ("GET /v1/responses", "/v1/responses", &none),
        ("GET /v1/responses/resp_1", "/v1/responses/{id}", &none),
        ("POST /v1/responses/resp_1/cancel", "/v1/responses/{id}/cancel", &none),
        ("GET /v1/responses/resp_1/input_items", "/v1/responses/{id}/input_items", &none),
        ("DELETE /v1/responses/resp_1", "/v1/responses/{id}", &none),
        ("POST /v1/responses/compact", "/v1/responses/compact", &input),
        ("POST /v1/responses/input_tokens", "/v1/responses/input_tokens", &input),
        ("POST /v1/chat/completions", "/v1/chat/completions", &input),
        ("GET /v1/models", "/v1/models", &none),
        ("GET /v1/stats", "/v1/stats", &none),
        ("GET /v1/audit", "/v1/audit", &none),
        ("GET /v1/names/greet", "/v1/names/{name}", &none),
        ("GET /v1/names/nothing", "/v1/names/{name}", &none),
        ("POST /v1/names/greet/release", "/v1/names/{name}/release", &none),
        ("POST /v1/tools/greet/reset", "/v1/tools/{name}/reset", &none),
        ("POST /v1/reload", "/v1/reload", &none),
    ] {
        let body = Some(body).filter(|body| !body.is_null());
        assert_documented(&document, line, path, &http.ask(line, body));
        seen.insert(format!(
            "{} {path}",
            line.split(' ').next().unwrap_or_default().to_lowercase()
        ));
    }
    let operations = operations(&document);
    let missing: std::collections::BTreeSet<_> = operations.difference(&seen).cloned().collect();
    assert_eq!(missing, NOT_ASKED.map(str::to_owned).into());
    let status = http.ask("GET /v1/status", None).json();
    assert_eq!(status["unavailable"], 120);
    assert_eq!(status["unavailable_tools"].as_array().map(Vec::len), Some(100));
    assert_eq!(status["after_restart"][0]["name"], "greet");
    assert!(status["upstreams"][0]["state"].is_string(), "{status}");
}
