//! Answers and requests of Responses.

use serde_json::{Value, json};
use toolcrib_tool::{Content, ToolDefinition};
use toolcrib_wire::export;
use toolcrib_wire::model::{
    Conversation, FailureKind, Input, Item, ModelErrorKind, ModelEvent, ModelItem, RequestHead,
    Role, StopReason, ToolChoice, View, Wire, read_answer,
};

use super::{calls, decode, items, reasoning, recording, result, settings};

const WIRE: Wire = Wire::Responses;
const WEATHER: &str = r#"call_a weather {"city":"Graz"}"#;

fn answer(name: &str) -> toolcrib_wire::model::Answer {
    super::answer(WIRE, name)
}

fn error(name: &str) -> toolcrib_wire::model::ModelError {
    super::error(WIRE, name)
}

fn raws(answer: &toolcrib_wire::model::Answer) -> Vec<&str> {
    answer.items.iter().map(ModelItem::raw).collect()
}

fn body(conversation: &Conversation, choice: &ToolChoice) -> Value {
    serde_json::from_str(&conversation.request(choice).unwrap()).unwrap()
}

#[test]
fn text_arrives_in_pieces_with_its_phase_and_usage() {
    let (events, answer) = decode(WIRE, [&*recording(WIRE, "text")], settings());
    let answer = answer.unwrap();
    let phase = Some("final_answer".to_owned());
    let view = View::Message { text: "Hello, wörld 🌍".to_owned(), phase, is_refusal: false };
    assert_eq!(*answer.items[0].view(), view);
    assert_eq!((answer.id.as_deref(), &answer.stop), (Some("resp_1"), &StopReason::End));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input, usage.cached_input, usage.output, usage.reasoning), (90, 64, 40, 12));
    let shown: Vec<_> =
        events.iter().filter(|event| matches!(event, ModelEvent::Text { .. })).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!(super::answer(WIRE, "done_marker").text(), "Hi.");
    assert_eq!(super::answer(WIRE, "two_response_ids").id.as_deref(), Some("resp_1"));
}

#[test]
fn parallel_calls_are_kept_apart_and_reasoning_stays_encrypted() {
    for name in ["reasoning_and_parallel_calls", "windows_line_ends_and_mark"] {
        let (events, answer) = decode(WIRE, [&*recording(WIRE, name)], settings());
        let answer = answer.unwrap();
        assert_eq!(reasoning(&answer), Some("The user asks."));
        assert!(raws(&answer)[0].contains(r#""encrypted_content":"gAAAA==""#));
        assert_eq!(calls(&answer), [WEATHER, r#"call_b time {"zone":"CET"}"#]);
        assert_eq!(answer.stop, StopReason::Calls);
        let first: String = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Arguments { call: 0, delta } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(first, r#"{"city":"Graz"}"#, "whole arguments are not shown twice");
    }
}

#[test]
fn calls_survive_servers_that_leave_events_out() {
    for name in [
        "item_done_missing",
        "only_pieces",
        "only_last_event",
        "deltas_before_item",
        "no_deltas",
        "positions_missing",
        "ids_differ",
        "added_twice",
    ] {
        let (events, answer) = decode(WIRE, [&*recording(WIRE, name)], settings());
        let answer = answer.unwrap();
        assert_eq!(calls(&answer), [WEATHER], "{name}");
        assert_eq!(answer.runnable_calls().count(), 1, "{name}");
        let begun = events.iter().filter(|event| matches!(event, ModelEvent::CallStarted { .. }));
        assert!(begun.count() <= 1, "{name}");
    }
    assert_eq!(answer("text_without_item").text(), "Hi.");
    assert_eq!(answer("only_last_event").items.len(), 3);
    assert_eq!(calls(&answer("empty_arguments")), ["call_a now {}"]);
    assert_eq!(calls(&answer("ids_equal")), [WEATHER, "made_0 time {}"]);
    assert!(answer("empty_answer").items.is_empty());
}

#[test]
fn items_of_unknown_types_survive_byte_for_byte() {
    let unknown = answer("unknown_items");
    let kinds: Vec<_> = unknown
        .items
        .iter()
        .map(|item| match item.view() {
            View::Other { kind } => kind.as_str(),
            _ => "known",
        })
        .collect();
    assert_eq!(kinds, ["web_search_call", "acme:thing"]);
    assert_eq!(raws(&unknown)[1], r#"{"type":"acme:thing","id":"t_1","n":1.0}"#);
    let mut conversation = Conversation::new(WIRE, &RequestHead::new("m", "test/m")).unwrap();
    conversation.push(&items(unknown.items.clone())).unwrap();
    let request = conversation.request(&ToolChoice::Auto).unwrap();
    assert!(request.contains(&raws(&unknown).join(",")), "{request}");
}

#[test]
fn a_turn_that_was_stopped_has_no_call_that_may_run() {
    for (name, stop) in [
        ("length_inside_call", StopReason::Length),
        ("content_filter", StopReason::Filter),
        ("incomplete_item", StopReason::Other("incomplete".to_owned())),
    ] {
        let answer = answer(name);
        assert_eq!(answer.stop, stop);
        assert_eq!(answer.runnable_calls().count(), 0);
    }
    assert!(matches!(answer("refusal").items[0].view(), View::Message { is_refusal: true, .. }));
}

#[test]
fn failures_are_read_nested_flat_and_inside_the_response() {
    let failure = |name: &str| error(name).failure().unwrap().clone();
    assert_eq!(failure("failed").kind, FailureKind::RateLimited);
    assert_eq!(failure("failed").wait.unwrap().as_secs(), 2);
    assert_eq!(failure("error_flat").kind, FailureKind::Overloaded);
    assert_eq!(failure("error_nested").kind, FailureKind::ContextExceeded);
    assert_eq!(failure("error_nested").param.as_deref(), Some("input"));
    assert_eq!(error("no_end").kind, ModelErrorKind::Cut);
    for (name, at) in
        [("wrong_types", "/item/call_id"), ("no_item", "/item"), ("no_position", "/output_index")]
    {
        let error = error(name);
        assert_eq!((error.kind.clone(), &*error.at), (ModelErrorKind::Malformed, at), "{error}");
        assert_eq!(error.event, Some(2));
    }
}

#[test]
fn a_whole_body_keeps_every_byte_of_its_items() {
    let all = [
        r#"{"type": "reasoning", "id":"rs_1", "summary":[], "encrypted_content":"a\/b"}"#,
        r#"{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"Gr\u00e4z"}]}"#,
        r#"{"call_id":"call_a","type":"function_call","name":"weather","arguments":"{\"n\": 1.50}","status":"completed"}"#,
    ];
    let text = format!(r#"{{"id":"resp_1","status":"completed","output":[{}]}}"#, all.join(" , "));
    let answer = read_answer(WIRE, text.as_bytes(), &settings()).unwrap();
    assert_eq!(raws(&answer), all);
    let mut conversation = Conversation::new(WIRE, &RequestHead::new("m", "test/m")).unwrap();
    conversation.push(&items(answer.items.clone())).unwrap();
    conversation.push(&[result("call_a")]).unwrap();
    let request = conversation.request(&ToolChoice::Auto).unwrap();
    assert!(request.contains(&all.join(",")), "{request}");
    for (text, at) in [
        (r"{}", "/status"),
        (r#"{"status": "queued"}"#, "/status"),
        (r#"{"status": "completed"}"#, "/output"),
        (
            r#"{"status": "completed", "output": [{"type": "function_call", "call_id": "a"}]}"#,
            "/output/0/name",
        ),
        (
            r#"{"status": "completed", "output": [], "usage": {"output_tokens": 1.5}}"#,
            "/usage/output_tokens",
        ),
    ] {
        let error = read_answer(WIRE, text.as_bytes(), &settings()).unwrap_err();
        assert_eq!(error.at, at, "{error}");
    }
}

#[test]
fn reasoning_goes_back_only_with_its_encrypted_content_and_to_its_source() {
    let plain = answer("raw_reasoning");
    assert_eq!(reasoning(&plain), Some("Hm."));
    let mut conversation = Conversation::new(WIRE, &RequestHead::new("m", "test/m")).unwrap();
    conversation.push(&items(plain.items)).unwrap();
    assert_eq!(body(&conversation, &ToolChoice::Auto)["input"].as_array().unwrap().len(), 1);

    let encrypted = answer("reasoning_and_parallel_calls");
    for (source, count) in [("test/m", 5), ("other/m", 4)] {
        let mut conversation = Conversation::new(WIRE, &RequestHead::new("m", source)).unwrap();
        conversation.push(&items(encrypted.items.clone())).unwrap();
        conversation.push(&[result("call_a"), result("call_b")]).unwrap();
        let body = body(&conversation, &ToolChoice::Auto);
        assert_eq!(body["input"].as_array().unwrap().len(), count, "{source}");
    }
}

#[test]
fn a_request_has_the_documented_members() {
    let definition = ToolDefinition::builder("weather").description("Tells.").build().unwrap();
    let mut head = RequestHead::new("m", "test/m")
        .with_instructions("Be brief.")
        .with_tools(&export([&definition], WIRE.target()));
    head.reasoning_effort = Some("low".to_owned());
    head.max_output_tokens = Some(500);
    head.cache_key = Some("run_1".to_owned());
    let mut conversation = Conversation::new(WIRE, &head).unwrap();
    let picture = Content::Image { data: vec![1, 2, 3], mime_type: "image/png".to_owned() };
    let content = vec![Content::text("Look."), picture];
    conversation.push(&[Item::Input(Input { role: Role::User, content })]).unwrap();
    conversation.push(&items(answer("custom_call").items)).unwrap();
    conversation.push(&[result("call_a"), Item::user("Go on.")]).unwrap();
    let choice = ToolChoice::Tool("weather".to_owned());
    let mut body = body(&conversation, &choice);
    assert_eq!(body["tools"][0]["strict"], false);
    body.as_object_mut().unwrap().remove("tools");
    assert_eq!(
        body,
        json!({
            "model": "m",
            "stream": true,
            "store": false,
            "max_output_tokens": 500,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low"},
            "prompt_cache_key": "run_1",
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "image_url": "data:image/png;base64,AQID"},
                ]},
                {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_a", "name": "patch",
                    "input": "*** Begin Patch", "status": "completed"},
                {"type": "custom_tool_call_output", "call_id": "call_a", "output": "sunny"},
                {"type": "message", "role": "user", "content": "Go on."},
            ],
            "tool_choice": {"type": "function", "name": "weather"},
        })
    );
    let call = answer("custom_call").calls().next().unwrap().to_tool_call("patch");
    assert_eq!(call.arguments().as_str(), r#"{"input_data":"*** Begin Patch"}"#);
}

#[test]
fn a_conversation_moves_between_providers_without_its_reasoning() {
    let foreign = super::answer(Wire::Anthropic, "thinking_and_parallel_calls");
    let mut conversation = Conversation::new(WIRE, &RequestHead::new("m", "test/m")).unwrap();
    conversation.push(&items(foreign.items)).unwrap();
    conversation.push(&[result("toolu_1"), result("toolu_2")]).unwrap();
    assert_eq!(
        body(&conversation, &ToolChoice::Auto)["input"],
        json!([
            {"type": "message", "role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "toolu_1", "name": "weather", "arguments": "{\"city\": \"Graz\"}"},
            {"type": "function_call", "call_id": "toolu_2", "name": "time", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "toolu_1", "output": "sunny"},
            {"type": "function_call_output", "call_id": "toolu_2", "output": "sunny"},
        ])
    );
    let own = answer("reasoning_and_parallel_calls");
    let mut anthropic =
        Conversation::new(Wire::Anthropic, &RequestHead::new("m", "test/m")).unwrap();
    anthropic.push(&items(own.items)).unwrap();
    anthropic.push(&[result("call_a"), result("call_b")]).unwrap();
    let messages = body(&anthropic, &ToolChoice::Auto)["messages"].clone();
    assert_eq!(messages[0]["content"].as_array().unwrap().len(), 2);
}
