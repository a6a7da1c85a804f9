//! Results for the Model Context Protocol.

use serde_json::{Map, Value, json};
use toolcrib_tool::{Content, ToolOutput, ToolResult};

use super::{base64, parts};
use crate::mcp::{McpData, structured_content};

/// The `_meta` key of a failed result that holds its kind, for example `"invalid_args"`.
pub const META_ERROR_KIND: &str = "toolcrib/error_kind";

/// The `_meta` key that is `true` where the content was cut to fit its budget; absent otherwise.
pub const META_TRUNCATED: &str = "toolcrib/truncated";

/// The `_meta` key under which the notes of a tool's output stand, as an object.
pub const META_NOTES: &str = "toolcrib/notes";

/// The `CallToolResult` that answers a call: every part, the data and the notes. A duration has no
/// place in it, and a failure's hints are in its text.
///
/// `output_schema` is the called tool's. What a failed call had produced need not fit it, so that
/// a failure of a tool with an output schema has no `structuredContent`.
pub fn mcp_call_tool_result(
    result: &ToolResult,
    output_schema: Option<&Value>,
    takes: McpData,
) -> Value {
    let content: Vec<Value> = parts(result).iter().map(block).collect();
    let mut answer = json!({"content": content, "isError": !result.is_success()});
    let promised = result.is_success() || output_schema.is_none();
    if let Some(data) = result.data().filter(|_| promised) {
        answer["structuredContent"] = structured_content(data, output_schema, takes);
    }
    let meta = meta(result);
    if !meta.is_empty() {
        answer["_meta"] = Value::Object(meta);
    }
    answer
}

fn block(part: &Content) -> Value {
    match part {
        Content::Image { data, mime_type } => {
            json!({"type": "image", "data": base64(data), "mimeType": mime_type})
        }
        Content::Audio { data, mime_type } => {
            json!({"type": "audio", "data": base64(data), "mimeType": mime_type})
        }
        Content::Link { uri, name, mime_type } => {
            let mut link = json!({"type": "resource_link", "uri": uri, "name": name});
            if let Some(mime_type) = mime_type {
                link["mimeType"] = mime_type.as_str().into();
            }
            link
        }
        Content::Blob { uri, data, mime_type } => json!({
            "type": "resource",
            "resource": {"uri": uri, "mimeType": mime_type, "blob": base64(data)},
        }),
        // A kind of part that this version does not know is still told in words.
        other => json!({"type": "text", "text": other.as_text()}),
    }
}

/// What programs may want to know and models need not.
fn meta(result: &ToolResult) -> Map<String, Value> {
    let mut meta = Map::new();
    if let Some(kind) = result.error_kind() {
        meta.insert(META_ERROR_KIND.to_owned(), kind.as_str().into());
    }
    if result.truncated() {
        meta.insert(META_TRUNCATED.to_owned(), true.into());
    }
    if let Some(notes) = result.output().map(ToolOutput::meta).filter(|notes| !notes.is_empty()) {
        meta.insert(META_NOTES.to_owned(), Value::Object(notes.clone()));
    }
    meta
}
