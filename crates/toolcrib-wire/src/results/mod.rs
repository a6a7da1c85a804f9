//! Results in the formats of the providers.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod mcp;
pub(crate) mod openai;
pub(crate) mod plain;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcrib_tool::{Content, ToolOutput, ToolResult};

/// Bytes as base64, which all providers use.
pub(crate) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}

/// Bytes as a data URL.
pub(crate) fn data_url(data: &[u8], mime_type: &str) -> String {
    format!("data:{mime_type};base64,{}", base64(data))
}

/// The parts of a result for a model; a failure, and data without parts, become one text.
fn parts(result: &ToolResult) -> Vec<Cow<'_, Content>> {
    let own = result.output().map(ToolOutput::content).unwrap_or_default();
    let mut parts = Vec::with_capacity(own.len().max(1));
    if !result.is_success() || own.is_empty() {
        parts.push(Cow::Owned(Content::Text(result.text().into_owned())));
        // The failure's text includes the partial output; parts that are not text follow it.
        let rest = own.iter().filter(|part| !matches!(part, Content::Text(_)));
        parts.extend(rest.map(Cow::Borrowed));
    } else {
        parts.extend(own.iter().map(Cow::Borrowed));
    }
    parts.retain(|part| !matches!(&**part, Content::Text(text) if text.is_empty()));
    parts
}
