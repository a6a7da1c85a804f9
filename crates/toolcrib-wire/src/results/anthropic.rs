//! Results for Anthropic's Messages API.

use serde_json::{Value, json};
use toolcrib_tool::{Content, ToolResult};

use super::{base64, parts};

/// The picture types that the API accepts.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The `tool_result` block that answers a call.
///
/// Contains texts, pictures and PDF files completely; other parts are named in brackets. `is_error: true` is present
/// only for a failure.
pub fn anthropic_tool_result(result: &ToolResult) -> Value {
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": result.call_id().as_str(),
    });
    let parts = parts(result);
    if !parts.is_empty() {
        block["content"] = parts.iter().map(|part| content(part)).collect();
    }
    if !result.is_success() {
        block["is_error"] = true.into();
    }
    block
}

/// A part of a message or a result.
pub(crate) fn content(part: &Content) -> Value {
    let source = |data: &[u8], mime_type: &str| json!({"type": "base64", "media_type": mime_type, "data": base64(data)});
    match part {
        Content::Image { data, mime_type } if IMAGES.contains(&mime_type.as_str()) => {
            json!({"type": "image", "source": source(data, mime_type)})
        }
        Content::Blob { data, mime_type, .. } if mime_type == "application/pdf" => {
            json!({"type": "document", "source": source(data, mime_type)})
        }
        other => json!({"type": "text", "text": other.as_text()}),
    }
}
