//! Writes requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_tool::{CallId, Content, canonical_json};

use super::super::body;
use super::super::conversation::OpenCall;
use super::super::item::{Item, ModelItem, View};
use super::super::json::ObjectWriter;
use super::super::{RequestError, RequestHead, ToolChoice, Wire};
use super::block::input;
use crate::anthropic_tool_result;
use crate::results::anthropic::content;

/// The limit on output tokens if the head has none, since the API needs one.
const DEFAULT_MAX_TOKENS: u64 = 8_192;

/// The members that this file writes.
const OWN: [&str; 11] = [
    "model",
    "max_tokens",
    "stream",
    "temperature",
    "thinking",
    "output_config",
    "cache_control",
    "system",
    "tools",
    "messages",
    "tool_choice",
];

/// Those that it writes for a reasoning effort: older models take a budget for thinking instead.
const OF_EFFORT: [&str; 2] = ["thinking", "output_config"];

/// The mark of a prefix that the provider is to cache.
const CACHE: &str = r#"{"type":"ephemeral"}"#;

/// Writes everything before the first item.
pub(in super::super) fn write_head(
    head: &RequestHead,
    out: &mut String,
) -> Result<(), RequestError> {
    let mut members = ObjectWriter::new(out);
    members.string("model", &head.model);
    members.raw("max_tokens", &head.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS).to_string());
    if head.stream {
        members.raw("stream", "true");
    }
    if let Some(temperature) = head.temperature {
        members.raw("temperature", &Value::from(temperature).to_string());
    }
    if let Some(effort) = &head.reasoning_effort {
        members.raw("thinking", r#"{"type":"adaptive"}"#);
        members.raw("output_config", &json!({"effort": effort}).to_string());
    }
    body::write_extra(head, &OWN, &OF_EFFORT, &mut members)?;
    if head.prompt_cache {
        // Moves with the last item without a mark in the items, whose bytes stay the same.
        members.raw("cache_control", CACHE);
    }
    if let Some(instructions) = &head.instructions {
        let list = members.key("system");
        list.push('[');
        let mut block = ObjectWriter::new(list);
        block.string("type", "text");
        block.string("text", instructions);
        if head.prompt_cache {
            block.raw("cache_control", CACHE);
        }
        block.end();
        list.push(']');
    }
    if let Some((last, others)) = head.tools.split_last() {
        let mut tools: Vec<String> = others.iter().map(canonical_json).collect();
        let mut last = last.clone();
        if head.prompt_cache && last.is_object() {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
        tools.push(canonical_json(&last));
        members.raw("tools", &format!("[{}]", tools.join(",")));
    }
    members.key("messages").push('[');
    Ok(())
}

/// Writes everything after the last item.
pub(in super::super) fn write_tail(head: &RequestHead, choice: &ToolChoice, out: &mut String) {
    out.push(']');
    let serial = head.parallel_calls == Some(false);
    let kind = match choice {
        ToolChoice::Auto if serial => Some("auto"),
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none"),
        ToolChoice::Required => Some("any"),
        ToolChoice::Tool(_) => Some("tool"),
    };
    if let Some(kind) = kind.filter(|_| !head.tools.is_empty()) {
        out.push_str(r#","tool_choice":"#);
        let mut object = ObjectWriter::new(out);
        object.string("type", kind);
        if let ToolChoice::Tool(name) = choice {
            object.string("name", name);
        }
        if serial && kind != "none" {
            object.raw("disable_parallel_tool_use", "true");
        }
        object.end();
    }
    out.push('}');
}

/// Writes items that were pushed together: what the model said is one message, and so are results with the input after
/// them, since the API wants all results of a message in the next one.
pub(in super::super) fn write_items(
    head: &RequestHead,
    items: &[Item],
    calls: &BTreeMap<CallId, OpenCall>,
    out: &mut String,
) {
    let is_said = |item: &Item| matches!(item, Item::Model(_));
    for group in items.chunk_by(|one, next| is_said(one) == is_said(next)) {
        let mut blocks = Vec::new();
        for item in group {
            match item {
                Item::Model(item) => blocks.extend(said(head, item, calls)),
                Item::Result(result) => {
                    let mut block = anthropic_tool_result(result);
                    if let Some(call) = calls.get(result.call_id()) {
                        block["tool_use_id"] = call.provider_id.as_str().into();
                    }
                    blocks.push(canonical_json(&block));
                }
                Item::Input(input) => {
                    let parts = input.content.iter().filter(|part| !is_blank(part));
                    blocks.extend(parts.map(|part| canonical_json(&block(head, part))));
                }
            }
        }
        if blocks.is_empty() {
            continue;
        }
        body::separate(out);
        let mut message = ObjectWriter::new(out);
        message.string("role", if is_said(&group[0]) { "assistant" } else { "user" });
        message.raw("content", &format!("[{}]", blocks.join(",")));
        message.end();
    }
}

/// The API refuses text blocks without visible text.
fn is_blank(part: &Content) -> bool {
    matches!(part, Content::Text(text) if text.trim().is_empty())
}

fn block(head: &RequestHead, part: &Content) -> Value {
    if head.accepts_media { content(part) } else { json!({"type": "text", "text": part.as_text()}) }
}

/// A block that the model wrote: unchanged for its source, from its view for others.
fn said(
    head: &RequestHead,
    item: &ModelItem,
    calls: &BTreeMap<CallId, OpenCall>,
) -> Option<String> {
    if let View::Message { text, .. } = item.view()
        && text.trim().is_empty()
    {
        return None;
    }
    if item.came_from(Wire::Anthropic, &head.source) {
        return Some(item.raw().to_owned());
    }
    let mut json = String::new();
    let mut block = ObjectWriter::new(&mut json);
    match item.view() {
        View::Message { text, .. } => {
            block.string("type", "text");
            block.string("text", text);
        }
        View::Call(call) => {
            let id = body::provider_id(call, calls);
            block.string("type", "tool_use");
            block.string("id", id);
            block.string("name", &call.name);
            if call.is_custom {
                block.raw("input", call.to_tool_call("").arguments().as_str());
            } else {
                block.raw("input", &input(&call.arguments));
            }
        }
        View::Reasoning { .. } | View::Other { .. } => return None,
    }
    block.end();
    Some(json)
}
