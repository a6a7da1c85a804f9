//! What a client sends is repeated to nobody if it holds a secret. The token of the server is one.

use serde_json::json;

use crate::fixture::{TOKEN, config, start};
use crate::raw_client::Ask;

#[tokio::test]
async fn problems_and_request_ids_repeat_no_secret() {
    let server = start(config()).await;
    let ask = |line: String| Ask::api(server.address, &line);
    let unknown = ask(format!("POST /v1/tools/{TOKEN}/call"));
    for refused in [
        ask(format!("GET /v1/tools/{TOKEN}")).send().await,
        unknown.clone().with("x-request-id", TOKEN).send().await,
        unknown.with("idempotency-key", "a").send().await,
        ask(format!("POST /v1/tools/{TOKEN}/reset")).send().await,
        ask(format!("GET /v1/search?{TOKEN}=1")).send().await,
        ask("POST /v1/batch".to_owned()).json(&json!({TOKEN: TOKEN})).send().await,
        ask("POST /v1/tools/greet/call".to_owned())
            .json(&json!({"arguments": {"name": {TOKEN: TOKEN}}}))
            .send()
            .await,
    ] {
        assert!(refused.status >= 400, "{refused:?}");
        assert!(!format!("{refused:?}").contains(TOKEN), "{refused:?}");
    }
    server.end().await;
}

#[tokio::test]
async fn the_message_of_a_denial_shows_no_secret_in_an_answer_or_in_the_audit_log() {
    let server = start(config()).await;
    let waiting = async || {
        let call = Ask::api(server.address, "POST /v1/tools/remove/call");
        let run = call.json(&json!({"arguments": {"path": "a"}})).send().await.json();
        format!("POST /v1/approvals/{}", run["waiting"][0]["id"].as_str().unwrap())
    };
    let decide = async |line: &str, decision| {
        let answer = Ask::api(server.address, line).json(&decision).send().await;
        assert!(!format!("{answer:?}").contains(TOKEN), "{answer:?}");
        answer.status
    };
    let line = waiting().await;
    assert_eq!(decide(&line, json!({"decision": TOKEN})).await, 422);
    assert_eq!(decide(&line, json!({"decision": "deny", "message": TOKEN})).await, 200);
    let audit = Ask::api(server.address, "GET /v1/audit").send().await;
    assert!(audit.body.contains("[masked]") && !audit.body.contains(TOKEN), "{}", audit.body);
    server.end().await;
}
