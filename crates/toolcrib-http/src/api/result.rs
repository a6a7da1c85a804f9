//! The result of a call, as it is sent.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_tool::{Content, ToolOutput, ToolResult};

/// The result of a call.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a result, under their names")]
pub(crate) struct CallResult {
    /// The caller's id of the call.
    call_id: String,
    /// The name of the called tool.
    tool: String,
    /// Whether the call has succeeded.
    success: bool,
    /// The text for a model; for a failed call, the partial output.
    output: String,
    /// Structured data, if there is any.
    // Protected: `api::json_text` restores the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// The content parts `{type, …}`, if one of them is not text; bytes are base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    content: Vec<Value>,
    /// Notes of the tool and of the server, for example on repaired arguments.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Option<Map<String, Value>>")]
    meta: Map<String, Value>,
    /// Why the call has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallFailure>,
    /// Whether the output was truncated to fit its budget.
    truncated: bool,
    /// Whether this is a cached result; nothing ran.
    cached: bool,
    /// Whether this is the result of an identical concurrent call.
    skipped: bool,
    /// How long the call took, in seconds.
    duration_seconds: f64,
}

/// Why a call has failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallFailure {
    /// The error kind, such as `invalid_args`.
    kind: &'static str,
    /// What went wrong.
    message: String,
    /// What to do about it, one line each; for invalid arguments, one line per problem.
    hints: Vec<String>,
    /// Whether the same call may succeed later.
    retryable: bool,
    /// How long to wait before the same call, in seconds, if that is known. The header
    /// `Retry-After` of a single call has the same value.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl From<&ToolResult> for CallResult {
    fn from(result: &ToolResult) -> Self {
        let output = result.output();
        let parts = output.map(ToolOutput::content).unwrap_or_default();
        let is_text = parts.iter().all(|part| matches!(part, Content::Text(_)));
        Self {
            call_id: result.call_id().as_str().to_owned(),
            tool: result.tool().to_owned(),
            success: result.is_success(),
            output: output.map(|output| output.text().into_owned()).unwrap_or_default(),
            data: result.exact_data().map(|data| data.protected().clone()),
            content: if is_text {
                Vec::new()
            } else {
                parts.iter().filter_map(|part| serde_json::to_value(part).ok()).collect()
            },
            meta: output.map(|output| output.meta().clone()).unwrap_or_default(),
            error: result.error().map(|error| CallFailure {
                kind: error.kind().as_str(),
                message: error.message().to_owned(),
                hints: error.hints().to_vec(),
                retryable: error.retryable(),
                retry_after: error.retry_after_seconds(),
            }),
            truncated: result.truncated(),
            cached: result.cached(),
            skipped: result.skipped(),
            duration_seconds: result.duration().as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolcrib_tool::{CallId, ToolError};

    use super::*;

    fn sent(result: &ToolResult) -> Value {
        serde_json::to_value(CallResult::from(result)).unwrap()
    }

    #[test]
    fn a_result_is_reported_as_on_every_surface() {
        let done = ToolOutput::from("done").with_data(json!([1]));
        let failed = ToolError::execution("disk full").with_hint("Make room.");
        let failed = failed.with_retry_after(Duration::from_millis(1_500));
        let spent = Duration::from_millis(5);
        for result in [
            ToolResult::success(CallId::new("a"), "t", done, spent),
            ToolResult::failure(CallId::new("b"), "t", failed.with_partial("half"), spent),
        ] {
            assert_eq!(sent(&result), result.to_value());
        }
    }

    #[test]
    fn parts_other_than_text_are_complete() {
        let parts = vec![
            Content::Text("a picture".into()),
            Content::Image { data: vec![1, 2, 3], mime_type: "image/png".into() },
        ];
        let output = ToolOutput::from("").replace_content(parts);
        let result = ToolResult::success(CallId::new("a"), "t", output, Duration::ZERO);
        assert_eq!(
            sent(&result)["content"],
            json!([
                {"type": "text", "text": "a picture"},
                {"type": "image", "data": "AQID", "mime_type": "image/png"},
            ])
        );
    }
}
