//! Answers and requests of Anthropic's messages.

use serde_json::{Value, json};
use toolcrib_tool::{Content, ToolDefinition, ToolResult};
use toolcrib_wire::export;
use toolcrib_wire::model::{
    Conversation, FailureKind, Input, Item, ModelErrorKind, ModelEvent, ModelItem, RequestHead,
    Role, StopReason, ToolChoice, View, Wire, read_answer,
};

use super::{calls, decode, items, reasoning, recording, result, settings};

const WIRE: Wire = Wire::Anthropic;

fn answer(name: &str) -> toolcrib_wire::model::Answer {
    super::answer(WIRE, name)
}

fn error(name: &str) -> toolcrib_wire::model::ModelError {
    super::error(WIRE, name)
}

fn raws(answer: &toolcrib_wire::model::Answer) -> Vec<&str> {
    answer.items.iter().map(ModelItem::raw).collect()
}

#[test]
fn text_arrives_in_pieces_with_its_usage() {
    let (events, answer) = decode(WIRE, [&*recording(WIRE, "text")], settings());
    let answer = answer.unwrap();
    assert_eq!(answer.text(), "Hello, wörld 🌍");
    assert_eq!((answer.id.as_deref(), &answer.stop), (Some("msg_1"), &StopReason::End));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input, usage.cached_input, usage.cache_write), (165, 40, 100));
    assert_eq!(usage.output, 89);
    assert!(events.contains(&ModelEvent::Text { delta: "Hello, ".to_owned() }));
    assert_eq!(super::answer(WIRE, "late_usage").usage.unwrap().input, 9);
}

#[test]
fn thinking_signatures_and_parallel_calls_are_put_together() {
    for name in ["thinking_and_parallel_calls", "windows_line_ends_and_mark"] {
        let answer = answer(name);
        assert_eq!(reasoning(&answer), Some("The user asks."));
        assert_eq!(calls(&answer), [r#"toolu_1 weather {"city": "Graz"}"#, "toolu_2 time {}"]);
        assert_eq!(answer.runnable_calls().count(), 2);
        assert_eq!(
            raws(&answer),
            [
                r#"{"type":"thinking","thinking":"The user asks.","signature":"EqQBc2ln=="}"#,
                r#"{"type":"text","text":"Let me look."}"#,
                r#"{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city": "Graz"}}"#,
                r#"{"type":"tool_use","id":"toolu_2","name":"time","input":{},"caller":{"type":"direct"}}"#,
            ]
        );
    }
}

#[test]
fn blocks_may_interleave_skip_numbers_and_begin_with_their_content() {
    let both = [r#"toolu_1 weather {"city": "Graz"}"#, r#"toolu_2 time {"zone":"CET"}"#];
    assert_eq!(calls(&answer("interleaved_blocks")), both);
    assert_eq!(calls(&answer("index_gap")), [both[0]]);
    assert_eq!(calls(&answer("whole_input_at_start")), [r#"toolu_1 weather {"city":"Graz"}"#]);
    assert_eq!(answer("text_at_start").text(), "Yes.");
    assert_eq!(calls(&answer("ids_equal")), [both[0], "made_0 time {}"]);
    for name in ["unknown_events", "unnamed_events"] {
        assert_eq!(answer(name).text(), "Hi.");
    }
}

#[test]
fn blocks_that_are_unknown_hidden_or_without_text_survive() {
    assert_eq!(
        raws(&answer("redacted_thinking"))[0],
        r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#
    );
    assert_eq!(
        raws(&answer("signature_without_text"))[0],
        r#"{"type":"thinking","thinking":"","signature":"EqQB"}"#
    );
    let unknown = answer("unknown_block");
    assert_eq!(unknown.stop, StopReason::Paused);
    let kinds: Vec<_> = unknown
        .items
        .iter()
        .map(|item| match item.view() {
            View::Other { kind } => kind.as_str(),
            _ => "known",
        })
        .collect();
    assert_eq!(kinds, ["server_tool_use", "web_search_tool_result", "known"]);
    assert_eq!(
        raws(&unknown)[0],
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "Graz"}}"#
    );
    assert_eq!(
        raws(&unknown)[2],
        r#"{"type":"text","text":"Sunny.","citations":[{"type":"web_search_result_location","url":"https://example.org"}]}"#
    );
    assert_eq!(
        raws(&answer("compaction_block"))[0],
        r#"{"type":"compaction","content":"Summary."}"#
    );
    assert!(answer("empty_answer").items.is_empty());
}

#[test]
fn arguments_that_are_no_object_stay_as_the_model_wrote_them() {
    let answer = answer("invalid_arguments");
    assert_eq!(calls(&answer), [r#"toolu_1 weather {"city": Graz"#]);
    let raw: Value = serde_json::from_str(answer.items[0].raw()).unwrap();
    assert_eq!(raw["input"], json!({"INVALID_JSON": "{\"city\": Graz"}));
}

#[test]
fn a_turn_that_was_stopped_has_no_call_that_may_run() {
    for (name, stop) in [
        ("length_inside_call", StopReason::Length),
        ("unknown_stop", StopReason::Other("tired".to_owned())),
        ("refusal", StopReason::Refused),
        ("context_exceeded", StopReason::ContextExceeded),
    ] {
        let answer = answer(name);
        assert_eq!(answer.stop, stop);
        assert_eq!(answer.runnable_calls().count(), 0);
    }
}

#[test]
fn a_broken_stream_yields_no_answer() {
    assert_eq!(error("error_inside").failure().unwrap().kind, FailureKind::Overloaded);
    assert_eq!(error("no_message_stop").kind, ModelErrorKind::Cut);
    for (name, at) in [
        ("block_begun_twice", "/index"),
        ("delta_after_stop", "/index"),
        ("delta_without_block", "/index"),
        ("wrong_types", "/content_block/id"),
        ("block_left_open", ""),
        ("no_stop_reason", ""),
    ] {
        let error = error(name);
        assert_eq!(
            (error.kind.clone(), &*error.at),
            (ModelErrorKind::Malformed, at),
            "{name}: {error}"
        );
        assert!(error.event.is_some());
    }
}

#[test]
fn a_whole_body_keeps_every_byte_of_its_blocks() {
    let blocks = [
        r#"{"type": "thinking", "thinking": "r\u006f", "signature": "a\/b"}"#,
        r#"{"type":"future", "n": 1.0e3}"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city": "Gr\u00e4z", "n": 1.50}}"#,
    ];
    let body = format!(
        r#"{{"id":"msg_1","type":"message","stop_reason":"tool_use","content":[{}],"usage":{{"input_tokens":3,"output_tokens":4}}}}"#,
        blocks.join(" , ")
    );
    let answer = read_answer(WIRE, body.as_bytes(), &settings()).unwrap();
    assert_eq!(raws(&answer), blocks);
    let mut conversation = Conversation::new(WIRE, &RequestHead::new("m", "test/m")).unwrap();
    conversation.push(&items(answer.items)).unwrap();
    conversation.push(&[result("toolu_1")]).unwrap();
    let request = conversation.request(&ToolChoice::Auto).unwrap();
    let message = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
    assert!(request.contains(&message), "{request}");
    for (body, at) in [
        (r"{}", "/content"),
        (r#"{"content": [{"type": "text"}], "stop_reason": "end_turn"}"#, "/content/0/text"),
        (r#"{"content": [5], "stop_reason": "end_turn"}"#, "/content/0"),
        (r#"{"content": []}"#, "/stop_reason"),
        (
            r#"{"content": [], "stop_reason": "end_turn", "usage": {"output_tokens": "5"}}"#,
            "/usage/output_tokens",
        ),
    ] {
        let error = read_answer(WIRE, body.as_bytes(), &settings()).unwrap_err();
        assert_eq!(error.at, at, "{error}");
    }
}

#[test]
fn a_request_has_the_documented_members() {
    let definition = ToolDefinition::builder("weather").description("Tells.").build().unwrap();
    let mut head = RequestHead::new("m", "test/m")
        .with_instructions("Be brief.")
        .with_tools(&export([&definition], WIRE.target()));
    head.reasoning_effort = Some("low".to_owned());
    head.parallel_calls = Some(false);
    let mut conversation = Conversation::new(WIRE, &head).unwrap();
    let picture = Content::Image { data: vec![1, 2, 3], mime_type: "image/png".to_owned() };
    let content = vec![Content::text("Look."), Content::text(" "), picture];
    conversation.push(&[Item::Input(Input { role: Role::User, content })]).unwrap();
    conversation.push(&items(answer("ids_equal").items)).unwrap();
    let failed = toolcrib_tool::ToolError::denied("no");
    let failed = ToolResult::failure("made_0".into(), "time", failed, std::time::Duration::ZERO);
    conversation.push(&[result("toolu_1"), failed.into(), Item::user("Go on.")]).unwrap();
    let body: Value =
        serde_json::from_str(&conversation.request(&ToolChoice::Required).unwrap()).unwrap();
    let ephemeral = json!({"type": "ephemeral"});
    assert_eq!(body["max_tokens"], 8192);
    assert_eq!(body["cache_control"], ephemeral);
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "Be brief.", "cache_control": ephemeral}])
    );
    assert_eq!(body["tools"][0]["cache_control"], ephemeral);
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(body["output_config"], json!({"effort": "low"}));
    assert_eq!(body["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["content"].as_array().unwrap().len(), 2, "blank text is left out");
    assert_eq!(messages[1]["content"][1]["id"], "made_0");
    let answers = messages[2]["content"].as_array().unwrap();
    let kinds: Vec<_> = answers.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert_eq!(
        (&answers[1]["tool_use_id"], &answers[1]["is_error"]),
        (&json!("made_0"), &json!(true))
    );

    head.prompt_cache = false;
    head.extra.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!(Conversation::new(WIRE, &head).unwrap_err().at, "/extra/thinking");
    head.reasoning_effort = None;
    let request = Conversation::new(WIRE, &head).unwrap().request(&ToolChoice::None).unwrap();
    assert!(!request.contains("cache_control") && request.contains("budget_tokens"), "{request}");
}

#[test]
fn a_conversation_moves_between_providers_without_its_reasoning() {
    let anthropic = answer("thinking_and_parallel_calls");
    let mut chat = Conversation::new(Wire::Chat, &RequestHead::new("m", "test/m")).unwrap();
    chat.push(&items(anthropic.items)).unwrap();
    chat.push(&[result("toolu_1"), result("toolu_2")]).unwrap();
    let body: Value = serde_json::from_str(&chat.request(&ToolChoice::Auto).unwrap()).unwrap();
    assert_eq!(
        body["messages"][0],
        json!({"role": "assistant", "content": "Let me look.", "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Graz\"}"}},
            {"id": "toolu_2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
        ]})
    );

    let chat = super::answer(Wire::Chat, "reasoning_content");
    let mut anthropic = Conversation::new(WIRE, &RequestHead::new("m", "test/m")).unwrap();
    anthropic.push(&items(chat.items)).unwrap();
    anthropic.push(&[result("call_a")]).unwrap();
    let body: Value = serde_json::from_str(&anthropic.request(&ToolChoice::Auto).unwrap()).unwrap();
    assert_eq!(
        body["messages"][0],
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "Yes."},
            {"type": "tool_use", "id": "call_a", "name": "weather", "input": {"city": "Graz"}},
        ]})
    );
}
