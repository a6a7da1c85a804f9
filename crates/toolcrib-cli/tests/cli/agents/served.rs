//! Runs of agents over HTTP.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply as ModelReply;

use super::harness::served;
use crate::harness::crib::Crib;
use crate::harness::http::{Http, Reply, ask};

pub(super) const ADA: &str = "ada-token-for-these-tests";
pub(super) const EVE: &str = "eve-token-for-these-tests";

pub(super) fn post(server: &Http, path: &str, body: &Value) -> (u16, Value) {
    let reply = server.ask(&format!("POST {path}"), Some(body));
    (reply.status, reply.json())
}

pub(super) fn path(run: &Value) -> String {
    format!("/v1/runs/{}", run["id"].as_str().unwrap_or_else(|| panic!("a run: {run}")))
}

/// The run once it has this status.
pub(super) fn until(server: &Http, path: &str, status: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let run = server.ask(&format!("GET {path}"), None).json();
        if run["status"] == status && run["active"] == false {
            return run;
        }
        assert!(Instant::now() < deadline, "{run}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(super) fn wait_for(crib: &Crib, file: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !crib.path().join(file).exists() {
        assert!(Instant::now() < deadline, "{file}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Gives the crib's server the tokens of Ada and Eve; `HASH` stands for the hash of each.
pub(super) fn with_tokens(crib: &Crib, tokens: &str) {
    let hash = |name: &str, token: &str| {
        let output = crib.command(&["token", name, "--hash", "--json"]).write_stdin(token).output();
        let said: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("JSON");
        format!("hash: \"{}\"", said["hash"].as_str().expect("a hash"))
    };
    let tokens = [("ada", ADA), ("eve", EVE)]
        .into_iter()
        .fold(tokens.to_owned(), |tokens, (name, token)| {
            tokens.replacen("HASH", &hash(name, token), 1)
        });
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&format!("{config}server: {{tokens: {{{tokens}}}}}\n"));
}

pub(super) fn by(server: &Http, token: &str, line: &str, body: Option<&Value>) -> Reply {
    ask(&server.address, token, line, body).expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_decided_over_http_after_a_restart_and_the_run_goes_on() {
    let replies = [
        ModelReply::call("note", json!({"text": "x"})),
        ModelReply::text("It is noted."),
        ModelReply::text("Once."),
    ];
    let (model, crib) = served(Wire::Responses, replies).await;
    let first = Http::start(&crib, "");
    let (status, run) = post(&first, "/v1/runs", &json!({"input": "Note x.", "agent": "default"}));
    assert_eq!((status, &run["status"]), (201, &json!("requires_action")), "{run}");
    let (path, call) = (path(&run), run["waiting"][0].clone());
    assert_eq!((&call["tool"], &call["type"]), (&json!("note"), &json!("approval")), "{run}");
    drop(first);

    let second = Http::start(&crib, "");
    let again = second.ask(&format!("GET {path}"), None).json();
    assert_eq!(again["waiting"][0], call, "the call survives the restart");
    let (status, run) = post(&second, &format!("{path}/resume"), &json!({}));
    assert_eq!((status, &run["status"]), (200, &json!("requires_action")), "{run}");
    let approval = json!({"id": call["id"], "decision": "approve"});
    let (status, run) = post(&second, &format!("{path}/resolve"), &approval);
    assert_eq!((status, &run["status"]), (200, &json!("in_progress")), "{run}");
    let (status, run) = post(&second, &format!("{path}/resume"), &json!({}));
    assert_eq!((status, &run["text"]), (200, &json!("It is noted.")), "{run}");
    assert_eq!((&run["status"], &run["usage"]["turns"]), (&json!("completed"), &json!(2)));
    let (status, run) = post(&second, &format!("{path}/resume"), &json!({"input": "How often?"}));
    assert_eq!((status, &run["text"]), (200, &json!("Once.")), "{run}");
    assert_eq!(run["usage"]["turns"], 3, "the use of the whole run: {run}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("the note"), "x\n", "it ran once");

    let rows = second.ask(&format!("GET {path}/events?limit=2"), None).json()["rows"].clone();
    assert!(rows[0]["entry"]["started"].is_object() && rows[1]["seq"] == 2, "{rows}");
    let rest = second.ask(&format!("GET {path}/events?after=2"), None).json()["rows"].clone();
    let last = rest.as_array().and_then(|rows| rows.last()).expect("rows");
    assert_eq!((&rest[0]["seq"], &last["entry"]["finished"].is_object()), (&json!(3), &true));
    let (status, _) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!(status, 409, "it is over");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_the_background_is_paused_by_a_stop_of_the_server_and_cancelled_by_its_client() {
    let replies = [ModelReply::call("nap", json!({})), ModelReply::call("nap", json!({}))];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let mut first = Http::start(&crib, "");
    let start = json!({"input": "Sleep.", "model": "script/scripted", "background": true});
    let (status, run) = post(&first, "/v1/runs", &start);
    assert_eq!((status, &run["active"]), (201, &json!(true)), "{run}");
    let path = path(&run);
    wait_for(&crib, "began");
    let (status, _) = post(&first, &format!("{path}/resume"), &json!({"input": "Wake up."}));
    assert_eq!(status, 409, "it is worked on");
    first.server.signal("TERM");
    assert_eq!(first.server.ended(), Some(0));

    std::fs::remove_file(crib.path().join("began")).expect("the tool has begun");
    let second = Http::start(&crib, "");
    let run = until(&second, &path, "paused");
    assert_eq!(run["reason"], "the server stopped", "{run}");
    let (status, run) = post(&second, &format!("{path}/resume"), &json!({"background": true}));
    assert_eq!((status, &run["active"]), (200, &json!(true)), "{run}");
    wait_for(&crib, "began");
    let (status, run) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!((status, &run["status"]), (200, &json!("cancelled")), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_at_work_in_another_server_process_is_cancelled_over_http() {
    let (_model, crib) = served(Wire::Chat, [ModelReply::call("nap", json!({}))]).await;
    let (first, second) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let start = json!({"input": "Sleep.", "agent": "default", "background": true});
    let (status, run) = post(&first, "/v1/runs", &start);
    assert_eq!(status, 201, "{run}");
    let path = path(&run);
    wait_for(&crib, "began");
    let (status, run) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!((status, &run["status"]), (200, &json!("cancelled")), "{run}");
    assert_eq!(run["reason"], "the client cancelled the run", "{run}");
    let run = until(&first, &path, "cancelled");
    let rows = first.ask(&format!("GET {path}/events"), None).body;
    assert!(rows.contains("withdrawn"), "its call is answered: {run} {rows}");
    let (status, _) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!(status, 409, "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_agents_belong_to_their_identity_and_decisions_need_the_right() {
    let replies = [ModelReply::call("note", json!({"text": "x"}))];
    let (model, crib) = served(Wire::Anthropic, replies).await;
    with_tokens(&crib, "ada: {HASH, rights: [call]}, eve: {HASH, rights: [call, approve]}");
    let server = Http::start(&crib, "");
    let by = |token: &str, line: &str, body: Option<&Value>| by(&server, token, line, body);
    let unknown = by(ADA, "POST /v1/runs", Some(&json!({"input": "x", "agent": "nobody"})));
    assert_eq!(unknown.status, 422, "{}", unknown.body);
    let run = by(ADA, "POST /v1/runs", Some(&json!({"input": "Note x."}))).json();
    let (path, call) = (path(&run), run["waiting"][0]["id"].clone());
    for (line, body) in [
        (format!("GET {path}"), None),
        (format!("GET {path}/events"), None),
        (format!("GET {path}/items"), None),
        (format!("DELETE {path}"), None),
        (format!("POST {path}/resume"), Some(json!({"input": "Hello."}))),
        (format!("POST {path}/steer"), Some(json!({"input": "Hello."}))),
        (format!("POST {path}/cancel"), None),
        (format!("POST {path}/resolve"), Some(json!({"id": call, "decision": "approve"}))),
    ] {
        let other = by(EVE, &line, body.as_ref());
        assert_eq!(other.status, 404, "{line}: {}", other.body);
    }
    let approval = json!({"id": call, "decision": "approve"});
    let own = by(ADA, &format!("POST {path}/resolve"), Some(&approval));
    assert_eq!(own.status, 403, "{}", own.body);
    assert!(!crib.path().join("notes.txt").exists());
    assert_eq!(by(ADA, &format!("DELETE {path}"), None).status, 409);
    let ended = by(ADA, &format!("POST {path}/cancel"), None).json();
    assert_eq!(ended["status"], "cancelled", "{ended}");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_the_tools_that_are_in_its_toolset_and_in_its_clients() {
    let replies = [
        ModelReply::call("say", json!({"text": "x"})),
        ModelReply::call("note", json!({"text": "x"})),
        ModelReply::text("It is noted."),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    let config = config.replace("instruction:", "toolset: writer, instruction:");
    crib.config(&format!(
        "{config}toolsets:\n  writer: {{include: [{{names: [note, say]}}], context: {{desk: writer}}}}\n  \
         quiet: {{include: [{{names: [note, nap]}}], context: {{floor: 3}}}}\n"
    ));
    with_tokens(
        &crib,
        "ada: {HASH, rights: [call], toolset: quiet}, eve: {HASH, rights: [call, approve]}",
    );
    let server = Http::start(&crib, "");
    let run = by(&server, ADA, "POST /v1/runs", Some(&json!({"input": "Note x."}))).json();
    assert_eq!(run["status"], "requires_action", "{run}");
    let first: Value = serde_json::from_str(&model.requests()[0].text).expect("JSON");
    let offered = first["tools"].as_array().into_iter().flatten();
    let offered: Vec<_> = offered.map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(offered, ["note", "read_output"]);
    assert!(model.requests()[1].text.contains("say"), "the refused call is answered");

    let call = run["waiting"][0]["id"].as_str().expect("an id");
    let approved = by(
        &server,
        EVE,
        &format!("POST /v1/approvals/{call}"),
        Some(&json!({"decision": "approve"})),
    );
    assert_eq!(approved.status, 200, "{}", approved.body);
    let run = by(&server, ADA, &format!("POST {}/resume", path(&run)), Some(&json!({}))).json();
    assert_eq!(run["text"], "It is noted.", "{run}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("the note"), "x\n");
}
