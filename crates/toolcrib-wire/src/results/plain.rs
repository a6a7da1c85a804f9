//! The plain record that any program can read.

use serde_json::{Value, json};
use toolcrib_tool::{Data, ToolOutput, ToolResult, canonical_json};

use super::base64;
use toolcrib_tool::Content;
#[cfg(doc)]
use toolcrib_tool::ToolError;

/// The record `{success, output, data?, error?, content?}`.
///
/// `output` is the text; `error` is [`ToolError::to_value`]; `content` contains the parts if there is more than one
/// text. Absent fields have no key. A number in the data that a [`Value`] cannot hold becomes a string with its digits.
///
/// ```
/// use std::time::Duration;
/// use serde_json::json;
/// use toolcrib_tool::{CallId, ToolOutput, ToolResult};
/// use toolcrib_wire::plain_result;
///
/// let output = ToolOutput::from("4").with_data(4);
/// let result = ToolResult::success(CallId::new("c1"), "add", output, Duration::ZERO);
/// assert_eq!(plain_result(&result), json!({"success": true, "output": "4", "data": 4}));
/// ```
pub fn plain_result(result: &ToolResult) -> Value {
    record(result, result.exact_data().map(Data::to_shown))
}

/// The record as compact JSON with every number as written.
pub(super) fn plain_json(result: &ToolResult) -> String {
    canonical_json(&record(result, result.exact_data().map(|data| data.protected().clone())))
}

fn record(result: &ToolResult, data: Option<Value>) -> Value {
    let mut record = json!({
        "success": result.is_success(),
        "output": result.output().map(ToolOutput::text).unwrap_or_default(),
    });
    if let Some(data) = data {
        record["data"] = data;
    }
    if let Some(error) = result.error() {
        record["error"] = error.to_value();
    }
    let parts = result.output().map(ToolOutput::content).unwrap_or_default();
    if !matches!(parts, [] | [Content::Text(_)]) {
        record["content"] = parts.iter().map(part).collect();
    }
    record
}

fn part(part: &Content) -> Value {
    match part {
        Content::Image { data, mime_type } => {
            json!({"type": "image", "mime_type": mime_type, "data": base64(data)})
        }
        Content::Audio { data, mime_type } => {
            json!({"type": "audio", "mime_type": mime_type, "data": base64(data)})
        }
        Content::Link(link) => {
            let mut members = link.to_members();
            members.insert("type".to_owned(), "link".into());
            Value::Object(members)
        }
        Content::TextFile { uri, text, mime_type } => {
            let mut file = json!({"type": "text_file", "uri": uri, "text": text});
            if let Some(mime_type) = mime_type {
                file["mime_type"] = mime_type.as_str().into();
            }
            file
        }
        Content::Blob { uri, data, mime_type } => {
            json!({"type": "blob", "uri": uri, "mime_type": mime_type, "data": base64(data)})
        }
        // A kind of part that this version does not know is described in words.
        other => json!({"type": "text", "text": other.as_text()}),
    }
}
