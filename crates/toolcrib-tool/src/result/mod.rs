//! The final answer to a call, and its representations.

pub(crate) mod content;
pub(crate) mod data;
pub(crate) mod error;
pub(crate) mod outcome;
pub(crate) mod output;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{CallId, Data, ErrorKind, ToolError, ToolOutput, canonical_json};

/// The final answer to one call.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_tool::{CallId, ToolError, ToolResult};
///
/// let failed = ToolResult::failure(
///     CallId::new("call_1"),
///     "ping",
///     ToolError::execution("host unknown").with_hint("Check the spelling."),
///     Duration::from_millis(3),
/// );
/// assert_eq!(failed.text(), "Error executing ping: host unknown\nCheck the spelling.");
/// ```
///
/// Its JSON contains everything, unlike the views for models, which drop what their format cannot hold:
///
/// ```
/// # use std::time::Duration;
/// # use toolcrib_tool::{CallId, ToolResult};
/// let result = ToolResult::success(CallId::new("1"), "ping", "pong".into(), Duration::ZERO);
/// let text = serde_json::to_string(&result)?;
/// assert_eq!(serde_json::from_str::<ToolResult>(&text)?, result);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    call_id: CallId,
    tool: Arc<str>,
    #[serde(with = "outcome_json")]
    outcome: Result<ToolOutput, ToolError>,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    cached: bool,
    #[serde(default)]
    skipped: bool,
    /// In nanoseconds: 64 bits last 584 years.
    #[serde(rename = "duration_nanos")]
    nanos: u64,
}

/// An outcome's JSON is `{"success": …}` or `{"failure": …}`.
mod outcome_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{ToolError, ToolOutput};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Outcome<O, E> {
        Success(O),
        Failure(E),
    }

    pub(super) fn serialize<S: Serializer>(
        outcome: &Result<ToolOutput, ToolError>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match outcome {
            Ok(output) => Outcome::Success(output),
            Err(error) => Outcome::Failure(error),
        }
        .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Result<ToolOutput, ToolError>, D::Error> {
        Ok(match Outcome::deserialize(from)? {
            Outcome::Success(output) => Ok(output),
            Outcome::Failure(error) => Err(error),
        })
    }
}

impl ToolResult {
    /// A successful answer.
    pub fn success(
        call_id: CallId,
        tool: impl Into<Arc<str>>,
        output: ToolOutput,
        duration: Duration,
    ) -> Self {
        Self {
            call_id,
            tool: tool.into(),
            outcome: Ok(output),
            truncated: false,
            cached: false,
            skipped: false,
            nanos: nanos(duration),
        }
    }

    /// A failed answer.
    pub fn failure(
        call_id: CallId,
        tool: impl Into<Arc<str>>,
        error: ToolError,
        duration: Duration,
    ) -> Self {
        Self {
            call_id,
            tool: tool.into(),
            outcome: Err(error),
            truncated: false,
            cached: false,
            skipped: false,
            nanos: nanos(duration),
        }
    }

    /// The same answer after another duration.
    #[must_use]
    pub fn with_duration(mut self, duration: Duration) -> Self {
        self.nanos = nanos(duration);
        self
    }

    /// Marks the content as cut to fit its budget.
    #[must_use]
    pub fn with_truncated(mut self, truncated: bool) -> Self {
        self.truncated = truncated;
        self
    }

    /// Marks the answer as cached from an earlier call.
    #[must_use]
    pub fn with_cached(mut self, cached: bool) -> Self {
        self.cached = cached;
        self
    }

    /// Marks the answer as shared: equal calls ran only once.
    #[must_use]
    pub fn with_skipped(mut self, skipped: bool) -> Self {
        self.skipped = skipped;
        self
    }

    /// The same answer for another call.
    #[must_use]
    pub fn with_call_id(mut self, call_id: CallId) -> Self {
        self.call_id = call_id;
        self
    }

    /// The id of the call this answers.
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The requested tool name.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Whether the call succeeded.
    pub fn is_success(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The output; for a failed call, its partial output.
    pub fn output(&self) -> Option<&ToolOutput> {
        match &self.outcome {
            Ok(output) => Some(output),
            Err(error) => error.partial(),
        }
    }

    /// The structured data, if there is any, rounded to what a [`Value`] holds ([`Data::value`]).
    pub fn data(&self) -> Option<&Value> {
        self.output().and_then(ToolOutput::data)
    }

    /// The structured data with every number as written.
    pub fn exact_data(&self) -> Option<&Data> {
        self.output().and_then(ToolOutput::exact_data)
    }

    /// The failure.
    pub fn error(&self) -> Option<&ToolError> {
        self.outcome.as_ref().err()
    }

    /// The failure's kind.
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.error().map(ToolError::kind)
    }

    /// Whether the content was cut to fit its budget.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Whether the answer is cached from an earlier call; nothing ran.
    pub fn cached(&self) -> bool {
        self.cached
    }

    /// Whether an equal call ran at the same time and this is its answer.
    pub fn skipped(&self) -> bool {
        self.skipped
    }

    /// How long the call took.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// For hosts that want a failed call as an `Err`.
    pub fn into_result(self) -> Result<ToolOutput, ToolError> {
        self.outcome
    }

    /// The text for the model: the output's text, or `Error executing NAME: cause` with what to do next and the partial
    /// output.
    pub fn text(&self) -> Cow<'_, str> {
        let error = match &self.outcome {
            Ok(output) => return output.text(),
            Err(error) => error,
        };
        let mut text = format!("Error executing {}: {}", shown_name(&self.tool), error.message());
        for hint in error.hints() {
            let _ = write!(text, "\n{hint}");
        }
        if let Some(partial) = error.partial() {
            let partial = partial.text();
            if !partial.is_empty() {
                let _ = write!(text, "\nOutput before the failure:\n{partial}");
            }
        }
        Cow::Owned(text)
    }

    /// The plain record `{call_id, tool, success, output, data?, error?, truncated, cached, skipped,
    /// duration_seconds}`. A number in the data that a [`Value`] cannot hold becomes a string with its digits;
    /// [`to_json`](Self::to_json) has it as a number.
    pub fn to_value(&self) -> Value {
        self.record(self.exact_data().map(Data::to_shown))
    }

    /// [`to_value`](Self::to_value) as compact JSON, with sorted keys and every number as written.
    pub fn to_json(&self) -> String {
        canonical_json(&self.record(self.exact_data().map(|data| data.protected().clone())))
    }

    fn record(&self, data: Option<Value>) -> Value {
        let mut record = json!({
            "call_id": self.call_id.as_str(),
            "tool": self.tool(),
            "success": self.is_success(),
            "output": self.output().map(|output| output.text()).unwrap_or_default(),
            "truncated": self.truncated,
            "cached": self.cached,
            "skipped": self.skipped,
            "duration_seconds": self.duration().as_secs_f64(),
        });
        if let Some(data) = data {
            record["data"] = data;
        }
        if let Some(meta) = self.output().map(ToolOutput::meta).filter(|meta| !meta.is_empty()) {
            record["meta"] = Value::Object(meta.clone());
        }
        if let Some(error) = self.error() {
            record["error"] = error.to_value();
        }
        record
    }
}

/// A name for messages: at most its first 128 characters. No tool has a longer one, but a caller may ask for any text.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    const SHOWN: usize = 128;

    match name.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}… ({} bytes)", &name[..cut], name.len()).into(),
        None => name.into(),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
