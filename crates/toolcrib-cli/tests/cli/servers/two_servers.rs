//! Two running servers over one state folder: a waiting call of one is seen, awaited and decided on at the other.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::http::Http;
use crate::harness::server::{Server, command};

const OPERATOR: &str = "operator-token-for-tests";
const ADA: &str = "ada-token-for-these-tests";

/// How long a server may take to notice a change.
const PATIENCE: Duration = Duration::from_secs(30);

fn crib() -> Crib {
    let crib = Crib::new(&[]);
    let deeds = crib.data().join("deeds").display().to_string();
    let path = crib.path().join("tools.d/deed.sh");
    fs::write(path, format!("#!/bin/sh\necho \"$1\" >> '{deeds}'\necho \"did $1\"\n"))
        .expect("a script");
    crib.write(
        "deed.yaml",
        "toolcrib: 1\ntools:\n  - name: deed\n    description: Do it.\n    approval: always\n    \
         input: {properties: {what: {type: string}}, required: [what]}\n    \
         run: {script: ./deed.sh, args: ['${args.what}']}\n    sandbox: {profile: trusted}\n",
    );
    let mut command = crib.command(&["token", "ada", "--hash", "--json"]);
    let said = command.write_stdin(ADA).output().expect("it runs");
    let said: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    crib.config(&format!(
        "state: {{dir: state}}\naudit: {{file: audit.jsonl}}\n\
         manifests: {{trusted: [tools.d/deed.yaml]}}\n\
         server: {{token: {OPERATOR}, tokens: {{ada: {{hash: {}}}}}}}\n",
        said["hash"]
    ));
    crib
}

fn ask(http: &Http, token: &str, line: &str, body: &Value) -> Reply {
    let mut connection = Connection::open(&http.address, token).expect("it listens");
    connection.ask(line, &[], body).expect("an answer")
}

/// The effects, in order.
fn deeds(crib: &Crib) -> Vec<String> {
    let text = fs::read_to_string(crib.data().join("deeds")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A run of one call that waits: the run, and the call.
fn waiting(http: &Http, what: &str) -> (String, String) {
    let body = json!({"calls": [{"tool": "deed", "arguments": {"what": what}}]});
    let run = ask(http, ADA, "POST /v1/runs", &body).body;
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    (text(&run["id"]), text(&run["waiting"][0]["id"]))
}

/// Awaits a run.
#[track_caller]
fn ended(http: &Http, run: &str) -> Value {
    let begun = Instant::now();
    loop {
        let reply = ask(http, ADA, &format!("GET /v1/runs/{run}"), &Value::Null);
        if reply.status != 200 || reply.body["status"] != "requires_action" {
            return reply.body;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not end: {reply:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn decide(http: &Http, call: &str, decision: &str) -> Reply {
    let body = json!({"decision": decision});
    ask(http, OPERATOR, &format!("POST /v1/approvals/{call}"), &body)
}

/// A server that is started with its config under this name.
fn with_config(crib: &Crib, config: &str) -> Http {
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--config", config, "--listen", "127.0.0.1:0", "--json"]);
    command.env_remove("TOOLCRIB_TOKEN");
    Http::spawn(crib, command)
}

#[test]
fn servers_with_a_relative_and_an_absolute_config_decide_on_each_others_calls() {
    let crib = crib();
    crib.write(
        "note.yaml",
        "toolcrib: 1\ntools:\n  - name: note\n    description: Say it.\n    approval: always\n    \
         input: {properties: {what: {type: string}}, required: [what]}\n    \
         run: {argv: [tee, -a, notes], stdin: '${args.what}'}\n",
    );
    let absolute = crib.path().join("config.yml").display().to_string();
    let names = ["config.yml".to_owned(), absolute];
    let servers: Vec<_> = names.iter().map(|name| with_config(&crib, name)).collect();
    for (number, own) in servers.iter().enumerate() {
        for (other_number, other) in servers.iter().enumerate() {
            for tool in ["deed", "note"] {
                let what = format!("{tool}-{number}-{other_number}");
                let body = json!({"calls": [{"tool": tool, "arguments": {"what": what}}]});
                let run = ask(own, ADA, "POST /v1/runs", &body).body;
                let call = run["waiting"][0]["id"].as_str().unwrap_or_else(|| panic!("{run}"));
                let decided = ask(
                    other,
                    OPERATOR,
                    &format!("POST /v1/approvals/{call}"),
                    &json!({"decision": "approve"}),
                );
                let names = (&names[number], &names[other_number]);
                assert_eq!(
                    decided.body["outcome"]["status"], "succeeded",
                    "{names:?}, {tool}: {decided:?}"
                );
            }
        }
    }
}

#[test]
fn a_call_that_waits_at_one_server_is_approved_denied_cancelled_and_awaited_at_another() {
    let crib = crib();
    let (own, other) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let listed = |http: &Http| {
        let list = ask(http, OPERATOR, "GET /v1/approvals", &Value::Null).body;
        list["approvals"].as_array().expect("a list").len()
    };
    let (run, call) = waiting(&own, "approved");
    assert_eq!((listed(&own), listed(&other)), (1, 1));
    let seen = ask(&other, ADA, &format!("GET /v1/runs/{run}"), &Value::Null).body;
    assert_eq!(seen["status"], "requires_action", "{seen}");
    let approved = decide(&other, &call, "approve");
    assert_eq!(approved.status, 200, "{approved:?}");
    for http in [&own, &other] {
        let over = ended(http, &run);
        assert!(over.to_string().contains("did approved"), "{over}");
        let late = decide(http, &call, "deny");
        assert!([404, 409].contains(&late.status), "{late:?}");
    }

    let (run, call) = waiting(&own, "denied");
    let denied = decide(&other, &call, "deny");
    assert_eq!(denied.status, 200, "{denied:?}");
    for http in [&own, &other] {
        let over = ended(http, &run);
        assert_eq!(over["results"][0]["error"]["kind"], "denied", "{over}");
    }

    let (run, call) = waiting(&own, "cancelled");
    let cancelled = ask(&other, ADA, &format!("POST /v1/runs/{run}/cancel"), &Value::Null);
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    for http in [&own, &other] {
        let over = ended(http, &run);
        assert_eq!(over["status"], "cancelled", "{over}");
        let late = decide(http, &call, "approve");
        assert!([404, 409].contains(&late.status), "{late:?}");
    }
    assert_eq!((listed(&own), listed(&other)), (0, 0));
    assert_eq!(deeds(&crib), ["approved"], "once, and nothing else");
}

#[test]
fn a_call_whose_server_was_killed_is_approved_and_awaited_at_another_and_runs_once() {
    let crib = crib();
    let (own, other) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let (run, call) = waiting(&own, "left");
    own.server.signal("KILL");
    assert_eq!(decide(&other, &call, "approve").status, 200);
    assert!(ended(&other, &run).to_string().contains("did left"));
    drop(own);
    let again = Http::start(&crib, "");
    assert!(ended(&again, &run).to_string().contains("did left"));
    assert_eq!(deeds(&crib), ["left"]);
}

/// The waiting calls, as the operator of a server sees them.
fn first_waiting(http: &Http) -> String {
    let begun = Instant::now();
    loop {
        let list = ask(http, OPERATOR, "GET /v1/approvals", &Value::Null).body;
        if let Some(id) = list["approvals"][0]["id"].as_str() {
            return id.to_owned();
        }
        assert!(begun.elapsed() < PATIENCE, "nothing waits: {list}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An MCP server that is connected to only one client, and its waiting call.
fn called_over_lines(crib: &Crib, what: &str) -> (Server, Value) {
    let mut lines = Server::mcp(crib);
    let said = lines.call("deed", &json!({"what": what}));
    assert_eq!(said["result"]["isError"], true, "{said}");
    (lines, said)
}

#[test]
fn a_call_of_a_client_that_only_its_own_server_knows_is_denied_elsewhere_and_approved_nowhere_else()
{
    let crib = crib();
    let other = Http::start(&crib, "");
    let (mut lines, said) = called_over_lines(&crib, "its own");
    let call = first_waiting(&other);
    let refused = decide(&other, &call, "approve");
    assert_eq!((refused.status, &refused.body["kind"]), (409, &json!("elsewhere")), "{refused:?}");
    let process = lines.id().to_string();
    assert!(refused.body["detail"].to_string().contains(&process), "{refused:?}");
    assert_eq!(first_waiting(&other), call, "it waits on: {said}");

    // `toolcrib approvals` asks the server in which the call waits.
    let approved = crib.run(&["approvals", "approve", &call]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let answer = lines.call("deed", &json!({"what": "its own"}));
    assert!(answer.to_string().contains("did its own"), "{answer}");
    assert_eq!(deeds(&crib), ["its own"], "the repeated call asked after the first");

    let said = lines.call("deed", &json!({"what": "no"}));
    assert_eq!(said["result"]["isError"], true, "{said}");
    let call = first_waiting(&other);
    let denied = decide(&other, &call, "deny");
    assert_eq!(denied.status, 200, "{denied:?}");
    let answer = lines.call("deed", &json!({"what": "no"}));
    assert!(answer.to_string().contains("denied"), "{answer}");
    assert_eq!(deeds(&crib), ["its own"]);
}

#[test]
fn a_call_of_a_client_whose_server_was_killed_is_run_by_no_other() {
    let crib = crib();
    let other = Http::start(&crib, "");
    let (lines, _) = called_over_lines(&crib, "orphan");
    let call = first_waiting(&other);
    lines.signal("KILL");
    drop(lines);
    let begun = Instant::now();
    let refused = loop {
        let refused = decide(&other, &call, "approve");
        if refused.body["kind"] != "elsewhere" {
            break refused;
        }
        assert!(begun.elapsed() < PATIENCE, "its server has ended: {refused:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!([404, 409].contains(&refused.status), "its client is known to nobody: {refused:?}");
    let list = ask(&other, OPERATOR, "GET /v1/approvals", &Value::Null).body;
    assert_eq!(list["approvals"], json!([]));
    assert!(deeds(&crib).is_empty());
}
