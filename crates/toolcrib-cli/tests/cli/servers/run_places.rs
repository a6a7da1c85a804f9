//! Answered runs: they make room for new ones, and some are kept.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: tell
    description: Say what the variable holds.
    approval: always
    run: {argv: [printenv, PIN], env: {PIN: "${secret.pin}"}}
"#;

const OPERATOR: &str = "the-operators-token-is-kept-here";
const PIN: &str = "pin-7261-that-nobody-is-shown";
/// The maximum number of runs of a client.
const SHARE: usize = 3;

fn ask(http: &Http, token: &str, line: &str, body: &Value) -> Reply {
    let mut connection = Connection::open(&http.address, token).expect("it listens");
    connection.ask(line, &[], body).expect("an answer")
}

fn files_of(folder: PathBuf) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("it is ours").map(|entry| entry.expect("ours").path());
    entries.flat_map(|path| if path.is_dir() { files_of(path) } else { vec![path] }).collect()
}

#[test]
fn an_approved_run_gives_up_its_place_is_read_after_a_kill_and_holds_no_secret() {
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    let made = crib.run(&["token", "ada", "--json"]).json();
    let ada = made["token"].as_str().expect("a token");
    fs::write(crib.path().join("pin"), PIN).expect("it is ours");
    crib.config(&format!(
        "state: {{dir: state}}\nlimits: {{per_client: {{runs: {SHARE}}}}}\nsecrets: {{pin: {{file: \
         pin}}}}\nmanifests: {{trusted: [tools.d/tools.yaml]}}\nserver: {{token: {OPERATOR}, tokens: \
         {{ada: {{hash: {}}}}}}}\n",
        made["hash"]
    ));
    let http = Http::start(&crib, "");
    let call = |http: &Http| ask(http, ada, "POST /v1/tools/tell/call", &json!({"arguments": {}}));
    let mut runs = Vec::new();
    for _ in 0..SHARE {
        let waits = call(&http);
        assert_eq!(waits.status, 202, "{waits:?}");
        runs.push(waits.body);
    }
    assert_eq!(call(&http).status, 503, "all of them wait");
    for run in &runs {
        let line = format!("POST /v1/approvals/{}", run["waiting"][0]["id"].as_str().expect("one"));
        let approved = ask(&http, OPERATOR, &line, &json!({"decision": "approve"}));
        assert_eq!(approved.body["outcome"]["status"], "succeeded", "{approved:?}");
    }
    for _ in 0..SHARE {
        let waits = call(&http);
        assert_eq!(waits.status, 202, "answered runs hold no place: {waits:?}");
    }

    http.server.signal("KILL");
    drop(http);
    let http = Http::start(&crib, "");
    for run in &runs {
        let line = format!("GET /v1/runs/{}", run["id"].as_str().expect("an id"));
        let read = ask(&http, ada, &line, &Value::Null);
        assert_eq!((read.status, &read.body["status"]), (200, &json!("completed")), "{read:?}");
        let output = read.body["results"][0]["output"].as_str().expect("it has one").to_owned();
        assert!(!output.is_empty() && !output.contains(PIN), "{output}");
        assert_eq!(ask(&http, OPERATOR, &line, &Value::Null).status, 404, "it is hers");
    }
    let state = files_of(crib.path().join("state"));
    assert!(state.iter().any(|file| file.ends_with("toolcrib.db")), "{state:?}");
    for file in state.iter().filter(|file| file.is_file()) {
        let bytes = fs::read(file).expect("it is ours");
        let is_there = bytes.windows(PIN.len()).any(|part| part == PIN.as_bytes());
        assert!(!is_there, "{}", file.display());
    }
}
