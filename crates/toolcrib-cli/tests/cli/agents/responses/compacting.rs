//! Conversations of the Responses API in short, and their tokens.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::Reply as ModelReply;

use super::{MODEL, served};
use crate::agents::served::{ADA, EVE, by, post, with_tokens};
use crate::harness::http::Http;

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_in_short_is_read_by_its_own_client_only_also_after_a_restart() {
    let replies = [
        ModelReply::call("say", json!({"text": "hi"})),
        ModelReply::text("I said hi."),
        ModelReply::text("The user wanted hi; it was said with say."),
        ModelReply::text("You wanted hi."),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    with_tokens(&crib, "ada: {HASH, rights: [call]}, eve: {HASH, rights: [call]}");
    let first = Http::start(&crib, "");
    let ask = |server: &Http, token: &str, path: &str, body: &Value| {
        let reply = by(server, token, &format!("POST {path}"), Some(body));
        (reply.status, reply.json())
    };
    let (_, said) =
        ask(&first, ADA, "/v1/responses", &json!({"model": "default", "input": "Say hi."}));
    let from = json!({"model": "default", "previous_response_id": said["id"]});
    let (status, none) = ask(&first, EVE, "/v1/responses/compact", &from);
    assert_eq!(
        (status, &none["error"]["code"]),
        (400, &json!("previous_response_not_found")),
        "{none}"
    );
    let (status, short) = ask(&first, ADA, "/v1/responses/compact", &from);
    assert_eq!(status, 200, "{short}");
    let output = short["output"].as_array().expect("items");
    assert_eq!(output.len(), 2, "the user's message and the summary: {short}");
    assert_eq!(output[0]["content"][0]["text"], "Say hi.");
    assert!(short["usage"]["total_tokens"].as_u64().is_some_and(|all| all > 0), "{short}");
    let transcript = &model.requests()[2].text;
    assert!(
        transcript.contains("Call of say") && transcript.contains("Result of say"),
        "{transcript}"
    );
    drop(first);

    let second = Http::start(&crib, "");
    let mut input = output.clone();
    input.push(json!({"role": "user", "content": "What did I want?"}));
    let next = json!({"model": "default", "input": input});
    let (status, foreign) = ask(&second, EVE, "/v1/responses", &next);
    assert_eq!(
        (status, &foreign["error"]["param"]),
        (400, &json!("input[1].encrypted_content")),
        "{foreign}"
    );
    let (status, answer) = ask(&second, ADA, "/v1/responses", &next);
    assert_eq!((status, &answer["status"]), (200, &json!("completed")), "{answer}");
    assert!(model.requests()[3].text.contains("it was said with say"));
    let runs = by(&second, ADA, "GET /v1/runs", None).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2), "summaries are no runs: {runs}");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_cannot_be_summarized_is_asked_of_the_model() {
    let (model, crib) =
        served(Wire::Chat, [ModelReply::status(401, "{}"), ModelReply::text("  ")]).await;
    let server = Http::start(&crib, "");
    let call =
        json!({"type": "function_call", "call_id": "c_1", "name": "look", "arguments": "{}"});
    let cases = [
        (json!({"model": MODEL}), 400, "missing_required_parameter"),
        (json!({"model": MODEL, "input": [call]}), 400, "missing_tool_output"),
        (json!({"model": "nobody", "input": "Hi."}), 404, "model_not_found"),
        (
            json!({"model": MODEL, "input": [{"type": "compaction", "encrypted_content": "x"}]}),
            400,
            "invalid_value",
        ),
        (
            json!({"model": MODEL, "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}),
            400,
            "unknown_tool_output",
        ),
    ];
    for (body, status, code) in cases {
        let (answered, refused) = post(&server, "/v1/responses/compact", &body);
        assert_eq!(
            (answered, &refused["error"]["code"]),
            (status, &json!(code)),
            "{body} {refused}"
        );
    }
    assert_eq!(model.requests().len(), 0);
    let (status, failed) =
        post(&server, "/v1/responses/compact", &json!({"model": MODEL, "input": "Hi."}));
    assert_eq!((status, &failed["error"]["code"]), (500, &json!("model_error")), "{failed}");
    let (status, empty) =
        post(&server, "/v1/responses/compact", &json!({"model": MODEL, "input": "Hi."}));
    assert_eq!(status, 500, "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_a_request_are_estimated_without_asking_the_model() {
    let (model, crib) = served(Wire::Chat, [ModelReply::text("Hello.")]).await;
    let server = Http::start(&crib, "");
    let count = |body: Value| {
        let (status, counted) = post(&server, "/v1/responses/input_tokens", &body);
        assert_eq!(
            (status, &counted["object"]),
            (200, &json!("response.input_tokens")),
            "{counted}"
        );
        counted["input_tokens"].as_u64().expect("a number")
    };
    let short = count(json!({"model": MODEL, "input": "Hello."}));
    let long = count(json!({"model": MODEL, "input": "Hello.".repeat(1_000)}));
    assert!((1_400..1_600).contains(&(long - short)), "{short} {long}");
    let agent = count(json!({"model": "default", "input": "Hello."}));
    assert!(agent > short + 50, "the tools of the agent count: {short} {agent}");
    let tool = json!({"type": "function", "name": "look", "description": "x".repeat(400), "parameters": {}});
    let with_tool = count(json!({"model": MODEL, "input": "Hello.", "tools": [tool]}));
    assert!(with_tool > short + 90, "{short} {with_tool}");

    let (_, first) =
        post(&server, "/v1/responses", &json!({"model": MODEL, "input": "x".repeat(4_000)}));
    let next = count(json!({"previous_response_id": first["id"], "input": "And?"}));
    assert!(next > 1_000, "what was said before counts: {next}");
    assert_eq!(model.requests().len(), 1);
    let (status, refused) = post(
        &server,
        "/v1/responses/input_tokens",
        &json!({"model": MODEL, "input": "x", "store": true}),
    );
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("store")), "{refused}");
}
