//! Input for runs of agents over HTTP: while they work, while they wait, and after they have ended.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::{KEY, served};
use super::served::{ADA, EVE, by, path, post, until, wait_for, with_tokens};
use crate::harness::connection::Connection;
use crate::harness::http::Http;

/// The rows of a run's journal of one kind.
fn rows(server: &Http, path: &str, kind: &str) -> Vec<Value> {
    let rows = server.ask(&format!("GET {path}/events?limit=1000"), None).json()["rows"].clone();
    let rows = rows.as_array().expect("rows").iter();
    rows.filter(|row| !row["entry"][kind].is_null()).map(|row| row["entry"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_input_is_in_the_next_request_although_the_server_was_killed() {
    let replies = [Reply::call("nap", json!({})), Reply::text("Ausgeschlafen.")];
    let (model, crib) = served(Wire::Responses, replies).await;
    let first = Http::start(&crib, "");
    let start = json!({"input": "Sleep.", "background": true});
    let (status, run) = post(&first, "/v1/runs", &start);
    assert_eq!((status, &run["active"]), (201, &json!(true)), "{run}");
    let path = path(&run);
    wait_for(&crib, "began");
    let said = json!({"input": format!("In German! The key is {KEY}.")});
    let (status, run) = post(&first, &format!("{path}/steer"), &said);
    assert_eq!((status, &run["active"]), (200, &json!(true)), "{run}");
    first.server.signal("KILL");
    drop(first);

    std::fs::write(crib.path().join("awake"), "").expect("a file");
    let second = Http::start(&crib, "");
    assert_eq!(rows(&second, &path, "steered").len(), 1);
    let (status, run) = post(&second, &format!("{path}/resume"), &json!({}));
    assert_eq!((status, &run["text"]), (200, &json!("Ausgeschlafen.")), "{run}");
    let last = model.requests()[1].text.clone();
    assert!(last.contains("In German!") && !last.contains(KEY), "{last}");
    let events = second.ask(&format!("GET {path}/events?limit=1000"), None).body;
    assert!(events.contains("In German!") && !events.contains(KEY), "{events}");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_is_told_once_and_goes_on_when_it_is_resumed() {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("It is noted.")];
    let (model, crib) = served(Wire::Anthropic, replies).await;
    let server = Http::start(&crib, "");
    let run = post(&server, "/v1/runs", &json!({"input": "Note x."})).1;
    let (path, call) = (path(&run), run["waiting"][0]["id"].clone());
    for blank in [json!({"input": " \n"}), json!({"input": ""}), json!({})] {
        assert_eq!(post(&server, &format!("{path}/steer"), &blank).0, 422, "{blank}");
    }
    let steer = |key: &str, text: &str| {
        let mut connection: Connection = server.connection();
        let body = json!({"input": text});
        let reply =
            connection.ask(&format!("POST {path}/steer"), &[("idempotency-key", key)], &body);
        reply.expect("an answer")
    };
    let told = steer("one", "Then sing.");
    assert_eq!((told.status, &told.body["status"]), (200, &json!("requires_action")));
    let again = steer("one", "Then sing.");
    assert_eq!((again.status, &again.body), (200, &told.body));
    assert_eq!(steer("one", "Then dance.").status, 422, "a key belongs to one request");
    assert_eq!(rows(&server, &path, "steered").len(), 1);

    let approval = json!({"id": call, "decision": "approve"});
    assert_eq!(post(&server, &format!("{path}/resolve"), &approval).0, 200);
    let (status, run) = post(&server, &format!("{path}/resume"), &json!({}));
    assert_eq!((status, &run["text"]), (200, &json!("It is noted.")), "{run}");
    assert!(model.requests()[1].text.contains("Then sing."));
    let (status, over) = post(&server, &format!("{path}/steer"), &json!({"input": "More."}));
    assert_eq!(status, 409, "{over}");
    assert!(over["detail"].as_str().is_some_and(|text| text.contains("has ended")), "{over}");
    assert_eq!(
        post(&server, "/v1/runs/0123456789abcdef0123456789abcdef/steer", &json!({"input": "x"})).0,
        404
    );
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_the_end_of_a_run_at_the_same_moment_lose_nothing() {
    let replies = (0..40).map(|number| Reply::text(format!("Answer {number}.")));
    let (model, crib) = served(Wire::Chat, replies).await;
    let server = Http::start(&crib, "");
    let start = json!({"input": "Begin.", "background": true});
    let path = path(&post(&server, "/v1/runs", &start).1);
    let (mut stored, mut refused) = (Vec::new(), Vec::new());
    for number in 0..8 {
        let said = format!("Sing number {number}.");
        let (status, run) = post(&server, &format!("{path}/steer"), &json!({"input": said}));
        match status {
            200 => stored.push(said),
            status => {
                assert_eq!(status, 409, "{run}");
                refused.push(said);
            }
        }
        until(&server, &path, "completed");
        let more = json!({"input": "Go on.", "background": true});
        assert_eq!(post(&server, &format!("{path}/resume"), &more).0, 200);
    }
    let run = until(&server, &path, "completed");
    assert_eq!(rows(&server, &path, "steered").len(), stored.len(), "{run}");
    let last = model.requests().pop().expect("requests").text;
    assert!(stored.iter().all(|said| last.contains(said)), "{stored:?}: {last}");
    assert!(!refused.iter().any(|said| last.contains(said)), "{refused:?}: {last}");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_tells_a_run_at_work_nothing_that_it_may_not_do_itself() {
    let replies = [Reply::call("nap", json!({})), Reply::text("Well slept.")];
    let (model, crib) = served(Wire::Responses, replies).await;
    with_tokens(
        &crib,
        "ada: {HASH, rights: [call]}, \
         eve: {HASH, rights: [call], context: {user: ada}, policy: {rules: [{tool: note, action: deny}]}}",
    );
    let (first, second) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let start = json!({"input": "Sleep.", "background": true});
    let run = by(&first, ADA, "POST /v1/runs", Some(&start)).json();
    let steer = format!("POST {}/steer", path(&run));
    wait_for(&crib, "began");
    let input = json!({"input": "Note x."});
    for server in [&first, &second] {
        let refused = by(server, EVE, &steer, Some(&input));
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("may do there what this client may not"), "{}", refused.body);
    }
    for server in [&first, &second] {
        let told = by(server, ADA, &steer, Some(&json!({"input": "Sleep well."})));
        assert_eq!(told.status, 200, "{}", told.body);
    }
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    let shown = format!("GET {}", path(&run));
    let is_over = |_: &usize| by(&first, ADA, &shown, None).json()["status"] == "completed";
    let pause = || std::thread::sleep(std::time::Duration::from_millis(50));
    assert!((0..400).inspect(|_| pause()).any(|tried| is_over(&tried)), "it ends");
    let asked = &model.requests()[1].text;
    assert!(asked.contains("Sleep well.") && !asked.contains("Note x."), "{asked}");
}
