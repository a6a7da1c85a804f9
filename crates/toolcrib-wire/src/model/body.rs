//! Members of requests that several formats write alike.

use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib_tool::{CallId, Content, canonical_json};

use super::conversation::OpenCall;
use super::item::{Input, ModelCall, Role};
use super::json::ObjectWriter;
use super::{RequestError, RequestHead, ToolChoice};

/// Writes the members that the host adds. Those that a format writes itself (`own`) are refused, except those that
/// it writes for a reasoning effort only (`of_effort`), if there is none.
pub(super) fn write_extra(
    head: &RequestHead,
    own: &[&str],
    of_effort: &[&str],
    body: &mut ObjectWriter<'_>,
) -> Result<(), RequestError> {
    for (key, value) in &head.extra {
        let is_free = head.reasoning_effort.is_none() && of_effort.contains(&key.as_str());
        if own.contains(&key.as_str()) && !is_free {
            return Err(RequestError::own_member(key));
        }
        body.raw(key, &canonical_json(value));
    }
    Ok(())
}

/// Writes `tools` and `parallel_tool_calls`, as the two formats of OpenAI have them.
pub(super) fn write_openai_tools(head: &RequestHead, body: &mut ObjectWriter<'_>) {
    if head.tools.is_empty() {
        return;
    }
    let tools: Vec<String> = head.tools.iter().map(canonical_json).collect();
    body.raw("tools", &format!("[{}]", tools.join(",")));
    if let Some(parallel) = head.parallel_calls {
        body.raw("parallel_tool_calls", if parallel { "true" } else { "false" });
    }
}

/// Ends a body whose items were written with `tool_choice`, as the two formats of OpenAI have it; they differ in how
/// they name one tool.
pub(super) fn write_openai_tail(
    head: &RequestHead,
    choice: &ToolChoice,
    named: impl Fn(&str) -> Value,
    out: &mut String,
) {
    out.push(']');
    let choice = match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(named(name)),
    };
    if let Some(choice) = choice.filter(|_| !head.tools.is_empty()) {
        out.push_str(r#","tool_choice":"#);
        out.push_str(&canonical_json(&choice));
    }
    out.push('}');
}

/// Writes the `content` of an input: one text if it has nothing else or nothing else is accepted, otherwise its
/// parts, each as `part` makes it.
pub(super) fn write_content(
    head: &RequestHead,
    input: &Input,
    part: impl Fn(&Content) -> Value,
    message: &mut ObjectWriter<'_>,
) {
    let is_text = |part: &Content| matches!(part, Content::Text(_));
    if !head.accepts_media || input.role == Role::System || input.content.iter().all(is_text) {
        let texts: Vec<_> = input.content.iter().map(Content::as_text).collect();
        message.string("content", &texts.join("\n\n"));
    } else {
        let parts: Vec<Value> = input.content.iter().map(part).collect();
        message.raw("content", &canonical_json(&Value::from(parts)));
    }
}

/// The id under which the provider knows a call.
pub(super) fn provider_id<'a>(
    call: &'a ModelCall,
    calls: &'a BTreeMap<CallId, OpenCall>,
) -> &'a str {
    calls.get(&call.id).map_or(call.id.as_str(), |open| &open.provider_id)
}

/// Separates an item from the one before it.
pub(super) fn separate(out: &mut String) {
    if !out.ends_with('[') {
        out.push(',');
    }
}
