//! `toolcrib approvals`: a person decides on waiting calls of a running server.

use serde_json::{Value, json};
use toolcrib::tool::exact;

use crate::harness::crib::Crib;
use crate::harness::http::{Http, ask};

const TOOLS: &str = "
toolcrib: 1
tools:
  - name: remove
    description: Remove a file.
    approval: always
    input: {properties: {path: {type: string}}, required: [path]}
    run: {argv: [echo, removed, '${args.path}']}
  - name: truncate
    description: Make a file shorter.
    approval: always
    input: {properties: {size: {type: integer}}, required: [size]}
    run: {argv: [echo, bytes, '${args.size}']}
";

const ADA: &str = "ada-token-for-these-tests";

/// A server whose client `ada` may call but not approve.
fn serve() -> (Crib, Http) {
    let crib = Crib::new(&[("remove.yaml", TOOLS)]);
    let output = crib.command(&["token", "ada", "--hash", "--json"]).write_stdin(ADA).output();
    let said: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("JSON");
    let hash = said["hash"].as_str().expect("a hash");
    crib.config(&format!(
        "state: {{dir: state}}\naudit: {{file: audit.jsonl}}\nserver: {{tokens: {{ada: {{hash: \"{hash}\"}}}}}}\n"
    ));
    let http = Http::start(&crib, ADA);
    (crib, http)
}

/// Makes a call that waits; returns the address of its run.
fn wait(http: &Http, path: &str) -> String {
    let body = json!({"calls": [{"tool": "remove", "arguments": {"path": path}}]});
    let run = http.ask("POST /v1/runs", Some(&body));
    assert_eq!(run.status, 201, "{}", run.body);
    format!("GET /v1/runs/{}", run.json()["id"].as_str().expect("an id"))
}

/// The ids of the calls that wait.
fn waiting(crib: &Crib) -> Vec<String> {
    let run = crib.run(&["approvals", "--json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = run.json();
    let ids = said["approvals"].as_array().expect("a list").iter();
    ids.map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

/// The run, when none of its calls waits or runs any more.
#[track_caller]
fn ended(http: &Http, run: &str) -> String {
    for _ in 0..400 {
        let answer = ask(&http.address, ADA, run, None).expect("an answer");
        if answer.json()["status"] != "requires_action" && answer.json()["waiting"] != json!([{}]) {
            return answer.body;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the run does not end")
}

#[test]
fn an_approver_over_http_is_shown_the_arguments_and_decides_on_calls_of_others() {
    let (crib, http) = serve();
    drop(http);
    let operator = "the-operators-token-is-kept-here";
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("it is there");
    crib.config(&config.replace("server: {", &format!("server: {{token: {operator}, ")));
    let http = Http::start(&crib, ADA);
    let run = wait(&http, "a.txt");
    let own = ask(&http.address, ADA, &run, None).expect("an answer").json();
    assert_eq!(own["waiting"][0]["arguments"], json!({"path": "a.txt"}), "{own}");
    let approve = |line: &str, body: Option<&Value>| {
        ask(&http.address, operator, line, body).expect("an answer")
    };
    let listed = approve("GET /v1/approvals", None);
    assert_eq!(listed.status, 200, "{}", listed.body);
    let waiting = &listed.json()["approvals"][0];
    assert_eq!(waiting["arguments"], json!({"path": "a.txt"}), "{waiting}");
    let line = format!("POST /v1/approvals/{}", waiting["id"].as_str().expect("an id"));
    let decided = approve(&line, Some(&json!({"decision": "approve"})));
    assert_eq!(decided.status, 200, "{}", decided.body);
    let answer = ended(&http, &run);
    assert!(answer.contains("removed a.txt"), "{answer}");
}

#[test]
fn a_waiting_call_of_another_is_listed_shown_and_approved() {
    let (crib, http) = serve();
    let empty = crib.run(&["approvals"]);
    assert_eq!(empty.code, Some(0));
    assert!(empty.stderr.contains("no call waits for approval"), "{empty:?}");
    let run = wait(&http, "a.txt");
    let ids = waiting(&crib);
    assert_eq!(ids.len(), 1);
    let listed = crib.run(&["approvals", "list"]);
    assert!(listed.stdout.contains("remove") && listed.stdout.contains("user ada"), "{listed:?}");
    let shown = crib.run(&["approvals", "show", &ids[0]]);
    assert!(shown.stdout.contains("\"path\": \"a.txt\""), "{shown:?}");
    let approved = crib.run(&["approvals", "approve", &ids[0]]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(approved.stdout.contains("approved"), "{approved:?}");
    let answer = ended(&http, &run);
    assert!(answer.contains("removed a.txt"), "{answer}");
    assert!(waiting(&crib).is_empty());
    // A second decision is too late.
    let again = crib.run(&["approvals", "approve", &ids[0]]);
    assert_eq!(again.code, Some(1), "{again:?}");
}

#[test]
fn a_waiting_call_can_be_denied_with_a_message_or_approved_with_changed_arguments() {
    let (crib, http) = serve();
    let denied = wait(&http, "a.txt");
    let ids = waiting(&crib);
    let run = crib.run(&["approvals", "deny", &ids[0], "--message", "keep it"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(ended(&http, &denied).contains("keep it"));
    let changed = wait(&http, "b.txt");
    let ids = waiting(&crib);
    let wrong = crib.run(&["approvals", "approve", &ids[0], "--arguments", r#"{"file": "x"}"#]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let run = crib.run(&["approvals", "approve", &ids[0], "--arguments", r#"{"path": "c.txt"}"#]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(ended(&http, &changed).contains("removed c.txt"));
}

#[test]
fn large_numbers_are_shown_and_approved_as_they_were_written() {
    let (crib, http) = serve();
    let large = r#"{"size": 12345678901234567890123}"#;
    let arguments: Value = serde_json::from_str(&exact::protect(large)).expect("JSON");
    let body = json!({"calls": [{"tool": "truncate", "arguments": arguments}]});
    let run = http.ask("POST /v1/runs", Some(&body));
    assert_eq!(run.status, 201, "{}", run.body);
    let run = format!("GET /v1/runs/{}", run.json()["id"].as_str().expect("an id"));
    let ids = waiting(&crib);
    for command in [&["approvals"][..], &["approvals", "--json"], &["approvals", "show", &ids[0]]] {
        let shown = crib.run(command);
        assert!(shown.stdout.contains("12345678901234567890123"), "{shown:?}");
    }
    let arguments = r#"{"size": 98765432109876543210987}"#;
    let approved = crib.run(&["approvals", "approve", &ids[0], "--arguments", arguments]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let ended = ended(&http, &run);
    assert!(ended.contains("bytes 98765432109876543210987"), "{ended}");
}

#[test]
fn undecidable_calls_are_reported_with_hints() {
    let crib = Crib::new(&[("remove.yaml", TOOLS)]);
    crib.config("state: {dir: state}\n");
    let none = crib.run(&["approvals"]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("no server runs") && none.stderr.contains("toolcrib serve"),
        "{none:?}"
    );
    let text = crib.run(&["approvals", "approve", "x", "--arguments", "[]"]);
    assert_eq!(text.code, Some(2));
    drop(crib);
    let (crib, _http) = serve();
    let unknown = crib.run(&["approvals", "deny", "0123456789abcdef"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no call with the id"), "{unknown:?}");
}

#[test]
fn approval_errors_are_json_if_requested() {
    let (crib, http) = serve();
    let unknown = crib.run(&["approvals", "show", &"0".repeat(32), "--json"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert_eq!(unknown.json()["error"]["kind"], "not_found");
    let before = crib.run(&["approvals", "--json", "show", &"0".repeat(32)]);
    assert_eq!(before.json(), unknown.json(), "`--json` holds wherever it stands");
    assert_eq!(crib.run(&["approvals", "--json", "list"]).json()["approvals"], json!([]));
    let short = crib.run(&["approvals", "approve", "0", "--json"]);
    assert_eq!(short.json()["error"]["kind"], "too_short");
    wait(&http, "a.txt");
    let id = waiting(&crib).remove(0);
    assert_eq!(crib.run(&["approvals", "deny", &id]).code, Some(0));
    for command in ["show", "approve"] {
        let late = crib.run(&["approvals", command, &id, "--json"]);
        assert_eq!(late.code, Some(1), "{late:?}");
        let error = &late.json()["error"];
        assert_eq!(error["kind"], "already_resolved", "{late:?}");
        let said = error["message"].as_str().expect("a text");
        assert!(said.contains("was denied by owner"), "{said}");
    }
}

#[test]
fn an_approved_call_that_is_refused_exits_with_1_and_the_reason() {
    let (crib, http) = serve();
    let run = wait(&http, "a.txt");
    let ids = waiting(&crib);
    // The rules have changed since the call was made.
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&format!("{config}policy: {{rules: [{{tool: remove, action: deny}}]}}\n"));
    let reload = crib.run(&["reload"]);
    assert_eq!(reload.code, Some(0), "{reload:?}");
    let approved = crib.run(&["approvals", "approve", &ids[0]]);
    assert_eq!(approved.code, Some(1), "{approved:?}");
    assert!(approved.stdout.contains("approved"), "{approved:?}");
    assert!(approved.stdout.contains(", but the call was refused: "), "{approved:?}");
    assert!(approved.stdout.contains("(denied)"), "{approved:?}");
    assert!(!ended(&http, &run).contains("removed a.txt"));
    let audit = std::fs::read_to_string(crib.path().join("audit.jsonl")).expect("an audit log");
    let record: Value = serde_json::from_str(audit.lines().last().expect("a line")).expect("JSON");
    assert_eq!(record["outcome"], "denied", "{record}");
    assert_eq!(record["decision"]["by"], "owner", "who approved it is known: {record}");
    assert!(record["decision"]["shown"].is_string(), "{record}");
}

#[test]
fn the_outcome_of_an_approved_call_is_in_the_json_too() {
    let (crib, http) = serve();
    wait(&http, "a.txt");
    let ids = waiting(&crib);
    let approved = crib.run(&["approvals", "approve", &ids[0], "--json"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let said = approved.json();
    assert_eq!(
        (&said["decision"], &said["outcome"]["status"]),
        (&json!("approve"), &json!("succeeded"))
    );
}

#[test]
fn an_id_may_be_given_by_a_unique_beginning_and_an_ambiguous_one_lists_the_ids() {
    let (crib, http) = serve();
    // Two of 17 ids start with the same digit.
    for number in 0..17 {
        wait(&http, &format!("{number}.txt"));
    }
    let ids = waiting(&crib);
    let of = |digit: &str| ids.iter().filter(|id| id.starts_with(digit)).collect::<Vec<_>>();
    let shared = ids.iter().map(|id| of(&id[..1])).find(|same| same.len() > 1).expect("two");
    let short = crib.run(&["approvals", "approve", &shared[0][..11]]);
    assert_eq!(short.code, Some(1), "{short:?}");
    assert!(short.stderr.contains("at least 12 characters"), "{short:?}");
    let ambiguous = crib.run(&["approvals", "show", &shared[0][..1]]);
    assert_eq!(ambiguous.code, Some(1), "{ambiguous:?}");
    assert!(shared.iter().all(|id| ambiguous.stderr.contains(*id)), "{ambiguous:?}");
    assert_eq!(waiting(&crib).len(), 17, "nothing was decided");
    let shown = crib.run(&["approvals", "show", &ids[0][..12]]);
    assert!(shown.stdout.contains(&ids[0]), "{shown:?}");
    let approved = crib.run(&["approvals", "approve", &ids[0][..12]]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(approved.stdout.contains(&ids[0]), "{approved:?}");
    assert_eq!(waiting(&crib).len(), 16);
}

#[test]
fn a_call_whose_tool_has_changed_is_marked() {
    let (crib, http) = serve();
    wait(&http, "a.txt");
    let obstacle = || crib.run(&["approvals", "--json"]).json()["approvals"][0]["obstacle"].clone();
    assert_eq!(obstacle(), Value::Null);
    for (tools, says) in [
        (TOOLS.replace("Remove a file.", "Remove any file."), "the tool changed"),
        (TOOLS.replace("name: remove", "name: erase"), "the tool is gone"),
    ] {
        crib.write("remove.yaml", &tools);
        let reload = crib.run(&["reload"]);
        assert_eq!(reload.code, Some(0), "{reload:?}");
        let told = obstacle();
        assert!(told.as_str().is_some_and(|told| told.contains(says)), "{told}");
        let listed = crib.run(&["approvals"]);
        let told = format!("would be refused even if it were approved: {says}");
        assert!(listed.stderr.contains(&told), "{listed:?}");
    }
}

#[test]
fn servers_with_a_shared_state_folder_list_a_call_once() {
    let (crib, http) = serve();
    let _second = Http::start(&crib, ADA);
    wait(&http, "a.txt");
    let run = crib.run(&["approvals", "--json"]);
    let said = run.json();
    assert_eq!(said["servers"].as_array().map(Vec::len), Some(2), "{run:?}");
    assert_eq!(said["approvals"].as_array().map(Vec::len), Some(1), "{run:?}");
}

#[test]
fn an_approver_on_the_command_line_is_shown_long_arguments_in_whole() {
    let (crib, http) = serve();
    let path = format!("{}; rm -rf /srv", "a".repeat(9_500));
    wait(&http, &path);
    let ids = waiting(&crib);
    let shown = crib.run(&["approvals", "show", &ids[0]]);
    assert!(shown.stdout.contains(&path), "{} characters", shown.stdout.len());
}

#[test]
fn a_file_that_changed_since_the_call_was_made_is_not_run_by_its_approval() {
    for (run, file) in [
        ("{worker: [sh, ./work.sh]}", "tools.d/work.sh"),
        ("{script: ./work.sh}", "tools.d/work.sh"),
        // In the working directory of the program.
        ("{argv: [sh, ./work.sh]}", "work.sh"),
    ] {
        let (crib, http) = serve();
        let path = crib.path().join(file);
        let script =
            |mark: &str| format!("#!/bin/sh\nread -r line\necho '{{\"output\": \"{mark}\"}}'\n");
        std::fs::write(&path, script("first")).expect("a script");
        crib.write(
            "work.yaml",
            &format!(
                "toolcrib: 1\ntools:\n  - name: work\n    description: Do the work.\n    approval: \
                 always\n    run: {run}\n"
            ),
        );
        let reload = crib.run(&["reload"]);
        assert_eq!(reload.code, Some(0), "{reload:?}");
        let body = json!({"calls": [{"tool": "work", "arguments": {}}]});
        let made = http.ask("POST /v1/runs", Some(&body));
        assert_eq!(made.status, 201, "{}", made.body);
        let ids = waiting(&crib);
        std::fs::write(&path, script("second")).expect("a script");
        let approved = crib.run(&["approvals", "approve", &ids[0]]);
        assert_eq!(approved.code, Some(1), "{run}: {approved:?}");
        let says = "but the call was refused: the tool changed since the call was made";
        assert!(approved.stdout.contains(says), "{run}: {approved:?}");
    }
}

#[test]
fn a_value_that_has_become_a_secret_while_its_call_waits_is_masked() {
    let (crib, http) = serve();
    drop(http);
    let file = crib.path().join("key.txt");
    std::fs::write(&file, "an-early-secret-1").expect("written");
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("it is there");
    crib.config(&format!("{config}secrets: {{key: {{file: key.txt}}}}\n"));
    let http = Http::start(&crib, ADA);
    let late = "a-later-secret-22";
    let run = wait(&http, late);
    let ids = waiting(&crib);
    assert!(crib.run(&["approvals", "show", &ids[0]]).stdout.contains(late), "no secret yet");
    std::fs::write(&file, late).expect("written");
    let reload = crib.run(&["reload"]);
    assert_eq!(reload.code, Some(0), "{reload:?}");
    for arguments in [&["approvals", "show", &ids[0]][..], &["approvals"], &["approvals", "--json"]]
    {
        let shown = crib.run(arguments);
        assert!(!shown.stdout.contains(late) && shown.stdout.contains("remove"), "{shown:?}");
    }
    for line in [run.as_str(), "GET /v1/runs"] {
        let answer = http.ask(line, None);
        assert!(!answer.body.contains(late) && answer.body.contains("remove"), "{}", answer.body);
    }
}
