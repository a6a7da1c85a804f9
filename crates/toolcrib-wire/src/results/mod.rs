//! Results as each receiver wants them.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod mcp;
pub(crate) mod openai;
pub(crate) mod plain;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcrib_tool::{Content, ToolOutput, ToolResult};

/// Bytes as every receiver wants them in JSON.
pub(crate) fn base64(data: &[u8]) -> String {
    STANDARD.encode(data)
}

/// Bytes as a URL that holds them.
pub(crate) fn data_url(data: &[u8], mime_type: &str) -> String {
    format!("data:{mime_type};base64,{}", base64(data))
}

/// The parts of a successful result that a model is shown; a failure, and data without parts, is
/// one text.
fn parts(result: &ToolResult) -> Vec<Content> {
    let own = result.output().map(ToolOutput::content).unwrap_or_default();
    let mut parts = Vec::new();
    if !result.is_success() || own.is_empty() {
        parts.push(Content::Text(result.text().into_owned()));
        // The failure's text tells of the partial output; what is no text follows it.
        parts.extend(own.iter().filter(|part| !matches!(part, Content::Text(_))).cloned());
    } else {
        parts.extend_from_slice(own);
    }
    parts.retain(|part| !matches!(part, Content::Text(text) if text.is_empty()));
    parts
}
