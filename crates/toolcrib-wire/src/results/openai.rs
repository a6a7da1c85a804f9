//! Results for OpenAI's two APIs, and the record of a call.

use serde_json::{Value, json};
use toolcrib_tool::{Content, ToolResult};

use super::plain::plain_json;
#[cfg(doc)]
use super::plain::plain_result;
use super::{data_url, parts};

/// The record of a finished call: `{id, type: "function", function: {name, arguments}, result,
/// success, skipped, execution_time}`.
///
/// `arguments` and `result` are JSON texts (`arguments` as received, with `{}` for empty text; `result` is the record
/// of [`plain_result`]); `execution_time` is in seconds. `skipped` means that the tool did not run because another call
/// in the batch was equal.
pub fn openai_call_record(arguments: &str, result: &ToolResult) -> Value {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    json!({
        "id": result.call_id().as_str(),
        "type": "function",
        "function": {"name": result.tool(), "arguments": arguments},
        "result": plain_json(result),
        "success": result.is_success(),
        "skipped": result.skipped(),
        "execution_time": result.duration().as_secs_f64(),
    })
}

/// The message of role `tool` that answers a call of chat completions. It contains only text: other parts are named in
/// brackets.
pub fn openai_tool_message(result: &ToolResult) -> Value {
    json!({
        "role": "tool",
        "tool_call_id": result.call_id().as_str(),
        "content": result.text(),
    })
}

/// The `function_call_output` item that answers a call of the Responses API: one text, or a list
/// of texts, images and files. Sounds and links are named in brackets.
pub fn responses_call_output(result: &ToolResult) -> Value {
    let parts = parts(result);
    let plain =
        parts.iter().all(|part| !matches!(&**part, Content::Image { .. } | Content::Blob { .. }));
    let output = if plain {
        Value::from(result.text())
    } else {
        parts.iter().map(|part| item(part)).collect()
    };
    json!({"type": "function_call_output", "call_id": result.call_id().as_str(), "output": output})
}

/// A part of a message or an output of the Responses API.
pub(crate) fn item(part: &Content) -> Value {
    match part {
        Content::Image { data, mime_type } => {
            json!({"type": "input_image", "image_url": data_url(data, mime_type)})
        }
        Content::Blob { uri, data, mime_type } => json!({
            "type": "input_file",
            "filename": uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri),
            "file_data": data_url(data, mime_type),
        }),
        other => json!({"type": "input_text", "text": other.as_text()}),
    }
}
