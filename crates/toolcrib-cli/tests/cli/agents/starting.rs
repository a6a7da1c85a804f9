//! What runs of agents begin with over HTTP: fewer tools, tighter limits, notes.

use serde_json::{Map, Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply;

use super::harness::{KEY, served};
use super::served::{path, post, wait_for};
use super::sub_agents::offered;
use crate::harness::connection::Connection;
use crate::harness::http::Http;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_only_the_tools_it_began_with_wherever_it_goes_on() {
    let replies = [
        Reply::call("say", json!({"text": "x"})),
        Reply::call("note", json!({"text": "x"})),
        Reply::text("Not noted."),
        Reply::text("Nothing."),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    let first = Http::start(&crib, "");
    let unknown = post(&first, "/v1/runs", &json!({"input": "x", "tools": ["say", "none"]}));
    assert_eq!(unknown.0, 422, "{}", unknown.1);
    assert!(
        unknown.1["detail"].as_str().is_some_and(|text| text.contains("/tools/1")),
        "{}",
        unknown.1
    );
    let start = json!({"input": "Note x.", "tools": ["say"]});
    let (status, run) = post(&first, "/v1/runs", &start);
    assert_eq!((status, &run["status"]), (201, &json!("completed")), "{run}");
    assert_eq!(run["text"], "Not noted.", "{run}");
    drop(first);
    let second = Http::start(&crib, "");
    let again = json!({"input": "And now?"});
    assert_eq!(post(&second, &format!("{}/resume", path(&run)), &again).0, 200);
    for request in 0..model.requests().len() {
        let tools = offered(&model, request);
        assert!(tools.iter().all(|tool| tool == "say" || tool == "read_output"), "{tools:?}");
        assert!(tools.contains(&"say".to_owned()), "{tools:?}");
    }
    assert!(!crib.path().join("notes.txt").exists());
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_whose_server_was_killed_is_told_the_run_that_it_began() {
    let replies = [Reply::call("nap", json!({})), Reply::text("Awake.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let mut first = Http::start(&crib, "");
    let start = json!({"input": "Sleep."});
    let ask = |server: &Http| {
        let connection = Connection::open(&server.address, &server.token);
        connection?.ask("POST /v1/runs", &[("idempotency-key", "k")], &start)
    };
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&first));
        wait_for(&crib, "began");
        let listed = first.ask("GET /v1/runs", None).json();
        assert_eq!(listed["runs"][0]["active"], true, "{listed}");
        first.server.signal("KILL");
        assert!(asking.join().expect("a thread").is_err(), "its server has ended");
    });
    first.server.ended();
    let second = Http::start(&crib, "");
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    for _ in 0..2 {
        let lost = ask(&second).expect("an answer");
        assert_eq!((lost.status, &lost.body["kind"]), (424, &json!("outcome_unknown")), "{lost:?}");
        let run = lost.body["run"].as_str().expect("the run");
        let said = lost.body["detail"].as_str().expect("a text");
        assert!(said.contains(run), "{said}");
        let (status, run) = post(&second, &format!("/v1/runs/{run}/resume"), &json!({}));
        assert_eq!((status, &run["text"]), (200, &json!("Awake.")), "{run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_run_are_never_wider_than_those_of_its_agent() {
    let replies = [Reply::call("say", json!({"text": "x"})), Reply::text("Enough.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&config.replace("instruction:", "budget: {max_calls: 7}, instruction:"));
    let server = Http::start(&crib, "");
    let budget = json!({"max_turns": 2, "max_calls": 1_000, "max_cost": 0.5, "max_seconds": 60});
    let run = post(&server, "/v1/runs", &json!({"input": "x", "budget": budget})).1;
    assert_eq!(run["text"], "Enough.", "{run}");
    let rows = server.ask(&format!("GET {}/events?limit=1", path(&run)), None).json();
    let limits = &rows["rows"][0]["entry"]["started"]["budget"];
    assert_eq!((&limits["max_turns"], &limits["max_calls"]), (&json!(2), &json!(7)), "{limits}");
    assert_eq!(limits["max_cost"], json!(500_000_000), "{limits}");
    for wrong in [
        json!({"max_turns": 0}),
        json!({"max_turns": -1}),
        json!({"max_cost": 0}),
        json!({"max_cost": -0.5}),
        json!({"max_seconds": 0}),
        json!({"max_seconds": 10_000_000_000_u64}),
        json!({"turns": 3}),
    ] {
        let refused = post(&server, "/v1/runs", &json!({"input": "x", "budget": wrong}));
        assert_eq!(refused.0, 422, "{wrong}: {}", refused.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_about_a_run_are_kept_masked_and_shown_with_it() {
    let (model, crib) = served(Wire::Chat, [Reply::text("Hello.")]).await;
    let server = Http::start(&crib, "");
    let metadata = json!({"ticket": "T-1", "key": KEY});
    let run = post(&server, "/v1/runs", &json!({"input": "Hi.", "metadata": metadata})).1;
    assert_eq!(run["metadata"]["ticket"], "T-1", "{run}");
    let list = server.ask("GET /v1/runs", None).json();
    assert_eq!(list["runs"][0]["metadata"], run["metadata"]);
    let rows = server.ask(&format!("GET {}/events", path(&run)), None).body;
    assert!(rows.contains("T-1"), "{rows}");
    for shown in [&run.to_string(), &list.to_string(), &rows] {
        assert!(!shown.contains(KEY), "{shown}");
    }
    assert!(!model.requests()[0].text.contains("T-1"), "they are not for the model");
    let many: Map<String, Value> = (0..17).map(|number| (number.to_string(), json!("x"))).collect();
    for wrong in [
        json!(many),
        json!({"": "x"}),
        json!({"k".repeat(65): "x"}),
        json!({"k": "x".repeat(513)}),
        json!({"k": 1}),
    ] {
        let refused = post(&server, "/v1/runs", &json!({"input": "x", "metadata": wrong}));
        assert_eq!(refused.0, 422, "{wrong}: {}", refused.1);
    }
}
