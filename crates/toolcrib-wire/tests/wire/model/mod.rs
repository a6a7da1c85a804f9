//! Requests to models and their answers.

mod anthropic;
mod chat;
mod conversation;
mod cuts;
mod limits;
mod responses;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use toolcrib_tool::ToolResult;
use toolcrib_wire::model::{
    Answer, DecoderSettings, Item, ModelError, ModelEvent, ModelItem, StreamDecoder, View, Wire,
    read_answer,
};

/// The recorded streams of a wire, with their names; they are the seeds of its fuzz target, too.
fn recordings(wire: Wire) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder(wire))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sse"))
        .collect();
    files.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

fn recording(wire: Wire, name: &str) -> Vec<u8> {
    fs::read(folder(wire).join(format!("{name}.sse"))).unwrap()
}

fn folder(wire: Wire) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/seeds/{wire}_stream"))
}

fn settings() -> DecoderSettings {
    let mut settings = DecoderSettings::new("test/m");
    settings.call_id_prefix.replace_range(.., "made");
    settings
}

/// What a stream in these pieces reports, and how it ends.
fn decode<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    settings: DecoderSettings,
) -> (Vec<ModelEvent>, Result<Answer, ModelError>) {
    let mut decoder = StreamDecoder::new(wire, settings);
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut events) {
            assert_eq!(decoder.push(b"data: {}\n\n", &mut events), Err(error.clone()));
            return (events, Err(error));
        }
    }
    let answer = decoder.finish(&mut events);
    (events, answer)
}

/// The answer of a recording.
fn answer(wire: Wire, name: &str) -> Answer {
    decode(wire, [&*recording(wire, name)], settings()).1.unwrap()
}

/// The error of a recording.
fn error(wire: Wire, name: &str) -> ModelError {
    decode(wire, [&*recording(wire, name)], settings()).1.unwrap_err()
}

/// The calls as `id name arguments`.
fn calls(answer: &Answer) -> Vec<String> {
    let shown = answer.calls().map(|call| format!("{} {} {}", call.id, call.name, call.arguments));
    shown.collect()
}

fn reasoning(answer: &Answer) -> Option<&str> {
    answer.items.iter().find_map(|item| match item.view() {
        View::Reasoning { text } => Some(text.as_str()),
        _ => None,
    })
}

fn result(id: &str) -> Item {
    ToolResult::success(id.into(), "weather", "sunny".into(), Duration::ZERO).into()
}

fn items(items: Vec<ModelItem>) -> Vec<Item> {
    items.into_iter().map(Item::from).collect()
}

/// The body of an answer with one call of `login`, whose id is this.
fn body_with_call(wire: Wire, id: &str) -> String {
    let body = match wire {
        Wire::Chat => {
            json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [
                {"id": id, "type": "function", "function": {"name": "login", "arguments": "{\"password\":\"hunter\"}"}}
            ]}}]})
        }
        Wire::Responses => json!({"status": "completed", "output": [
            {"type": "function_call", "call_id": id, "name": "login", "arguments": "{\"password\":\"hunter\"}"}
        ]}),
        _ => json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
            {"type": "tool_use", "id": id, "name": "login", "input": {"password": "hunter"}}
        ]}),
    };
    body.to_string()
}

#[test]
fn an_id_that_is_too_long_for_logs_is_replaced_in_the_call_and_in_what_goes_back() {
    for &wire in Wire::ALL {
        let own = |id: &str| {
            let body = body_with_call(wire, id);
            let answer = read_answer(wire, body.as_bytes(), &settings()).unwrap();
            let item = answer.items.iter().find(|item| matches!(item.view(), View::Call(_)));
            let raw: serde_json::Value = serde_json::from_str(item.unwrap().raw()).unwrap();
            let raw = raw.get("call_id").or_else(|| raw.get("id")).unwrap().clone();
            let id = answer.calls().next().unwrap().id.to_string();
            assert_eq!(raw, id.as_str(), "{wire}");
            id
        };
        let longest = "ü".repeat(256);
        assert_eq!(own(&longest), longest, "{wire}");
        assert_eq!(own(&"y".repeat(257)), "made_0", "{wire}");
        assert_eq!(own(&"y".repeat(70_000)), "made_0", "{wire}");
    }
}

#[test]
fn a_call_with_other_arguments_has_nothing_of_the_first_ones() {
    for &wire in Wire::ALL {
        let body = body_with_call(wire, "call_a");
        let answer = read_answer(wire, body.as_bytes(), &settings()).unwrap();
        for arguments in [r#"{"password":"[redacted]"}"#, r#""[9 bytes that are not JSON]""#] {
            let call = answer.items.iter().find(|item| matches!(item.view(), View::Call(_)));
            let other = call.unwrap().with_arguments(arguments);
            assert!(!format!("{other:?}").contains("hunter"), "{wire}: {other:?}");
            let stored = serde_json::to_string(&other).unwrap();
            assert_eq!(serde_json::from_str::<ModelItem>(&stored).unwrap(), other, "{wire}");
            let View::Call(call) = other.view() else { panic!("{wire}: no call") };
            assert_eq!((call.name.as_str(), call.arguments.as_str()), ("login", arguments));
        }
    }
}
