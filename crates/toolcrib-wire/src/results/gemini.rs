//! Results for Gemini.

use serde_json::{Value, json};
use toolcrib_tool::{Content, Data, ToolOutput, ToolResult};

use super::base64;

/// The `functionResponse` part that answers a call.
///
/// `name` is Gemini's name for the tool ([`NameMap::to_provider`](crate::NameMap::to_provider)). The response is
/// `{output}` for a success, with the data if there is any and the text otherwise, and `{error}` for a failure. A
/// number in the data that a [`Value`] cannot hold becomes a string with its digits. Pictures, sounds and files are
/// separate `parts`.
pub fn gemini_function_response(name: &str, result: &ToolResult) -> Value {
    let response = if result.is_success() {
        let output = result.output();
        let data = output.and_then(ToolOutput::exact_data).map(Data::to_shown);
        let has_text = output.is_some_and(|output| output.content().iter().any(is_text));
        match data {
            Some(data) if has_text => json!({"output": data, "text": result.text()}),
            Some(data) => json!({"output": data}),
            None => json!({"output": result.text()}),
        }
    } else {
        json!({"error": result.text()})
    };
    let mut function = json!({"id": result.call_id().as_str(), "name": name, "response": response});
    let parts: Vec<Value> = result
        .output()
        .map(ToolOutput::content)
        .unwrap_or_default()
        .iter()
        .filter_map(inline)
        .collect();
    if !parts.is_empty() {
        function["parts"] = parts.into();
    }
    json!({"functionResponse": function})
}

fn is_text(part: &Content) -> bool {
    matches!(part, Content::Text(_) | Content::TextFile { .. })
}

fn inline(part: &Content) -> Option<Value> {
    match part {
        Content::Image { data, mime_type }
        | Content::Audio { data, mime_type }
        | Content::Blob { data, mime_type, .. } => {
            Some(json!({"inlineData": {"mimeType": mime_type, "data": base64(data)}}))
        }
        _ => None,
    }
}
