//! The items of a response's output.

use serde_json::Value;

/// The specification that a stream follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's API.
    OpenAi,
    /// The Open Responses specification.
    Open,
}

/// The types that both specifications have.
pub(super) const COMMON: [&str; 5] =
    ["message", "function_call", "function_call_output", "reasoning", "compaction"];

/// Further types of OpenAI's API.
const OF_OPENAI: [&str; 12] = [
    "file_search_call",
    "web_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
];

/// The members that an item of a type has, whatever its state. Those in the second list may be null.
type Shape = (&'static [&'static str], &'static [&'static str]);

fn shape(kind: &str) -> Shape {
    match kind {
        "message" => (&["status", "role", "content"], &[]),
        "reasoning" => (&["summary"], &[]),
        "compaction" => (&["encrypted_content"], &[]),
        "function_call" => (&["status", "call_id", "name", "arguments"], &[]),
        "custom_tool_call" => (&["call_id", "name", "input"], &[]),
        "function_call_output" | "custom_tool_call_output" => {
            (&["status", "call_id", "output"], &[])
        }
        "local_shell_call" => (&["status", "call_id", "action"], &[]),
        "local_shell_call_output" => (&["output"], &[]),
        "file_search_call" => (&["status", "queries"], &["results"]),
        "web_search_call" => (&["status", "action"], &[]),
        "code_interpreter_call" => (&["status", "container_id"], &["code", "outputs"]),
        "image_generation_call" => (&["status"], &["result"]),
        "mcp_call" => {
            (&["server_label", "name", "arguments"], &["output", "error", "approval_request_id"])
        }
        "mcp_list_tools" => (&["server_label", "tools"], &[]),
        "mcp_approval_request" => (&["server_label", "name", "arguments"], &[]),
        _ => (&[], &[]),
    }
}

/// The states of an item of a type, the last ones; none for a type without.
fn states(kind: &str) -> &'static [&'static str] {
    match kind {
        "message"
        | "function_call"
        | "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call"
        | "local_shell_call_output"
        | "custom_tool_call" => &["completed", "incomplete"],
        "web_search_call" | "image_generation_call" => &["completed", "failed"],
        "file_search_call" | "code_interpreter_call" | "mcp_call" => {
            &["completed", "incomplete", "failed"]
        }
        _ => &[],
    }
}

/// The type of an item, without the prefix that the specification asks of types that it does not have.
pub(super) fn kind_of(dialect: Dialect, item: &Value) -> Result<&str, String> {
    let kind = expect_text(item, "type")?;
    if COMMON.contains(&kind) {
        return Ok(kind);
    }
    match dialect {
        Dialect::OpenAi if OF_OPENAI.contains(&kind) => Ok(kind),
        Dialect::Open => kind
            .strip_prefix("toolcrib:")
            .filter(|kind| OF_OPENAI.contains(kind))
            .ok_or_else(|| format!("the type {kind:?} must be prefixed")),
        Dialect::OpenAi => Err(format!("there is no type {kind:?}")),
    }
}

/// Checks an item, in whatever state it is.
pub(super) fn check_item(dialect: Dialect, item: &Value) -> Result<(), String> {
    let kind = kind_of(dialect, item)?;
    if expect_text(item, "id")?.is_empty() {
        return Err("an item must have an id".to_owned());
    }
    let (required, nullable) = shape(kind);
    for name in required {
        if item.get(name).is_none_or(Value::is_null) {
            return Err(format!("`{name}` of a {kind} must not be missing or null: {item}"));
        }
    }
    for name in nullable {
        if item.get(name).is_none() {
            return Err(format!("`{name}` of a {kind} must be there, if only as null: {item}"));
        }
    }
    for name in ["call_id", "name", "arguments", "input", "server_label", "encrypted_content"] {
        if item.get(name).is_some() {
            expect_text(item, name)?;
        }
    }
    if kind == "message" {
        if !matches!(item["role"].as_str(), Some("assistant" | "user" | "system" | "developer")) {
            return Err(format!("a message must have a role: {item}"));
        }
        for part in expect_list(item, "content")? {
            check_part(part)?;
        }
        let phase = item.get("phase").map(Value::as_str);
        if !matches!(phase, None | Some(Some("commentary" | "final_answer"))) {
            return Err(format!("there is no such phase: {item}"));
        }
    }
    for part in item.get("summary").and_then(Value::as_array).into_iter().flatten() {
        check_part(part)?;
    }
    Ok(())
}

/// Checks a part of a message or of reasoning.
pub(super) fn check_part(part: &Value) -> Result<(), String> {
    match expect_text(part, "type")? {
        "output_text" => {
            expect_text(part, "text")?;
            expect_list(part, "annotations")?;
            expect_list(part, "logprobs").map(|_| ())
        }
        "refusal" => expect_text(part, "refusal").map(|_| ()),
        "summary_text" | "input_text" => expect_text(part, "text").map(|_| ()),
        "input_image" | "input_file" => Ok(()),
        other => Err(format!("there is no part of the type {other:?}")),
    }
}

/// Checks an item that is done.
pub(super) fn check_done(dialect: Dialect, item: &Value) -> Result<(), String> {
    check_item(dialect, item)?;
    let kind = kind_of(dialect, item)?;
    let last = states(kind);
    if let Some(status) = item.get("status").filter(|_| !last.is_empty()) {
        let status = status.as_str().unwrap_or_default();
        if !last.contains(&status) {
            return Err(format!("a {kind} that is done cannot be {status:?}"));
        }
    }
    if kind == "mcp_call" {
        let is_failed = item["status"] != "completed";
        if item["output"].is_null() != is_failed {
            return Err(format!("an mcp_call has its output exactly if it is completed: {item}"));
        }
    }
    Ok(())
}

/// The state in which an item is added.
pub(super) fn check_added(dialect: Dialect, item: &Value) -> Result<(), String> {
    check_item(dialect, item)?;
    let kind = kind_of(dialect, item)?;
    let is_open = item["status"] == "in_progress";
    let is_whole = matches!(
        kind,
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output"
    );
    if !states(kind).is_empty() && item.get("status").is_some() && !is_open && !is_whole {
        return Err(format!("a {kind} is in progress when it is added: {item}"));
    }
    for name in ["content", "summary", "arguments", "input"] {
        let is_streamed =
            matches!(kind, "message" | "reasoning" | "function_call" | "custom_tool_call");
        let is_empty = match item.get(name) {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => true,
        };
        if is_streamed && !is_empty {
            return Err(format!("`{name}` of a {kind} must be empty when it is added: {item}"));
        }
    }
    Ok(())
}

pub(super) fn expect_text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("`{name}` must be a string: {value}"))
}

pub(super) fn expect_count(value: &Value, name: &str) -> Result<u64, String> {
    value[name].as_u64().ok_or_else(|| format!("`{name}` must be a whole number: {value}"))
}

pub(super) fn expect_list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let list = value[name].as_array();
    list.map(Vec::as_slice).ok_or_else(|| format!("`{name}` must be a list: {value}"))
}
