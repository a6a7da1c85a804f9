//! Questions of tools, which the client that made the call answers over HTTP.

use serde_json::{Value, json};
use toolcrib_http::{Right, ServerConfig};
use toolcrib_tool::{
    CallContext, InputRequest, Layer, Source, ToolDefinition, ToolEntry, ToolError, ToolOutcome,
    tool_fn,
};

use crate::fixture::{client, config, start_with};
use crate::raw_client::Ask;

fn id_of(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

/// A tool that asks for a seat.
fn booking() -> ToolEntry {
    let body = tool_fn(|_: Value, cx: CallContext| async move {
        let schema = json!({
            "type": "object", "properties": {"seat": {"type": "integer"}}, "required": ["seat"],
        });
        Ok::<_, ToolError>(match cx.answer() {
            Some(answer) => ToolOutcome::Done(format!("booked {answer}").into()),
            None => ToolOutcome::needs_input(InputRequest::new("Which seat?", schema)),
        })
    });
    let definition = ToolDefinition::builder("book").description("Book a seat.");
    let source = Source::new(Layer::Host, "test");
    ToolEntry::new(definition.build().unwrap(), std::sync::Arc::new(body), source)
}

#[tokio::test]
async fn a_caller_answers_the_questions_of_its_own_tools_and_decides_on_nothing() {
    let with = |rights: &[Right], user: &str| {
        let (rights, user) = (rights.to_vec(), json!(user));
        move |client: &mut toolcrib_http::ClientConfig| {
            client.rights = rights;
            client.context = [("user".to_owned(), user)].into();
        }
    };
    let tokens = [
        client("agent", with(&[Right::Call], "ada")),
        client("watcher", with(&[Right::Observe], "ada")),
        client("stranger", with(&[Right::Call, Right::Approve], "eve")),
    ];
    let config = ServerConfig { tokens: tokens.into(), ..config() };
    let server = start_with(config, [booking()]).await;
    let ask = |who: &str, line: String, body: Value| {
        Ask::new(server.address, &line).of(who).json(&body).send()
    };
    let begin = || async {
        let run = ask("agent", "POST /v1/tools/book/call".into(), json!({})).await.json();
        assert_eq!(run["waiting"][0]["type"], "input", "{run}");
        (format!("POST /v1/runs/{}/resolve", id_of(&run)), run["waiting"][0]["id"].clone())
    };
    let (resolve, id) = begin().await;
    let answer = json!({"id": id, "answer": {"seat": 7}});
    assert_eq!(ask("stranger", resolve.clone(), answer.clone()).await.status, 404);
    assert_eq!(ask("watcher", resolve.clone(), answer.clone()).await.status, 403);
    // What does not fit the question changes nothing.
    let wrong = json!({"id": id, "answer": {"seat": "window"}});
    assert_eq!(ask("agent", resolve.clone(), wrong).await.status, 422);
    let approved = json!({"id": id, "decision": "approve"});
    assert_eq!(ask("agent", resolve.clone(), approved.clone()).await.status, 403);
    let over = ask("agent", resolve.clone(), answer.clone()).await.json();
    assert_eq!(over["status"], "completed", "{over}");
    assert_eq!(over["results"][0]["output"], r#"booked {"seat":7}"#);
    let late = ask("agent", resolve.clone(), answer).await;
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.problem().contains("the tool's question was answered by agent"), "{late:?}");
    assert_eq!(ask("agent", resolve, approved).await.status, 403);

    let (resolve, id) = begin().await;
    let declined = json!({"id": id, "decision": "deny", "message": "no seat"});
    let over = ask("agent", resolve, declined).await.json();
    assert_eq!(over["results"][0]["error"]["kind"], "denied", "{over}");

    // A call that waits for approval is neither approved, denied nor answered by its caller.
    let run = ask("agent", "POST /v1/tools/remove/call".into(), json!({})).await.json();
    let (resolve, id) =
        (format!("POST /v1/runs/{}/resolve", id_of(&run)), &run["waiting"][0]["id"]);
    for body in [
        json!({"id": id, "decision": "approve"}),
        json!({"id": id, "decision": "deny"}),
        json!({"id": id, "answer": {"approve": true}}),
        json!({"id": id, "output": "removed"}),
    ] {
        let refused = ask("agent", resolve.clone(), body.clone()).await;
        assert_eq!(refused.status, 403, "{body}: {}", refused.body);
        assert!(refused.problem().contains("lacks the right `approve`"), "{}", refused.body);
    }
    let shown = Ask::new(server.address, &format!("GET /v1/runs/{}", id_of(&run)));
    assert_eq!(shown.of("agent").send().await.json()["status"], "requires_action");
    server.end().await;
}
