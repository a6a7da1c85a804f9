//! Requests that are sent again.

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
    // Another key, another client: other work.
    let other = ask.clone().with("idempotency-key", "k2").send().await;
    assert_eq!(other.json()["output"], "2");
    assert_eq!(ask.clone().of("ada").send().await.json()["output"], "3");
    // One key for two things is a mistake.
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
async fn work_under_a_key_goes_on_when_its_client_leaves() {
    let server = start(config()).await;
    let calls = json!({"calls": [{"tool": "count"}, {"tool": "speak"}]});
    let ask = Ask::api(server.address, "POST /v1/batch").json(&calls).with("idempotency-key", "k");
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    ask.write(&mut stream).await;
    drop(stream);
    // Whether or not the first was heard, there is one run.
    let answer = ask.clone().send().await.json();
    assert_eq!(answer["results"][0]["output"], "1");
    assert_eq!(ask.send().await.json()["results"][0]["output"], "1");
    server.end().await;
}

#[tokio::test]
async fn a_failure_is_kept_too_and_a_key_that_cannot_be_kept_is_refused() {
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
