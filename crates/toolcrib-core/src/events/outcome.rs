//! The result of a call in its last event, short enough to be buffered for slow subscribers.

use serde_json::{Map, Value};
use toolcrib_tool::{ToolError, ToolOutput, ToolResult};

use crate::cache::size;

/// Characters of a text that are shown.
const TEXT_MAX: usize = 4_096;
/// Data that takes more memory than this, in bytes, is left out.
const DATA_MAX: usize = 16 * 1024;

/// `{output?, data?, error?, cut?}`: what the call produced, its data, and how it failed. `cut` is true
/// where a text was shortened or data left out. A number that a value cannot hold is a string with its
/// digits. The result was masked when it was recorded.
pub(super) fn shown(result: &ToolResult) -> Value {
    let mut shown = Map::new();
    let mut cut = false;
    let output = result.output().map(ToolOutput::text).unwrap_or_default();
    if !output.is_empty() {
        shown.insert("output".to_owned(), shortened(&output, &mut cut).into());
    }
    if let Some(data) = result.exact_data() {
        if size::of_value(data.protected()) <= DATA_MAX {
            shown.insert("data".to_owned(), data.to_shown());
        } else {
            cut = true;
        }
    }
    if let Some(error) = result.error() {
        shown.insert("error".to_owned(), failure(error, &mut cut));
    }
    if cut {
        shown.insert("cut".to_owned(), true.into());
    }
    Value::Object(shown)
}

fn failure(error: &ToolError, cut: &mut bool) -> Value {
    let mut failure = error.to_value();
    failure["message"] = shortened(error.message(), cut).into();
    if size::of_value(&failure["hints"]) > DATA_MAX {
        failure["hints"] = Value::Array(Vec::new());
        *cut = true;
    }
    failure
}

fn shortened<'a>(text: &'a str, cut: &mut bool) -> &'a str {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => {
            *cut = true;
            &text[..end]
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolcrib_tool::CallId;

    use super::*;

    fn success(output: ToolOutput) -> Value {
        shown(&ToolResult::success(CallId::new("c"), "t", output, Duration::ZERO))
    }

    #[test]
    fn a_short_result_is_shown_whole() {
        let output = ToolOutput::from("four").with_data(json!({"sum": 4}));
        assert_eq!(success(output), json!({"output": "four", "data": {"sum": 4}}));
        let error = ToolError::execution("disk full").with_partial("half");
        let failed = ToolResult::failure(CallId::new("c"), "t", error, Duration::ZERO);
        let shown = shown(&failed);
        assert_eq!(
            (&shown["output"], &shown["error"]["kind"]),
            (&json!("half"), &json!("execution"))
        );
        assert!(shown.get("cut").is_none());
    }

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let long =
            success(ToolOutput::from("é".repeat(TEXT_MAX + 1)).with_data("x".repeat(DATA_MAX)));
        assert_eq!(long["output"].as_str().unwrap().chars().count(), TEXT_MAX);
        assert_eq!((&long["cut"], long.get("data")), (&json!(true), None));
    }
}
