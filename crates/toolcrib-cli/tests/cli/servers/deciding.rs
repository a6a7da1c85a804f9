//! Two servers over one state folder: a waiting call is resolved once, by either of them.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::{Http, Reply, ask};

const TOOLS: &str = r#"
toolcrib: 1
tools:
  - name: leave
    description: Leave a mark.
    approval: always
    input: {properties: {mark: {type: string}}, required: [mark]}
    run: {argv: [bash, -c, 'echo ran >> "$MARK"; sleep 0.05'], env: {MARK: '${args.mark}'}}
"#;

const ADA: &str = "ada-token-for-these-tests";
const BOSS: &str = "boss-token-for-these-tests";

fn hash(crib: &Crib, name: &str, token: &str) -> String {
    let output = crib.command(&["token", name, "--hash", "--json"]).write_stdin(token).output();
    let said: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("JSON");
    said["hash"].as_str().expect("a hash").to_owned()
}

fn post(server: &Http, token: &str, path: &str, body: &Value) -> Reply {
    ask(&server.address, token, &format!("POST {path}"), Some(body)).expect("an answer")
}

/// How often the program of a call has run, once it can no longer be running.
fn marks(crib: &Crib, mark: &str) -> usize {
    std::fs::read_to_string(crib.path().join(mark)).unwrap_or_default().lines().count()
}

#[test]
fn of_approving_denying_and_cancelling_at_two_servers_one_succeeds_and_the_others_get_409() {
    let crib = Crib::new(&[("leave.yaml", TOOLS)]);
    let (ada, boss) = (hash(&crib, "ada", ADA), hash(&crib, "boss", BOSS));
    crib.config(&format!(
        "state: {{dir: state}}\nserver: {{tokens: {{ada: {{hash: \"{ada}\", rights: [call, \
         approve]}}, boss: {{hash: \"{boss}\", rights: [approve]}}}}}}\n"
    ));
    let servers = [Http::start(&crib, ADA), Http::start(&crib, ADA)];
    let begun = Instant::now();
    let mut races = 0;
    while races < 24 && begun.elapsed() < Duration::from_secs(40) {
        let (here, there) = (&servers[races % 2], &servers[(races + 1) % 2]);
        let mark = format!("mark-{races}");
        let call = json!({"calls": [{"tool": "leave", "arguments": {"mark": mark}}]});
        let run = post(there, ADA, "/v1/runs", &call).json();
        let (run_id, id) = (run["id"].as_str(), run["waiting"][0]["id"].as_str());
        let (run_id, id) = (run_id.expect("a run"), id.expect("it waits"));
        // Each of the three is first in a third of the races.
        let behind = |n: usize| Duration::from_millis(if races % 3 == n { 0 } else { 4 });
        let start = Barrier::new(3);
        let (approve, deny, cancel) = thread::scope(|scope| {
            let approving = scope.spawn(|| {
                start.wait();
                thread::sleep(behind(0));
                let (token, path, body) = if races % 4 < 2 {
                    let body = json!({"decision": "approve"});
                    (BOSS, format!("/v1/approvals/{id}"), body)
                } else {
                    let body = json!({"id": id, "decision": "approve"});
                    (ADA, format!("/v1/runs/{run_id}/resolve"), body)
                };
                post(here, token, &path, &body)
            });
            let denying = scope.spawn(|| {
                start.wait();
                thread::sleep(behind(1));
                let path = format!("/v1/approvals/{id}");
                post(there, BOSS, &path, &json!({"decision": "deny"}))
            });
            start.wait();
            thread::sleep(behind(2));
            let cancel = post(there, ADA, &format!("/v1/runs/{run_id}/cancel"), &json!({}));
            let joined = |one: thread::ScopedJoinHandle<'_, Reply>| one.join().expect("no panic");
            (joined(approving), joined(denying), cancel)
        });
        let answers = [&approve, &deny, &cancel];
        let all: Vec<_> = answers.iter().map(|one| (one.status, &one.body)).collect();
        assert_eq!(answers.iter().filter(|one| one.status == 200).count(), 1, "{all:?}");
        for lost in answers.iter().filter(|one| one.status != 200) {
            assert_eq!(
                (lost.status, lost.json()["kind"].as_str()),
                (409, Some("already_resolved"))
            );
        }
        let (runs, word) = match (approve.status, deny.status) {
            (200, _) => (1, "was approved by "),
            (_, 200) => (0, "was denied by boss"),
            _ => (0, "was cancelled by ada"),
        };
        for lost in [&approve, &deny].into_iter().filter(|one| one.status != 200) {
            assert!(lost.body.contains(word), "{word}: {}", lost.body);
        }
        if cancel.status == 200 {
            assert_eq!(cancel.json()["status"], "cancelled");
        }
        // A program that was started despite the answers would be running by then.
        thread::sleep(Duration::from_millis(100));
        assert_eq!(marks(&crib, &mark), runs, "{all:?}");
        races += 1;
    }
    assert!(races >= 8, "the servers are too slow: {races} races");
}
