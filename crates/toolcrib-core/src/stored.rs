//! Results as they are kept: a lossless, serialisable form of what a call ended in.
//!
//! The views of a result for models and providers drop what their target cannot hold. Suspended
//! runs and recordings must get back exactly what was there, so they keep this.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use toolcrib_tool::{CallId, Content, ErrorKind, ToolError, ToolOutput, ToolResult};

use crate::content_json;

/// An output, as kept.
///
/// ```
/// use toolcrib_core::stored::StoredOutput;
/// use toolcrib_tool::ToolOutput;
///
/// let output = ToolOutput::from("done").with_data(serde_json::json!({"files": 3}));
/// let text = serde_json::to_string(&StoredOutput::from(&output))?;
/// let back: StoredOutput = serde_json::from_str(&text)?;
/// assert_eq!(ToolOutput::from(back), output);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredOutput {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<StoredContent>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    data: Option<Value>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Value>,
}

/// One part.
#[derive(Debug, Clone, PartialEq)]
struct StoredContent(Content);

impl Serialize for StoredContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        content_json::to_value(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StoredContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let part = content_json::from_value(&value);
        part.map(Self).ok_or_else(|| serde::de::Error::custom("this is no part of a result"))
    }
}

/// `null` is data too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl From<&ToolOutput> for StoredOutput {
    fn from(output: &ToolOutput) -> Self {
        Self {
            content: output.content().iter().cloned().map(StoredContent).collect(),
            data: output.data().cloned(),
            meta: output.meta().clone(),
        }
    }
}

impl From<StoredOutput> for ToolOutput {
    fn from(stored: StoredOutput) -> Self {
        let mut output = Self::new();
        for part in stored.content {
            output = output.with_content(part.0);
        }
        if let Some(data) = stored.data {
            output = output.with_data(data);
        }
        for (key, value) in stored.meta {
            output = output.with_meta(key, value);
        }
        output
    }
}

/// A failure, as kept. The operator's `source` is kept as its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredError {
    #[serde(with = "kind")]
    kind: ErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
    retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partial: Option<StoredOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

mod kind {
    use super::{Deserialize, Deserializer, ErrorKind, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    pub(super) fn serialize<S: Serializer>(kind: &ErrorKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ErrorKind, D::Error> {
        let text = String::deserialize(from)?;
        let known = ErrorKind::ALL.iter().copied().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no kind of failure")))
    }
}

impl From<&ToolError> for StoredError {
    fn from(error: &ToolError) -> Self {
        Self {
            kind: error.kind(),
            message: error.message().to_owned(),
            hints: error.hints().to_vec(),
            retryable: error.retryable(),
            partial: error.partial().map(StoredOutput::from),
            source: error.source().map(ToString::to_string),
        }
    }
}

impl From<StoredError> for ToolError {
    fn from(stored: StoredError) -> Self {
        let mut error = Self::new(stored.kind, stored.message).with_retryable(stored.retryable);
        for hint in stored.hints {
            error = error.with_hint(hint);
        }
        if let Some(partial) = stored.partial {
            error = error.with_partial(ToolOutput::from(partial));
        }
        if let Some(source) = stored.source {
            error = error.with_source(StoredSource(source));
        }
        error
    }
}

/// What the cause of a kept failure said.
#[derive(Debug)]
struct StoredSource(String);

impl fmt::Display for StoredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoredSource {}

/// A result, as kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredResult {
    call_id: String,
    tool: String,
    outcome: StoredOutcome,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    cached: bool,
    #[serde(default)]
    skipped: bool,
    duration_nanos: u64,
}

/// How it ended, as kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredOutcome {
    /// Well.
    Success(StoredOutput),
    /// Not well.
    Failure(StoredError),
}

impl StoredResult {
    /// The id of the call it answers.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }
}

impl From<&ToolResult> for StoredResult {
    fn from(result: &ToolResult) -> Self {
        let outcome = match (result.error(), result.output()) {
            (Some(error), _) => StoredOutcome::Failure(error.into()),
            (None, Some(output)) => StoredOutcome::Success(output.into()),
            (None, None) => StoredOutcome::Success((&ToolOutput::new()).into()),
        };
        Self {
            call_id: result.call_id().as_str().to_owned(),
            tool: result.tool().to_owned(),
            outcome,
            truncated: result.truncated(),
            cached: result.cached(),
            skipped: result.skipped(),
            duration_nanos: u64::try_from(result.duration().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

impl From<StoredResult> for ToolResult {
    fn from(stored: StoredResult) -> Self {
        let id = CallId::new(stored.call_id);
        let duration = Duration::from_nanos(stored.duration_nanos);
        let result = match stored.outcome {
            StoredOutcome::Success(output) => {
                Self::success(id, stored.tool, output.into(), duration)
            }
            StoredOutcome::Failure(error) => Self::failure(id, stored.tool, error.into(), duration),
        };
        result
            .with_truncated(stored.truncated)
            .with_cached(stored.cached)
            .with_skipped(stored.skipped)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn round(result: &ToolResult) -> ToolResult {
        let text = serde_json::to_string(&StoredResult::from(result)).expect("it is plain data");
        let stored: StoredResult = serde_json::from_str(&text).expect("what was written is read");
        ToolResult::from(stored)
    }

    #[test]
    fn every_kind_of_part_comes_back_as_it_was() {
        let mime_type = "image/png".to_owned();
        let output = ToolOutput::from("text")
            .with_content(Content::Image { data: vec![0, 255, 7], mime_type: mime_type.clone() })
            .with_content(Content::Audio { data: vec![], mime_type: mime_type.clone() })
            .with_content({
                let mut link = toolcrib_tool::Link::new("a:b", "n").mime_type("x/y");
                link.title = Some("N".into());
                link.description = Some("An n.".into());
                link.size = Some(3);
                link
            })
            .with_content(toolcrib_tool::Link::new("a:b", "n"))
            .with_content(Content::TextFile {
                uri: "f".into(),
                text: "t".into(),
                mime_type: Some("text/plain".into()),
            })
            .with_content(Content::Blob { uri: "f".into(), data: vec![1], mime_type })
            .with_data(Value::Null)
            .with_meta("exit_code", 3);
        let duration = Duration::from_nanos(1_234_567);
        let result = ToolResult::success(CallId::new("1"), "t", output.clone(), duration)
            .with_truncated(true)
            .with_cached(true);
        let back = round(&result);
        assert_eq!(back.output(), Some(&output));
        assert_eq!(back.data(), Some(&Value::Null));
        assert_eq!(back.to_value(), result.to_value());
    }

    #[test]
    fn a_failure_keeps_its_kind_its_hints_its_cause_and_what_it_had_produced() {
        for &kind in ErrorKind::ALL {
            let error = ToolError::new(kind, "broken")
                .with_hint("mend it")
                .with_retryable(true)
                .with_partial(ToolOutput::from(json!({"half": 1})))
                .with_source(StoredSource("because".to_owned()));
            let result = ToolResult::failure(CallId::new("1"), "t", error, Duration::ZERO);
            let back = round(&result);
            assert_eq!(back.to_value(), result.to_value());
            let source = back.error().and_then(ToolError::source).map(ToString::to_string);
            assert_eq!(source.as_deref(), Some("because"));
        }
    }

    #[test]
    fn a_part_that_is_none_is_refused() {
        for text in [r#"{"type": "smell"}"#, r#"{"type": "image", "data": "?"}"#, "3"] {
            let text = format!(r#"{{"content": [{text}]}}"#);
            let error = serde_json::from_str::<StoredOutput>(&text).expect_err("it is none");
            assert!(error.to_string().contains("no part of a result"), "{error}");
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_by_name() {
        let text = r#"{"kind": "odd", "message": "", "retryable": false}"#;
        let error = serde_json::from_str::<StoredError>(text).expect_err("it is unknown");
        assert!(error.to_string().contains("\"odd\" is no kind of failure"), "{error}");
    }
}
