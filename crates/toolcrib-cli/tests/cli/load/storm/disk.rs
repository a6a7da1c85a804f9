//! The disk of the state folder and the audit log is full for a while.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Ledger, Listening, Told, body, crib, figure, told, until};
use crate::harness::connection::Reply;
use crate::harness::crib::Crib;
use crate::harness::server::command;

/// The small file system is mounted in the server's own namespace.
const MOUNT: [&str; 6] =
    ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=16m tmpfs small && exec \"$@\"", "sh"];

fn can_mount() -> bool {
    let mut try_it = command(MOUNT[0]);
    try_it.args(["-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt"]);
    try_it.status().is_ok_and(|status| status.success())
}

/// Lets the crib keep its state on the small file system, and gives it a provider of models that nobody can reach.
fn on_the_small_disk(crib: &Crib) {
    let config = fs::read_to_string(crib.path().join("config.yml")).expect("it is there");
    let config = config
        .replace("dir: state", "dir: small/state")
        .replace("audit.jsonl", "small/audit.jsonl");
    let config = format!(
        "{config}providers: {{none: {{kind: chat, base_url: \"http://127.0.0.1:9/v1\", models: {{m: {{}}}}}}}}\n"
    );
    crib.config(&config);
    fs::create_dir(crib.path().join("small")).expect("a folder");
}

/// Begins a run of an agent and cancels it. Returns its path.
fn cancelled_run(ask: &mut impl FnMut(&str, &str, &Value) -> Reply) -> String {
    let run = ask("POST /v1/runs", "", &json!({"input": "x", "background": true}));
    let run = format!("POST /v1/runs/{}", run.body["id"].as_str().expect("a run"));
    let cancelled = ask(&format!("{run}/cancel"), "", &json!({}));
    assert_eq!(cancelled.body["status"], "cancelled", "{cancelled:?}");
    run
}

/// Neither a run nor a step of one can be stored, and the client is told to come back.
fn is_turned_away(run: &str, ask: &mut impl FnMut(&str, &str, &Value) -> Reply) {
    for line in ["POST /v1/runs", &format!("{run}/steer"), &format!("{run}/resume")] {
        let refused = ask(line, "", &json!({"input": "y"}));
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (503, Some("2")),
            "{refused:?}"
        );
    }
}

/// What was refused is done.
fn goes_on(run: &str, ask: &mut impl FnMut(&str, &str, &Value) -> Reply) {
    let resumed = ask(&format!("{run}/resume"), "", &json!({"input": "y", "background": true}));
    assert_eq!(resumed.status, 200, "{resumed:?}");
    assert_eq!(ask(&format!("{run}/cancel"), "", &json!({})).status, 200);
}

#[test]
fn with_a_full_disk_every_call_is_answered_and_with_room_again_everything_is_kept() {
    if !can_mount() {
        println!("storm disk: skipped: this machine mounts no file system for a test");
        return;
    }
    let calls = figure(12, 60);
    let crib = crib("");
    on_the_small_disk(&crib);
    let mut server = Listening::start_by(&crib, &MOUNT);
    let inside = |name: &str| {
        let root = PathBuf::from(format!("/proc/{}/root", server.server.id()));
        root.join(crib.path().strip_prefix("/").expect("absolute")).join("small").join(name)
    };
    let ledger = Ledger::default();
    let mut connection = server.connection();
    let mut ask = |line: &str, key: &str, body: &Value| {
        let headers = [("idempotency-key", key)];
        connection.ask(line, if key.is_empty() { &[] } else { &headers }, body).expect("an answer")
    };
    let first = ask("POST /v1/tools/mark/call", "first", &body("first"));
    ledger.enter("first", told("first", &first));
    let run = ask("POST /v1/runs", "", &json!({"calls": [{"tool": "pick", "call_id": "p"}]}));
    assert_eq!(run.status, 201, "{run:?}");
    let agents = cancelled_run(&mut ask);
    let audit = inside("audit.jsonl");
    until("the record is written", Duration::from_secs(10), || {
        fs::metadata(&audit).is_ok_and(|file| file.len() > 0)
    });

    let mut filler = File::create(inside("filler")).expect("there is room");
    while filler.write_all(&[0; 16384]).is_ok() {}
    while filler.write_all(&[0]).is_ok() {}
    drop(filler);
    let mut turned_away = 0;
    for call in 0..calls {
        let id = format!("full-{call}");
        let tool = if call.is_multiple_of(2) { "mark" } else { "note" };
        let line = format!("POST /v1/tools/{tool}/call");
        let reply = ask(&line, "", &body(&id));
        ledger.enter(&id, told(&id, &reply));

        // With a key, nothing runs whose answer could not be stored.
        let id = format!("key-{call}");
        let reply = ask(&line, &id, &body(&id));
        match reply.status {
            200 | 424 => ledger.enter(&id, told(&id, &reply)),
            503 => {
                assert_eq!(reply.header("retry-after"), Some("2"), "{reply:?}");
                turned_away += 1;
                ledger.enter(&id, Ok(Told::Refused));
            }
            _ => ledger.enter(&id, Err(format!("{id}: {reply:?}"))),
        }
        let id = format!("sign-{call}");
        let reply = ask("POST /v1/tools/sign/call", "", &body(&id));
        let is_told = matches!(reply.status, 202 | 503);
        ledger
            .enter(&id, if is_told { Ok(Told::Refused) } else { Err(format!("{id}: {reply:?}")) });
    }
    assert!(turned_away > 0, "the disk was never full");
    is_turned_away(&agents, &mut ask);
    let lost = ask("GET /health", "", &Value::Null).body["audit_lost"].as_u64();
    assert!(lost.is_some_and(|lost| lost > 0), "what was not audited is counted: {lost:?}");

    fs::remove_file(inside("filler")).expect("it is there");
    for call in 0..calls {
        let id = format!("room-{call}");
        let reply = ask("POST /v1/tools/mark/call", &id, &body(&id));
        ledger.enter(&id, told(&id, &reply));
        // It was refused before, so it runs now.
        let id = format!("key-{call}");
        let again =
            ask("POST /v1/tools/note/call", &format!("again-{id}"), &body(&format!("again-{id}")));
        ledger.enter(&format!("again-{id}"), told(&format!("again-{id}"), &again));
    }
    goes_on(&agents, &mut ask);
    let again = ask("POST /v1/tools/mark/call", "first", &body("first"));
    assert_eq!((again.status, again.header("idempotency-replayed")), (200, Some("true")));
    let waits = ask("POST /v1/tools/sign/call", "", &body("late"));
    assert_eq!(waits.status, 202, "{waits:?}");
    let id = waits.body["waiting"][0]["id"].as_str().expect("an id").to_owned();
    let signed = ask(&format!("POST /v1/approvals/{id}"), "", &json!({"decision": "approve"}));
    let is_done = signed.body["outcome"]["status"] == "succeeded";
    ledger.enter("late", if is_done { Ok(Told::Done) } else { Err(format!("{signed:?}")) });
    let run = run.body["id"].as_str().expect("an id").to_owned();
    let outputs = json!({"tool_outputs": [{"tool_call_id": "p", "output": "a.txt"}]});
    let over = ask(&format!("POST /v1/runs/{run}/submit_tool_outputs"), "", &outputs);
    assert_eq!((over.status, &over.body["status"]), (200, &json!("completed")), "{over:?}");
    ledger.right();

    // A record may be incomplete where the disk was full; all others are complete, and the current
    // ones exist.
    until("the last record is written", Duration::from_secs(10), || {
        fs::read_to_string(&audit)
            .is_ok_and(|text| text.contains("\"late\"") || text.contains("room-"))
    });
    let text = fs::read_to_string(&audit).expect("it is there");
    let torn = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
    assert!(torn <= 1, "{torn} torn lines");
    drop(connection);
    server.server.signal("TERM");
    assert_eq!(server.server.ended(), Some(0));
    println!(
        "storm disk: {turned_away} of {calls} keys turned away, {lost:?} records counted as lost, {torn} torn"
    );
    let sum = ledger.close("disk", &crib);
    assert!(sum.done > calls, "{sum}");
}
