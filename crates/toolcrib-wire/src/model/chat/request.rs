//! Writes requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, Content, canonical_json};

use super::super::body;
use super::super::conversation::OpenCall;
use super::super::item::{Input, Item, ModelItem, Role, View};
use super::super::json::{ObjectWriter, parsed, write_string};
use super::super::{RequestError, RequestHead, ToolChoice, Wire};
use super::completion::is_message;
use crate::openai_tool_message;
use crate::results::{base64, data_url};

/// The members that this file writes.
const OWN: [&str; 13] = [
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "reasoning_effort",
    "prompt_cache_key",
    "tools",
    "parallel_tool_calls",
    "messages",
    "tool_choice",
    "n",
];

/// Writes everything before the first item.
pub(in super::super) fn write_head(
    head: &RequestHead,
    out: &mut String,
) -> Result<(), RequestError> {
    let mut members = ObjectWriter::new(out);
    members.string("model", &head.model);
    if head.stream {
        members.raw("stream", "true");
        if head.chat.stream_usage {
            members.raw("stream_options", r#"{"include_usage":true}"#);
        }
    }
    if let Some(limit) = head.max_output_tokens {
        let key = if head.chat.max_tokens { "max_tokens" } else { "max_completion_tokens" };
        members.raw(key, &limit.to_string());
    }
    if let Some(temperature) = head.temperature {
        members.raw("temperature", &Value::from(temperature).to_string());
    }
    if let Some(effort) = &head.reasoning_effort {
        members.string("reasoning_effort", effort);
    }
    if let Some(key) = &head.cache_key {
        members.string("prompt_cache_key", key);
    }
    body::write_extra(head, &OWN, &[], &mut members)?;
    body::write_openai_tools(head, &mut members);
    members.key("messages").push('[');
    if let Some(instructions) = &head.instructions {
        let mut message = ObjectWriter::new(out);
        message.string("role", system_role(head));
        message.string("content", instructions);
        message.end();
    }
    Ok(())
}

/// Writes everything after the last item.
pub(in super::super) fn write_tail(head: &RequestHead, choice: &ToolChoice, out: &mut String) {
    body::write_openai_tail(
        head,
        choice,
        |name| json!({"type": "function", "function": {"name": name}}),
        out,
    );
}

/// Writes items that were pushed together. What the model said in one go becomes one message.
pub(in super::super) fn write_items(
    head: &RequestHead,
    items: &[Item],
    calls: &BTreeMap<CallId, OpenCall>,
    out: &mut String,
) {
    let groups =
        items.chunk_by(|one, next| matches!((one, next), (Item::Model(_), Item::Model(_))));
    for group in groups {
        let mut message = String::new();
        match &group[0] {
            Item::Model(_) => {
                let said = group.iter().filter_map(|item| match item {
                    Item::Model(item) => Some(item),
                    _ => None,
                });
                write_answer(head, &said.collect::<Vec<_>>(), calls, &mut message);
            }
            Item::Input(input) => write_input(head, input, &mut message),
            Item::Result(result) => {
                let mut tool = openai_tool_message(result);
                if let Some(call) = calls.get(result.call_id()) {
                    tool["tool_call_id"] = call.provider_id.as_str().into();
                }
                message = canonical_json(&tool);
            }
        }
        if message.is_empty() {
            continue;
        }
        body::separate(out);
        out.push_str(&message);
    }
}

fn system_role(head: &RequestHead) -> &'static str {
    if head.chat.developer_role { "developer" } else { "system" }
}

fn write_input(head: &RequestHead, input: &Input, out: &mut String) {
    let mut message = ObjectWriter::new(out);
    message.string(
        "role",
        match input.role {
            Role::User => "user",
            Role::System => system_role(head),
        },
    );
    body::write_content(head, input, part, &mut message);
    message.end();
}

/// A part of a user's message.
fn part(content: &Content) -> Value {
    match content {
        Content::Image { data, mime_type } => {
            json!({"type": "image_url", "image_url": {"url": data_url(data, mime_type)}})
        }
        Content::Audio { data, mime_type } => {
            let format = match mime_type.as_str() {
                "audio/mpeg" | "audio/mp3" => "mp3",
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                _ => return json!({"type": "text", "text": content.as_text()}),
            };
            json!({"type": "input_audio", "input_audio": {"data": base64(data), "format": format}})
        }
        Content::Blob { uri, data, mime_type } if mime_type == "application/pdf" => {
            let name = uri.rsplit('/').next().unwrap_or(uri);
            json!({"type": "file", "file": {"filename": name, "file_data": data_url(data, mime_type)}})
        }
        other => json!({"type": "text", "text": other.as_text()}),
    }
}

/// Writes the parts of one answer as one message.
fn write_answer(
    head: &RequestHead,
    said: &[&ModelItem],
    calls: &BTreeMap<CallId, OpenCall>,
    out: &mut String,
) {
    let is_own = |item: &ModelItem| item.came_from(Wire::Chat, &head.source);
    let mut json = String::new();
    let mut message = ObjectWriter::new(&mut json);
    let mut is_empty = true;
    let messages: Vec<_> = said.iter().filter(|item| is_message(item)).collect();
    match messages.as_slice() {
        [only] if is_own(only) => {
            copy_members(only.raw(), &mut message);
            is_empty = false;
        }
        all => {
            let texts = all.iter().filter_map(|item| match item.view() {
                View::Message { text, .. } => Some(text.as_str()),
                _ => None,
            });
            let text: String = texts.collect();
            message.string("role", "assistant");
            if text.is_empty() {
                message.raw("content", "null");
            } else {
                message.string("content", &text);
                is_empty = false;
            }
        }
    }
    for item in said.iter().filter(|item| is_own(item) && head.chat.send_reasoning) {
        if matches!(item.view(), View::Reasoning { .. }) {
            copy_members(item.raw(), &mut message);
            is_empty = false;
        }
    }
    let mut list = String::new();
    for item in said {
        if let View::Call(call) = item.view() {
            list.push(if list.is_empty() { '[' } else { ',' });
            if is_own(item) {
                list.push_str(item.raw());
            } else {
                let id = body::provider_id(call, calls);
                write_call(id, &call.name, &call.arguments, call.is_custom, &mut list);
            }
        }
    }
    if !list.is_empty() {
        list.push(']');
        message.raw("tool_calls", &list);
        is_empty = false;
    }
    message.end();
    if !is_empty {
        out.push_str(&json);
    }
}

fn write_call(id: &str, name: &str, arguments: &str, is_custom: bool, out: &mut String) {
    let (kind, key) = if is_custom { ("custom", "input") } else { ("function", "arguments") };
    let mut call = ObjectWriter::new(out);
    call.string("id", id);
    call.string("type", kind);
    let mut body = ObjectWriter::new(call.key(kind));
    body.string("name", name);
    write_string(body.key(key), arguments);
    body.end();
    call.end();
}

/// Copies the members of an object byte for byte.
fn copy_members(raw: &str, into: &mut ObjectWriter<'_>) {
    // The item was read from this text, so it parses.
    let Ok(tape) = parsed(raw.as_bytes()) else { return };
    for (name, value) in tape.root().members() {
        into.raw(&name.key_text(), value.source());
    }
}
