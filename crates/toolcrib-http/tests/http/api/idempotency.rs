//! Repeated requests.

use std::time::Duration;

use serde_json::json;
use toolcrib_http::ServerConfig;

use crate::fixture::{client, config, start};
use crate::raw_client::Ask;

#[tokio::test]
async fn the_same_request_under_the_same_key_runs_once() {
    let server = start(ServerConfig { tokens: [client("ada", |_| {})].into(), ..config() }).await;
    let ask = Ask::api(server.address, "POST /v1/tools/count/call").with("idempotency-key", "k1");
    let first = ask.clone().send().await;
    let again = ask.clone().send().await;
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(first.json()["output"], "1");
    // Another key or another client means another request.
    let other = ask.clone().with("idempotency-key", "k2").send().await;
    assert_eq!(other.json()["output"], "2");
    assert_eq!(ask.clone().of("ada").send().await.json()["output"], "3");
    // Using one key for two requests is a mistake.
    let reused = ask.json(&json!({"arguments": {"x": 1}})).send().await;
    assert_eq!(reused.status, 422);
    assert!(reused.problem().contains("another request"));
    server.end().await;
}

#[tokio::test]
async fn requests_under_one_key_at_once_share_one_run() {
    let server = start(config()).await;
    let ask = Ask::api(server.address, "POST /v1/tools/count/call").with("idempotency-key", "k");
    let all: Vec<_> = (0..16).map(|_| tokio::spawn(ask.clone().send())).collect();
    for answer in all {
        assert_eq!(answer.await.unwrap().json()["output"], "1");
    }
    server.end().await;
}

#[tokio::test]
async fn work_under_a_key_continues_when_its_client_disconnects() {
    let server = start(config()).await;
    let calls = json!({"calls": [{"tool": "count"}, {"tool": "speak"}]});
    let ask = Ask::api(server.address, "POST /v1/batch").json(&calls).with("idempotency-key", "k");
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    ask.write(&mut stream).await;
    drop(stream);
    // Whether or not the first was answered, there is one run.
    let answer = ask.clone().send().await.json();
    assert_eq!(answer["results"][0]["output"], "1");
    assert_eq!(ask.send().await.json()["results"][0]["output"], "1");
    server.end().await;
}

#[tokio::test]
async fn a_failure_is_stored_and_a_key_that_cannot_be_stored_is_refused() {
    let server = start(config()).await;
    let ask = Ask::api(server.address, "POST /v1/tools/fail/call").with("idempotency-key", "k");
    assert_eq!(ask.clone().send().await.status, 424);
    assert_eq!(ask.send().await.header("idempotency-replayed"), Some("true"), "it ran");
    let ask = Ask::api(server.address, "POST /v1/tools/count/call");
    for key in ["", &"k".repeat(257)] {
        assert_eq!(ask.clone().with("idempotency-key", key).send().await.status, 400);
    }
    let streamed =
        ask.with("idempotency-key", "s").with("accept", "text/event-stream").send().await;
    assert_eq!(streamed.status, 400);
    server.end().await;
}

#[tokio::test]
async fn an_unknown_outcome_is_stored_and_never_repeated() {
    let server = start(config()).await;
    let ask = Ask::api(server.address, "POST /v1/tools/fail/call")
        .json(&json!({"arguments": {"lose": true}}))
        .with("idempotency-key", "k");
    let first = ask.clone().send().await;
    assert_eq!(first.status, 424);
    let problem: serde_json::Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(problem["kind"], "outcome_unknown");
    assert_eq!(problem["result"]["error"]["retryable"], false);
    assert!(first.body.contains("check before you call it again"), "{}", first.body);
    for _ in 0..2 {
        let again = ask.clone().send().await;
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!((again.status, &again.body), (first.status, &first.body));
    }
    server.end().await;
}

#[tokio::test]
async fn one_key_has_one_effect_across_calls_batches_and_runs() {
    let server = start(config()).await;
    let calls = json!({"calls": [{"tool": "count"}]});
    let call = Ask::api(server.address, "POST /v1/tools/count/call").with("idempotency-key", "k");
    assert_eq!(call.clone().send().await.json()["output"], "1");
    for line in ["POST /v1/batch", "POST /v1/runs"] {
        let ask = Ask::api(server.address, line).json(&calls).with("idempotency-key", "k");
        let refused = ask.send().await;
        assert_eq!(refused.status, 422, "{}", refused.body);
    }
    let other = call.with("idempotency-key", "other").send().await;
    assert_eq!(other.json()["output"], "2", "nothing ran in between");
    server.end().await;
}

#[tokio::test]
async fn a_repeated_decision_gets_the_first_answer() {
    let server = start(config()).await;
    let make = Ask::api(server.address, "POST /v1/tools/remove/call");
    let make = make.json(&json!({"arguments": {}}));
    let run = make.clone().send().await.json();
    let (id, waiting) = (run["id"].as_str().unwrap(), run["waiting"][0]["id"].clone());
    let decide = json!({"id": waiting, "decision": "approve"});
    let ask = Ask::api(server.address, &format!("POST /v1/runs/{id}/resolve")).json(&decide);
    let ask = ask.with("idempotency-key", "k");
    let first = ask.clone().send().await;
    assert_eq!(first.json()["status"], "completed");
    let again = ask.clone().send().await;
    assert_eq!((again.status, &again.body), (200, &first.body));
    // Without it, the second one is too late.
    let late = ask.with("idempotency-key", "k2").send().await;
    assert_eq!(late.status, 409);
    let run = make.send().await.json();
    let id = run["id"].as_str().unwrap();
    let cancel = Ask::api(server.address, &format!("POST /v1/runs/{id}/cancel"));
    let cancel = cancel.with("idempotency-key", "c");
    assert_eq!(cancel.clone().send().await.status, 200);
    assert_eq!(cancel.send().await.header("idempotency-replayed"), Some("true"));
    server.end().await;
}

#[tokio::test]
async fn a_key_is_free_again_after_a_decision_that_a_server_refused_because_it_was_shutting_down() {
    let server = start(config()).await;
    let make = Ask::api(server.address, "POST /v1/tools/remove/call");
    let run = make.json(&json!({"arguments": {}})).send().await.json();
    let (id, waiting) = (run["id"].as_str().unwrap(), run["waiting"][0]["id"].clone());
    server.executor.shutdown(Duration::ZERO).await;
    let approval = json!({"id": waiting, "decision": "approve"});
    let approval = Ask::api(server.address, &format!("POST /v1/runs/{id}/resolve")).json(&approval);
    for _ in 0..2 {
        let refused = approval.clone().with("idempotency-key", "k").send().await;
        assert_eq!((refused.status, refused.kind().as_str()), (503, "unavailable"));
        assert_eq!(refused.header("retry-after"), Some("5"));
        assert_eq!(refused.header("idempotency-replayed"), None);
    }
    server.end().await;
}

#[tokio::test]
async fn a_client_at_its_key_limit_learns_when_to_retry() {
    let tokens = [client("ada", |_| {}), client("bob", |_| {})].into();
    let server = start(ServerConfig { tokens, ..config() }).await;
    let ask = |who: &str, key: usize| {
        Ask::api(server.address, "POST /v1/tools/greet/call")
            .json(&json!({"arguments": {"name": "x"}}))
            .of(who)
            .with("idempotency-key", &format!("k{key}"))
    };
    assert_eq!(ask("bob", 0).send().await.status, 200);
    let mut refused = None;
    for key in 0..=crate::fixture::KEYS {
        let answer = ask("ada", key).send().await;
        if answer.status != 200 {
            refused = Some((key, answer));
            break;
        }
    }
    let (key, answer) = refused.expect("it has too many");
    assert_eq!((key, answer.status), (crate::fixture::KEYS, 429));
    assert!(answer.problem().contains("limits.per_client.keys"), "{}", answer.body);
    assert!(answer.header("retry-after").is_some());
    // An answered key keeps its answer, and another client is not affected.
    assert_eq!(ask("ada", 0).send().await.header("idempotency-replayed"), Some("true"));
    assert_eq!(ask("bob", 0).send().await.header("idempotency-replayed"), Some("true"));
    assert_eq!(ask("bob", 1).send().await.status, 200);
    server.end().await;
}
