//! Results for the Model Context Protocol.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use toolcrib_tool::{
    Content, ErrorKind, KEPT_OUTPUT, Link, ToolError, ToolOutput, ToolResult, exact,
};

use super::{base64, parts};
use crate::mcp::{McpData, structured_content};

/// The `_meta` key of a failed result that holds its kind, for example `"invalid_args"`.
pub const META_ERROR_KIND: &str = "toolcrib/error_kind";

/// The `_meta` key of a failed result with the seconds to wait before repeating the call; absent if unknown.
pub const META_RETRY_AFTER: &str = "toolcrib/retry_after";

/// The `_meta` key that is `true` if the content was cut to fit its budget; otherwise absent.
pub const META_TRUNCATED: &str = "toolcrib/truncated";

/// The `_meta` key for the notes of a tool's output, as an object.
pub const META_NOTES: &str = "toolcrib/notes";

/// The address prefix under which MCP clients read outputs that were cut, followed by the handle. A result that was cut
/// links to its own output.
pub const MCP_OUTPUT_URI: &str = "toolcrib://output/";

/// The `CallToolResult` that answers a call, serializable as JSON: every part, the data and the notes, and from
/// revision 2026-07-28 on the mark that it is complete. A duration has no field in it, and a failure's hints are in its
/// text.
///
/// A number that a [`Value`] cannot hold becomes a string with its digits, unless the text comes from
/// [`to_json`](Self::to_json).
#[derive(Debug, Clone, Copy)]
pub struct McpCallToolResult<'a> {
    result: &'a ToolResult,
    output_schema: Option<&'a Value>,
    takes: McpData,
    protected: bool,
}

impl<'a> McpCallToolResult<'a> {
    /// The result for a client whose revision accepts `takes`.
    ///
    /// `output_schema` is the called tool's. The partial output of a failed call need not fit it, so a failure of a
    /// tool with an output schema has no `structuredContent`.
    pub fn new(result: &'a ToolResult, output_schema: Option<&'a Value>, takes: McpData) -> Self {
        Self { result, output_schema, takes, protected: false }
    }

    /// The result with stand-ins ([`exact`]) for numbers that a [`Value`] cannot hold, for code that restores them in
    /// the text.
    #[must_use]
    pub fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    /// The result as JSON text with every number as written.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let text = serde_json::to_string(&self.protected())?;
        Ok(match exact::restore(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(restored) => restored,
        })
    }
}

impl Serialize for McpCallToolResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { result, output_schema, takes, protected } = *self;
        let mut answer = serializer.serialize_map(None)?;
        if takes == McpData::Any {
            answer.serialize_entry("resultType", "complete")?;
        }
        let mut parts = parts(result);
        parts.extend(whole(result).map(Cow::Owned));
        answer.serialize_entry("content", &Blocks(&parts))?;
        answer.serialize_entry("isError", &!result.is_success())?;
        let promised = result.is_success() || output_schema.is_none();
        if let Some(data) = result.exact_data().filter(|_| promised) {
            let data = match (protected, data.is_rounded()) {
                (false, true) => Cow::Owned(data.to_shown()),
                _ => Cow::Borrowed(data.protected()),
            };
            let data = structured_content(&data, output_schema, takes);
            answer.serialize_entry("structuredContent", &data)?;
        }
        let meta = Meta::of(result);
        if !meta.is_empty() {
            answer.serialize_entry("_meta", &meta)?;
        }
        answer.end()
    }
}

/// [`McpCallToolResult`] as a value.
pub fn mcp_call_tool_result(
    result: &ToolResult,
    output_schema: Option<&Value>,
    takes: McpData,
) -> Value {
    // Strings, booleans and JSON values always serialise.
    serde_json::to_value(McpCallToolResult::new(result, output_schema, takes)).unwrap_or_default()
}

/// The link to the complete output if the result was cut and the output is stored.
fn whole(result: &ToolResult) -> Option<Content> {
    let note = result.output().filter(|_| result.truncated())?.meta().get(KEPT_OUTPUT)?;
    // Notes come from the tool, so check their type.
    let handle =
        note.as_str().filter(|handle| handle.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some(Content::from(Link::new(
        format!("{MCP_OUTPUT_URI}{handle}"),
        format!("whole output of {}", result.tool()),
    )))
}

struct Blocks<'a>(&'a [Cow<'a, Content>]);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|part| Block::of(part)))
    }
}

/// One part in MCP's format.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        data: String,
        mime_type: &'a str,
    },
    Audio {
        data: String,
        mime_type: &'a str,
    },
    ResourceLink {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    Resource {
        resource: File<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(flatten)]
    inside: ResourceBody<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum ResourceBody<'a> {
    Text(&'a str),
    Blob(String),
}

impl<'a> Block<'a> {
    fn of(part: &'a Content) -> Self {
        match part {
            Content::Image { data, mime_type } => Self::Image { data: base64(data), mime_type },
            Content::Audio { data, mime_type } => Self::Audio { data: base64(data), mime_type },
            Content::Link(link) => Self::ResourceLink {
                uri: &link.uri,
                name: &link.name,
                title: link.title.as_deref(),
                description: link.description.as_deref(),
                mime_type: link.mime_type.as_deref(),
                size: link.size,
            },
            Content::TextFile { uri, text, mime_type } => {
                let (mime_type, inside) = (mime_type.as_deref(), ResourceBody::Text(text));
                Self::Resource { resource: File { uri, mime_type, inside } }
            }
            Content::Blob { uri, data, mime_type } => {
                let inside = ResourceBody::Blob(base64(data));
                Self::Resource { resource: File { uri, mime_type: Some(mime_type), inside } }
            }
            // A kind of part that this version does not know is described in words.
            other => Self::Text { text: other.as_text() },
        }
    }
}

/// Metadata for programs.
#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "toolcrib/error_kind", skip_serializing_if = "Option::is_none")]
    error_kind: Option<&'static str>,
    #[serde(rename = "toolcrib/retry_after", skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(rename = "toolcrib/truncated", skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    #[serde(rename = "toolcrib/notes", skip_serializing_if = "Option::is_none")]
    notes: Option<&'a Map<String, Value>>,
}

impl<'a> Meta<'a> {
    fn of(result: &'a ToolResult) -> Self {
        Self {
            error_kind: result.error_kind().map(ErrorKind::as_str),
            retry_after: result.error().and_then(ToolError::retry_after_seconds),
            truncated: result.truncated(),
            notes: result.output().map(ToolOutput::meta).filter(|notes| !notes.is_empty()),
        }
    }

    fn is_empty(&self) -> bool {
        let Self { error_kind, retry_after, truncated, notes } = self;
        error_kind.is_none() && retry_after.is_none() && !truncated && notes.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_under_the_documented_keys() {
        let notes = Map::new();
        let meta = Meta {
            error_kind: Some("timeout"),
            retry_after: Some(1),
            truncated: true,
            notes: Some(&notes),
        };
        let meta = serde_json::to_value(meta).unwrap();
        let keys: Vec<_> = meta.as_object().unwrap().keys().map(String::as_str).collect();
        let mut told = [META_ERROR_KIND, META_RETRY_AFTER, META_TRUNCATED, META_NOTES];
        told.sort_unstable();
        assert_eq!(keys, told);
    }
}
