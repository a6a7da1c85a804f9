//! Answers of chat completions, as servers send them.

use serde_json::{Value, json};
use toolcrib_wire::model::{
    DecoderSettings, FailureKind, ModelErrorKind, ModelEvent, ModelItem, StopReason, View, Wire,
    read_answer,
};

use super::{calls, decode, reasoning, recording, recordings, settings};

fn answer(name: &str) -> toolcrib_wire::model::Answer {
    super::answer(Wire::Chat, name)
}

fn error(name: &str) -> toolcrib_wire::model::ModelError {
    super::error(Wire::Chat, name)
}

const WEATHER: &str = r#"call_a weather {"city":"Graz"}"#;

#[test]
fn text_arrives_in_pieces_with_its_usage() {
    let (events, answer) = decode(Wire::Chat, [&*recording(Wire::Chat, "text")], settings());
    let answer = answer.unwrap();
    assert_eq!(answer.text(), "Hello, wörld 🌍");
    assert_eq!(answer.stop, StopReason::End);
    assert_eq!(answer.model.as_deref(), Some("gpt-5-2026-01-15"));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.input, usage.cached_input, usage.output), (90, 64, 40));
    assert_eq!((usage.reasoning, usage.total()), (12, 130));
    let text = |delta: &str| ModelEvent::Text { delta: delta.to_owned() };
    assert_eq!(events[1..3], [text("Hello, "), text("wörld 🌍")]);
    assert_eq!(events[3..], [ModelEvent::Usage(usage), ModelEvent::Stopped(StopReason::End)]);
}

#[test]
fn interleaved_parallel_calls_are_kept_apart() {
    for name in ["parallel_calls_interleaved", "windows_line_ends_and_mark"] {
        let (events, answer) = decode(Wire::Chat, [&*recording(Wire::Chat, name)], settings());
        let answer = answer.unwrap();
        assert_eq!(calls(&answer), [WEATHER, r#"call_b time {"zone":"CET"}"#]);
        assert_eq!(answer.runnable_calls().count(), 2);
        assert_eq!(answer.text(), "Let me look.");
        let of_second: String = events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Arguments { call: 1, delta } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(of_second, r#"{"zone":"CET"}"#);
    }
}

#[test]
fn calls_are_kept_apart_however_a_server_numbers_them() {
    let cases: &[(&str, &[&str])] = &[
        ("index_missing", &[WEATHER, "call_b time {}"]),
        ("index_all_zero", &[WEATHER, r#"call_b time {"zone":"CET"}"#]),
        ("index_jumps", &[WEATHER, "call_b time {}"]),
        ("ids_missing", &[r#"made_0 weather {"city":"Graz"}"#, "made_1 time {}"]),
        (
            "ids_and_indices_missing",
            &[r#"made_0 weather {"city":"Graz"}"#, r#"made_1 time {"zone":"CET"}"#],
        ),
        ("id_late", &[r#"made_0 weather {"city":"Graz"}"#]),
        ("ids_equal", &[r#"call_0 weather {"city":"Graz"}"#, "made_0 time {}"]),
        ("whole_call_repeated", &[WEATHER]),
        ("name_and_role_repeated", &[WEATHER]),
        ("arguments_object_and_null", &[WEATHER, "call_b time {}", "call_c now {}"]),
        ("function_call", &[r#"made_0 weather {"city":"Graz"}"#]),
        ("finish_with_last_delta", &[WEATHER]),
        ("no_done_and_comments", &[WEATHER]),
    ];
    for (name, expected) in cases {
        let answer = answer(name);
        assert_eq!(calls(&answer), *expected, "{name}");
        assert_eq!(answer.runnable_calls().count(), expected.len(), "{name}");
    }
}

#[test]
fn an_id_of_an_earlier_answer_is_replaced() {
    let mut settings = settings();
    settings.taken_call_ids = std::sync::Arc::new(["call_a".into(), "made_0".into()].into());
    let (_, answer) = decode(Wire::Chat, [&*recording(Wire::Chat, "index_all_zero")], settings);
    let ids: Vec<_> = answer.unwrap().calls().map(|call| call.id.to_string()).collect();
    assert_eq!(ids, ["made_1", "call_b"]);
}

#[test]
fn reasoning_is_read_and_kept_in_the_members_it_came_in() {
    let one = answer("reasoning_content");
    assert_eq!(reasoning(&one), Some("The user asks."));
    assert_eq!(one.items[0].raw(), r#"{"reasoning_content":"The user asks."}"#);
    assert_eq!(one.usage.unwrap().cached_input, 4);

    let other = answer("reasoning_details");
    assert_eq!(reasoning(&other), Some("Think hard."));
    let raw: Value = serde_json::from_str(other.items[0].raw()).unwrap();
    assert_eq!(
        raw["reasoning_details"],
        json!([{"type": "reasoning.text", "text": "Think hard.", "format": "anthropic-claude-v1",
            "index": 0, "signature": "c2ln"}])
    );
    let events = decode(Wire::Chat, [&*recording(Wire::Chat, "reasoning_details")], settings()).0;
    let shown = |event: &&ModelEvent| matches!(event, ModelEvent::Reasoning { .. });
    assert_eq!(events.iter().filter(shown).count(), 2, "no piece is shown twice");
}

#[test]
fn parts_of_content_are_text_and_reasoning() {
    let (events, answer) =
        decode(Wire::Chat, [&*recording(Wire::Chat, "content_parts")], settings());
    assert_eq!(answer.unwrap().text(), "Yes.");
    assert!(events.contains(&ModelEvent::Reasoning { delta: "Hm.".to_owned() }));
}

#[test]
fn a_turn_that_was_stopped_has_no_call_that_may_run() {
    for (name, stop) in
        [("length_inside_call", StopReason::Length), ("content_filter", StopReason::Filter)]
    {
        let answer = answer(name);
        assert_eq!(answer.stop, stop);
        assert_eq!(answer.runnable_calls().count(), 0);
    }
    assert_eq!(answer("length_inside_call").calls().count(), 1);
}

#[test]
fn refusals_second_choices_and_empty_answers_are_told_apart() {
    let refusal = answer("refusal");
    let view = View::Message { text: "I cannot help.".to_owned(), phase: None, is_refusal: true };
    assert_eq!(*refusal.items[0].view(), view);
    assert_eq!(answer("second_choice").text(), "mine");
    assert!(answer("empty_answer").items.is_empty());
}

#[test]
fn errors_in_a_stream_are_failures_of_the_provider() {
    let kind = |name: &str| error(name).failure().unwrap().kind;
    assert_eq!(kind("error_inside"), FailureKind::Server);
    assert_eq!(kind("error_flat"), FailureKind::Overloaded);
    assert_eq!(kind("finish_error"), FailureKind::Unknown);
    assert_eq!(error("no_finish_reason").kind, ModelErrorKind::Cut);
}

#[test]
fn a_malformed_answer_names_the_event_and_the_field() {
    assert_eq!(
        error("wrong_types").to_string(),
        "the model's answer is malformed in event 2: `/choices/0/delta/tool_calls/0/id` must be a string"
    );
    let broken = error("broken_json").to_string();
    assert!(
        broken.starts_with("the model's answer is malformed in event 1: invalid JSON: "),
        "{broken}"
    );
    assert!(error("nameless_call").to_string().contains("every call must name its tool"));
    for (body, at) in [
        (r"{}", "/choices"),
        (r#"{"choices": [{}]}"#, "/choices/0/message"),
        (
            r#"{"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}"#,
            "/choices/0/message/content",
        ),
        (r#"{"choices": [{"message": {"content": "x"}}]}"#, "/choices/0/finish_reason"),
        (
            r#"{"choices": [{"message": {"tool_calls": [{"id": "a"}]}, "finish_reason": "stop"}]}"#,
            "/choices/0/message/tool_calls/0/function",
        ),
        (
            r#"{"choices": [{"message": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": -1}}"#,
            "/usage/prompt_tokens",
        ),
    ] {
        let error = read_answer(Wire::Chat, body.as_bytes(), &settings()).unwrap_err();
        assert_eq!(error.at, at, "{error}");
    }
}

#[test]
fn a_whole_body_keeps_every_byte_of_its_parts() {
    let call = r#"{"id":"call_a" , "type":"function","function":{"name":"weather","arguments":"{\"city\": \"Gr\u00e4z\"}"},"extra_content":{"sig":1.0}}"#;
    let body = format!(
        r#"{{"id":"c","choices":[{{"finish_reason":"tool_calls","message":{{"role":"assistant","content": "Hi \u00fc","reasoning_content":"r\u006f","annotations":[],"audio":null,"tool_calls":[{call}]}}}}]}}"#
    );
    let answer = read_answer(Wire::Chat, body.as_bytes(), &DecoderSettings::new("test/m")).unwrap();
    let raws: Vec<&str> = answer.items.iter().map(ModelItem::raw).collect();
    assert_eq!(
        raws,
        [
            r#"{"reasoning_content":"ro"}"#,
            r#"{"role":"assistant","content":"Hi \u00fc","annotations":[],"audio":null}"#,
            call,
        ]
    );
    assert_eq!(calls(&answer), [r#"call_a weather {"city": "Gräz"}"#]);
}

#[test]
fn an_item_is_stored_as_its_json_and_read_back_with_its_view() {
    for (_, stream) in recordings(Wire::Chat) {
        let (_, Ok(answer)) = decode(Wire::Chat, [&*stream], settings()) else { continue };
        let stored = serde_json::to_string(&answer.items).unwrap();
        let read: Vec<ModelItem> = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, answer.items);
    }
}
