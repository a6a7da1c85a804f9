//! Writes requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, Content, ToolResult, canonical_json};

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

/// Writes everything before the first item. Nothing is stored at the provider: the conversation is sent whole.
pub(in super::super) fn write_head(
    head: &RequestHead,
    out: &mut String,
) -> Result<(), RequestError> {
    let mut body = ObjectWriter::new(out);
    body.string("model", &head.model);
    if head.stream {
        body.raw("stream", "true");
    }
    body.raw("store", "false");
    if let Some(limit) = head.max_output_tokens {
        body.raw("max_output_tokens", &limit.to_string());
    }
    if let Some(temperature) = head.temperature {
        body.raw("temperature", &Value::from(temperature).to_string());
    }
    if let Some(effort) = &head.reasoning_effort {
        // Without its encrypted content, reasoning cannot be sent back when nothing is stored.
        body.raw("include", r#"["reasoning.encrypted_content"]"#);
        body.raw("reasoning", &json!({"effort": effort}).to_string());
    }
    if let Some(key) = &head.cache_key {
        body.string("prompt_cache_key", key);
    }
    for (key, value) in &head.extra {
        let is_own = OWN.contains(&key.as_str());
        let is_free = matches!(key.as_str(), "include" | "reasoning");
        if is_own && !(is_free && head.reasoning_effort.is_none()) {
            return Err(RequestError::own_member(key));
        }
        body.raw(key, &canonical_json(value));
    }
    if let Some(instructions) = &head.instructions {
        body.string("instructions", instructions);
    }
    if !head.tools.is_empty() {
        let tools: Vec<String> = head.tools.iter().map(canonical_json).collect();
        body.raw("tools", &format!("[{}]", tools.join(",")));
        if let Some(parallel) = head.parallel_calls {
            body.raw("parallel_tool_calls", if parallel { "true" } else { "false" });
        }
    }
    body.key("input").push('[');
    Ok(())
}

/// Writes everything after the last item.
pub(in super::super) fn write_tail(head: &RequestHead, choice: &ToolChoice, out: &mut String) {
    out.push(']');
    if !head.tools.is_empty() {
        match choice {
            ToolChoice::Auto => {}
            ToolChoice::None => out.push_str(r#","tool_choice":"none""#),
            ToolChoice::Required => out.push_str(r#","tool_choice":"required""#),
            ToolChoice::Tool(name) => {
                let choice = json!({"type": "function", "name": name});
                out.push_str(r#","tool_choice":"#);
                out.push_str(&canonical_json(&choice));
            }
        }
    }
    out.push('}');
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
        if !out.ends_with('[') {
            out.push(',');
        }
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
    let is_text = |part: &Content| matches!(part, Content::Text(_));
    if !head.accepts_media || input.role == Role::System || input.content.iter().all(is_text) {
        let texts: Vec<_> = input.content.iter().map(Content::as_text).collect();
        message.string("content", &texts.join("\n\n"));
    } else {
        let parts: Vec<Value> = input.content.iter().map(part).collect();
        message.raw("content", &canonical_json(&Value::from(parts)));
    }
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
            let id = calls.get(&call.id).map_or(call.id.as_str(), |open| &open.provider_id);
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
