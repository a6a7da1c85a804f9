//! Writes requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, ToolResult, canonical_json};

use super::super::body;
use super::super::conversation::OpenCall;
use super::super::item::{Input, Item, ModelItem, Role, View};
use super::super::json::{ObjectWriter, member, parsed};
use super::super::{RequestError, RequestHead, ToolChoice, Wire};
use crate::responses_call_output;
use crate::results::openai::item as part;

/// The members that this file writes.
const OWN: [&str; 14] = [
    "model",
    "stream",
    "store",
    "include",
    "max_output_tokens",
    "temperature",
    "reasoning",
    "prompt_cache_key",
    "instructions",
    "tools",
    "parallel_tool_calls",
    "input",
    "tool_choice",
    "previous_response_id",
];

/// Those that it writes for a reasoning effort.
const OF_EFFORT: [&str; 2] = ["include", "reasoning"];

/// Writes everything before the first item. Nothing is stored at the provider: the conversation is sent whole.
pub(in super::super) fn write_head(
    head: &RequestHead,
    out: &mut String,
) -> Result<(), RequestError> {
    let mut members = ObjectWriter::new(out);
    members.string("model", &head.model);
    if head.stream {
        members.raw("stream", "true");
    }
    members.raw("store", "false");
    if let Some(limit) = head.max_output_tokens {
        members.raw("max_output_tokens", &limit.to_string());
    }
    if let Some(temperature) = head.temperature {
        members.raw("temperature", &Value::from(temperature).to_string());
    }
    if let Some(effort) = &head.reasoning_effort {
        // Without its encrypted content, reasoning cannot be sent back when nothing is stored.
        members.raw("include", r#"["reasoning.encrypted_content"]"#);
        members.raw("reasoning", &json!({"effort": effort}).to_string());
    }
    if let Some(key) = &head.cache_key {
        members.string("prompt_cache_key", key);
    }
    body::write_extra(head, &OWN, &OF_EFFORT, &mut members)?;
    if let Some(instructions) = &head.instructions {
        members.string("instructions", instructions);
    }
    body::write_openai_tools(head, &mut members);
    members.key("input").push('[');
    Ok(())
}

/// Writes everything after the last item.
pub(in super::super) fn write_tail(head: &RequestHead, choice: &ToolChoice, out: &mut String) {
    body::write_openai_tail(head, choice, |name| json!({"type": "function", "name": name}), out);
}

/// Writes items, each on its own.
pub(in super::super) fn write_items(
    head: &RequestHead,
    items: &[Item],
    calls: &BTreeMap<CallId, OpenCall>,
    out: &mut String,
) {
    for item in items {
        let json = match item {
            Item::Input(input) => Some(message(head, input)),
            Item::Model(item) => said(head, item, calls),
            Item::Result(result) => Some(output(head, result, calls)),
        };
        let Some(json) = json else { continue };
        body::separate(out);
        out.push_str(&json);
    }
}

fn message(head: &RequestHead, input: &Input) -> String {
    let mut json = String::new();
    let mut message = ObjectWriter::new(&mut json);
    message.string("type", "message");
    message.string(
        "role",
        match input.role {
            Role::User => "user",
            Role::System => "developer",
        },
    );
    body::write_content(head, input, part, &mut message);
    message.end();
    json
}

fn output(head: &RequestHead, result: &ToolResult, calls: &BTreeMap<CallId, OpenCall>) -> String {
    let mut item = responses_call_output(result);
    if !head.accepts_media {
        item["output"] = result.text().into();
    }
    if let Some(call) = calls.get(result.call_id()) {
        item["call_id"] = call.provider_id.as_str().into();
        if call.is_custom {
            item["type"] = "custom_tool_call_output".into();
        }
    }
    canonical_json(&item)
}

/// What the model said: unchanged for its source, from its view for others.
fn said(
    head: &RequestHead,
    item: &ModelItem,
    calls: &BTreeMap<CallId, OpenCall>,
) -> Option<String> {
    if item.came_from(Wire::Responses, &head.source) {
        let keeps = !matches!(item.view(), View::Reasoning { .. }) || is_encrypted(item.raw());
        return keeps.then(|| item.raw().to_owned());
    }
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    match item.view() {
        View::Message { text, phase, .. } => {
            if text.is_empty() {
                return None;
            }
            object.string("type", "message");
            object.string("role", "assistant");
            object.string("content", text);
            if let Some(phase) = phase {
                object.string("phase", phase);
            }
        }
        View::Call(call) => {
            let (kind, key) = if call.is_custom {
                ("custom_tool_call", "input")
            } else {
                ("function_call", "arguments")
            };
            object.string("type", kind);
            let id = body::provider_id(call, calls);
            object.string("call_id", id);
            object.string("name", &call.name);
            object.string(key, &call.arguments);
        }
        View::Reasoning { .. } | View::Other { .. } => return None,
    }
    object.end();
    Some(json)
}

/// Whether reasoning can go back: the provider knows an item without encrypted content only if it was stored there.
fn is_encrypted(raw: &str) -> bool {
    parsed(raw.as_bytes()).is_ok_and(|tape| {
        member(tape.root(), "encrypted_content").is_some_and(|content| content.kind().is_string())
    })
}
