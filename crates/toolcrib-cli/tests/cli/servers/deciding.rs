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

/// A state folder and two clients: ada, who calls and approves, and boss, who approves.
fn crib() -> Crib {
    let crib = Crib::new(&[("leave.yaml", TOOLS)]);
    let (ada, boss) = (hash(&crib, "ada", ADA), hash(&crib, "boss", BOSS));
    crib.config(&format!(
        "state: {{dir: state}}\nserver: {{tokens: {{ada: {{hash: \"{ada}\", rights: [call, \
         approve]}}, boss: {{hash: \"{boss}\", rights: [approve]}}}}}}\n"
    ));
    crib
}

/// The path of a run whose calls, one for each mark, wait for approval.
fn waiting_run(server: &Http, marks: &[String]) -> String {
    let call = |mark| json!({"tool": "leave", "arguments": {"mark": mark}});
    let calls = json!({"calls": marks.iter().map(call).collect::<Vec<_>>()});
    let run = post(server, ADA, "/v1/runs", &calls).json();
    format!("/v1/runs/{}", run["id"].as_str().expect("a run"))
}

#[test]
fn of_two_cancellations_at_two_servers_one_succeeds_and_the_other_gets_409() {
    let crib = crib();
    let servers = [Http::start(&crib, ADA), Http::start(&crib, ADA)];
    for race in 0..30 {
        // Every other run has several calls, which the two could cancel in turn.
        let names: Vec<_> = (0..=2 * (race % 2)).map(|n| format!("mark-{race}-{n}")).collect();
        let path = waiting_run(&servers[race % 2], &names);
        let start = Barrier::new(2);
        let answers = thread::scope(|scope| {
            let (start, path) = (&start, path.as_str());
            let cancels = servers.each_ref().map(|server| {
                scope.spawn(move || {
                    start.wait();
                    post(server, ADA, &format!("{path}/cancel"), &json!({}))
                })
            });
            cancels.map(|one| one.join().expect("no panic"))
        });
        let all: Vec<_> = answers.iter().map(|one| (one.status, &one.body)).collect();
        let won: Vec<_> = answers.iter().filter(|one| one.status == 200).collect();
        let [won] = won.as_slice() else { panic!("one of them succeeds: {all:?}") };
        assert_eq!(won.json()["status"], "cancelled", "{all:?}");
        for lost in answers.iter().filter(|one| one.status != 200) {
            let told = lost.json();
            assert_eq!((lost.status, &told["kind"]), (409, &json!("already_resolved")));
            assert!(lost.body.contains("the call was cancelled by ada at "), "{all:?}");
        }
        for server in &servers {
            let line = format!("GET {path}");
            let shown = ask(&server.address, ADA, &line, None).expect("an answer").json();
            assert_eq!(shown["status"], "cancelled", "{shown}");
        }
        for name in &names {
            assert_eq!(marks(&crib, name), 0);
        }
    }
}

#[test]
fn a_cancellation_at_a_server_that_is_killed_is_done_once_or_left_to_another() {
    let crib = crib();
    let there = Http::start(&crib, ADA);
    for kill in 0..8 {
        let here = Http::start(&crib, ADA);
        let names = [0, 1, 2].map(|n| format!("mark-{kill}-{n}"));
        let path = waiting_run(&here, &names);
        let (address, line) = (here.address.clone(), format!("POST {path}/cancel"));
        let cancelling = thread::spawn({
            let line = line.clone();
            move || ask(&address, ADA, &line, Some(&json!({})))
        });
        thread::sleep(Duration::from_micros(700 * kill));
        // Its process is killed.
        drop(here);
        let first = cancelling.join().expect("no panic").map(|reply| reply.status);
        let second = ask(&there.address, ADA, &line, Some(&json!({}))).expect("an answer");
        match (first, second.status) {
            // It was done, whether or not the answer arrived; or some of it was left.
            (Some(200), 409) | (None, 200 | 409) => {}
            other => panic!("{other:?}: {}", second.body),
        }
        if second.status == 409 {
            assert!(second.body.contains("the call was cancelled by ada at "), "{}", second.body);
        }
        let shown = ask(&there.address, ADA, &format!("GET {path}"), None).expect("an answer");
        let run = shown.json();
        assert_eq!(run["status"], "cancelled", "{run}");
        for (n, name) in names.iter().enumerate() {
            assert_eq!(run["results"][n]["error"]["kind"], "cancelled", "{run}");
            assert_eq!(marks(&crib, name), 0);
        }
        let third = ask(&there.address, ADA, &line, Some(&json!({}))).expect("an answer");
        assert_eq!(third.status, 409, "{}", third.body);
    }
}

#[test]
fn of_approving_denying_and_cancelling_at_two_servers_one_succeeds_and_the_others_get_409() {
    let crib = crib();
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
