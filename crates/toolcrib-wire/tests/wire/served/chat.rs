//! Chats as they are read.

use serde_json::{Value, json};
use toolcrib_tool::Content;
use toolcrib_wire::chat::{ChatRequest, FinishReason};
use toolcrib_wire::model::{Conversation, RequestHead, StopReason, ToolChoice, Wire};
use toolcrib_wire::responses::{InputKind, RequestTool, TextFormat};

fn read(body: &Value) -> ChatRequest {
    ChatRequest::read(&body.to_string()).unwrap()
}

#[test]
fn a_chat_without_a_message_is_refused() {
    let error = ChatRequest::read(r#"{"model": "m", "messages": []}"#).unwrap_err();
    assert_eq!((error.status, error.param.as_deref()), (400, Some("messages")));
    assert_eq!(error.message, "`messages` must have at least one message");
}

#[test]
fn a_conversation_with_calls_is_read_and_sent_on() {
    let request = read(&json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "Ada", "content": [{"type": "text", "text": "Look."},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI="}}]},
            {"role": "assistant", "content": "One moment.", "reasoning_content": "Hm.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
            {"type": "custom", "custom": {"name": "g", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "a"}}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "max_completion_tokens": 5,
        "max_tokens": 7,
        "stop": "x",
        "seed": -3,
        "stream": true,
        "stream_options": {"include_usage": true},
        "n": 1,
        "logprobs": false,
        "modalities": ["text"],
    }));
    assert!(request.stream && request.include_usage && !request.store);
    assert_eq!(request.options.max_output_tokens, Some(5));
    assert_eq!((request.options.seed, request.options.stop.len()), (Some(-3), 1));
    assert!(matches!(&request.options.format, TextFormat::JsonSchema { .. }));
    assert!(matches!(&request.tools[1], RequestTool::Custom(_)));
    assert!(request.tool_choice.allows(&request.tools[0]));
    assert!(!request.tool_choice.allows(&request.tools[1]));
    assert_eq!(request.unused, ["messages.name", "messages.reasoning_content"]);
    assert!(request.unanswered_calls().is_empty());
    let answered: Vec<_> = request.submissions().map(|it| it.answer.call_id.as_str()).collect();
    assert_eq!(answered, ["c1", "c2"]);
    let InputKind::Message(message) = &request.input[1].kind else { panic!() };
    assert!(matches!(&message.content[1], Content::Image { .. }));

    let mut conversation = Conversation::new(Wire::Chat, &RequestHead::new("m", "p/m")).unwrap();
    conversation.push(&request.history("p/m")).unwrap();
    let body: Value =
        serde_json::from_str(&conversation.request(&ToolChoice::Auto).unwrap()).unwrap();
    assert_eq!(body["messages"][2]["tool_calls"][0]["id"], "c1");
    assert_eq!(body["messages"][4]["content"], "two");
}

#[test]
fn outputs_answer_the_last_message_of_the_model_only() {
    let call = |id: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "f", "arguments": ""}}]})
    };
    let output = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
    let request = read(&json!({"model": "m", "messages": [
        call("c1"), output("c1"), call("c2"), output("c2"), {"role": "user", "content": "Go on."},
    ]}));
    let answered: Vec<_> = request.submissions().map(|it| it.answer.call_id.as_str()).collect();
    assert_eq!(answered, ["c2"]);
    assert_eq!(FinishReason::of_stop(&StopReason::Length).as_str(), "length");
}
