//! Contents of messages and outputs.

use serde_json::Value;
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::{Content, ToolOutput};

use super::super::answer::AnswerError;
use super::super::answer_parts::part;
use crate::api::ApiError;
use crate::api::fields::{data, param, wrong_type};

/// The content of a message: one text, or a list of parts.
pub(super) fn content(value: Cursor<'_>) -> Result<Vec<Content>, ApiError> {
    Ok(match value.as_str() {
        Some(text) => vec![Content::text(text)],
        None => output(value)?.content().to_vec(),
    })
}

/// The output of a call: one text, or a list of parts.
pub(super) fn output(value: Cursor<'_>) -> Result<ToolOutput, ApiError> {
    if let Some(text) = value.as_str() {
        return Ok(ToolOutput::from(&*text));
    }
    if value.kind() != Kind::Array {
        return Err(wrong_type(value, "a string or a list of parts"));
    }
    match data(value)? {
        Value::Array(list) => parts_at(&list, &param(value)),
        _ => Err(wrong_type(value, "a string or a list of parts")),
    }
}

/// Reads parts; `at` is the list's place in the words of the API.
fn parts_at(list: &[Value], at: &str) -> Result<ToolOutput, ApiError> {
    let mut output = ToolOutput::new();
    for (index, given) in list.iter().enumerate() {
        output = output.with_content(part_at(given, &format!("{at}[{index}]"))?);
    }
    Ok(output)
}

/// Reads one part; `at` is its place in the words of the API.
pub(crate) fn part_at(given: &Value, at: &str) -> Result<Content, ApiError> {
    part(given, "").map_err(|AnswerError { message, .. }| {
        ApiError::invalid(format!("`{at}`: {message}")).with_code("invalid_value").with_param(at)
    })
}
