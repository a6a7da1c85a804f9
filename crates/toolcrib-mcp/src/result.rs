//! The answer to a call as MCP knows it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Resource, ResourceContents};
use serde_json::{Map, Value};
use toolcrib_tool::{Content, ToolDefinition, ToolOutput, ToolResult};

use crate::revision::Revision;
use crate::structured::structured_content;

/// The `_meta` key of a failed result that holds its kind, for example `"invalid_args"`.
pub const META_ERROR_KIND: &str = "toolcrib/error_kind";

/// The `_meta` key that is `true` where the content was cut to fit its budget; absent otherwise.
pub const META_TRUNCATED: &str = "toolcrib/truncated";

/// The `_meta` key under which the notes of a tool's output stand, as an object.
pub const META_NOTES: &str = "toolcrib/notes";

/// Translates a result; `definition` is the called tool's, if there is such a tool.
pub(crate) fn call_tool_result(
    result: &ToolResult,
    definition: Option<&ToolDefinition>,
    revision: Revision,
) -> CallToolResult {
    let schema = definition.and_then(ToolDefinition::output_schema);
    let parts = result.output().map(ToolOutput::content).unwrap_or_default();
    let mut answer = if !result.is_success() {
        CallToolResult::error(vec![ContentBlock::text(result.text())])
    } else if parts.is_empty() {
        // Data is repeated as text for clients that read only text.
        let text = result.text();
        let content = if text.is_empty() { Vec::new() } else { vec![ContentBlock::text(text)] };
        CallToolResult::success(content)
    } else {
        CallToolResult::success(parts.iter().map(block).collect())
    };
    // What a failed call had produced need not fit the schema that success promises.
    let promised = result.is_success() || schema.is_none();
    answer.structured_content =
        result.data().filter(|_| promised).map(|data| structured_content(data, schema, revision));
    answer.meta = meta(result);
    answer
}

/// One part of the content. Binary data is encoded here, at the edge that needs it.
fn block(part: &Content) -> ContentBlock {
    match part {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { data, mime_type } => ContentBlock::image(BASE64.encode(data), mime_type),
        Content::Audio { data, mime_type } => ContentBlock::audio(BASE64.encode(data), mime_type),
        Content::Link { uri, name, mime_type } => {
            let mut link = Resource::new(uri, name);
            link.mime_type.clone_from(mime_type);
            ContentBlock::resource_link(link)
        }
        Content::Blob { uri, data, mime_type } => ContentBlock::resource(
            ResourceContents::blob(BASE64.encode(data), uri).with_mime_type(mime_type),
        ),
        // A kind of part that this version does not know is still told in words.
        other => ContentBlock::text(other.as_text()),
    }
}

/// What programs may want to know and models need not.
fn meta(result: &ToolResult) -> Option<MetaObject> {
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
    (!meta.is_empty()).then_some(MetaObject(meta))
}
