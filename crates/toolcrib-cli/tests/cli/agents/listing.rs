//! Runs of agents in lists, and their removal.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::served;
use super::served::{ADA, EVE, by, path, post, until, wait_for, with_tokens};
use crate::harness::http::Http;

fn ids(list: &Value) -> Vec<&str> {
    let runs = list["runs"].as_array().expect("runs").iter();
    runs.map(|run| run["id"].as_str().expect("an id")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_runs_of_agents_and_of_calls_in_pages_and_by_state() {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("Done.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let server = Http::start(&crib, "");
    let calls = json!({"calls": [{"tool": "say", "arguments": {"text": "x"}}]});
    let first = post(&server, "/v1/runs", &calls).1;
    let waits = post(&server, "/v1/runs", &json!({"input": "Note x."})).1;
    let last = post(&server, "/v1/runs", &calls).1;
    let all = [&first, &waits, &last].map(|run| run["id"].as_str().expect("an id"));
    let listed = |query: &str| server.ask(&format!("GET /v1/runs{query}"), None).json();
    assert_eq!(ids(&listed("")), all);
    assert_eq!(listed("")["runs"][1], waits, "it is shown as alone");
    let page = listed("?limit=2");
    assert_eq!(ids(&page), all[..2]);
    let next = page["next"].as_str().expect("a next page");
    let page = listed(&format!("?limit=2&after={next}"));
    assert_eq!((ids(&page), &page["next"]), (all[2..].to_vec(), &Value::Null));
    assert_eq!(ids(&listed("?status=requires_action")), [all[1]]);
    assert_eq!(ids(&listed("?status=completed")), [all[0], all[2]]);
    assert_eq!(ids(&listed("?status=paused")), [""; 0]);
    assert_eq!(server.ask("GET /v1/runs?status=done", None).status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_can_be_deleted_by_its_identity_when_it_has_ended() {
    let replies = [Reply::call("note", json!({"text": "x"}))];
    let (_model, crib) = served(Wire::Anthropic, replies).await;
    with_tokens(
        &crib,
        "ada: {HASH, rights: [call]}, eve: {HASH, rights: [call, approve, operate]}",
    );
    let server = Http::start(&crib, "");
    let by = |token: &str, line: &str, body: Option<&Value>| by(&server, token, line, body);
    let path = path(&by(ADA, "POST /v1/runs", Some(&json!({"input": "Note x."}))).json());
    let delete = format!("DELETE {path}");
    let refused = by(ADA, &delete, None);
    assert_eq!(refused.status, 409, "its call waits: {}", refused.body);
    assert!(refused.body.contains("cancel it first"), "{}", refused.body);
    assert_eq!(by(EVE, &delete, None).status, 404, "it is another's");
    assert_eq!(by(ADA, &format!("POST {path}/cancel"), None).status, 200);
    assert_eq!(by(EVE, &delete, None).status, 404);
    let removed = by(ADA, &delete, None);
    assert_eq!((removed.status, &removed.json()["status"]), (200, &json!("cancelled")));
    for line in
        [format!("GET {path}"), format!("GET {path}/events"), format!("GET {path}/items"), delete]
    {
        assert_eq!(by(ADA, &line, None).status, 404, "{line}");
    }
    assert_eq!(by(ADA, "GET /v1/runs", None).json()["runs"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_left_by_a_killed_server_is_listed_and_cannot_be_deleted_before_it_ends() {
    let (_model, crib) = served(Wire::Chat, [Reply::call("nap", json!({}))]).await;
    let first = Http::start(&crib, "");
    let start = json!({"input": "Sleep.", "background": true});
    let path = path(&post(&first, "/v1/runs", &start).1);
    wait_for(&crib, "began");
    first.server.signal("KILL");
    drop(first);
    let second = Http::start(&crib, "");
    let list = second.ask("GET /v1/runs?status=in_progress", None).json();
    assert_eq!((ids(&list).len(), &list["runs"][0]["active"]), (1, &json!(false)), "{list}");
    assert_eq!(second.ask(&format!("DELETE {path}"), None).status, 409);
    assert_eq!(post(&second, &format!("{path}/cancel"), &json!({})).0, 200);
    until(&second, &path, "cancelled");
    assert_eq!(second.ask(&format!("DELETE {path}"), None).status, 200);
}
