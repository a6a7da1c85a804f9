//! Failures of a call: a stable kind, a text for the model, a source for the operator.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::ToolOutput;

/// Advice for a call whose outcome is unknown.
const LOOK_FIRST: &str =
    "It may have taken effect: check before you call it again, or ask the user.";

/// Declares the kinds with their stable strings, so that `ALL` is complete.
macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $text:literal,)*) => {
        /// Why a call failed. The strings are stable and the same on every surface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $kind,)* }

        impl ErrorKind {
            /// Every kind, in the order of the pipeline's documentation.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The stable string, for example `invalid_args`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $text,)* }
            }
        }
    };
}

error_kinds! {
    /// No tool of that name is in the turn's toolset.
    NotFound = "not_found",
    /// The arguments are not unambiguous JSON.
    InvalidJson = "invalid_json",
    /// The arguments do not fit the tool's schema.
    InvalidArgs = "invalid_args",
    /// A constraint of the tool refused the arguments.
    Constraint = "constraint",
    /// A value that the host must supply is missing.
    MissingContext = "missing_context",
    /// Policy, a person or a path rule refused the call.
    Denied = "denied",
    /// The call waits for a person's approval.
    RequiresApproval = "requires_approval",
    /// The tool exists but cannot run here or now.
    Unavailable = "unavailable",
    /// Too many calls in too short a time.
    RateLimited = "rate_limited",
    /// The time limit passed.
    Timeout = "timeout",
    /// The caller cancelled the call.
    Cancelled = "cancelled",
    /// The tool's code panicked.
    Panic = "panic",
    /// The tool is paused after repeated timeouts.
    Paused = "paused",
    /// The tool ran and failed.
    Execution = "execution",
    /// The call may have taken effect, but its answer was lost. toolcrib never retries such a call by itself.
    OutcomeUnknown = "outcome_unknown",
    /// The tool's data does not fit its output schema.
    InvalidOutput = "invalid_output",
    /// A fault of the host, not of the call.
    Internal = "internal",
}

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let known = Self::ALL.iter().copied().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| D::Error::custom(format!("{text:?} is not a kind of failure")))
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed call, as a tool or the pipeline reports it.
///
/// `message` and `hints` are for the model: what went wrong and what to do next. `source` is for the operator and is
/// never shown to a model. Its JSON contains everything, with the source as text.
///
/// `?` converts any [`std::error::Error`] into a `ToolError` of kind `execution`; that is why this type does not
/// implement the trait itself.
///
/// ```
/// use toolcrib_tool::{ErrorKind, ToolError};
///
/// fn read() -> Result<u32, ToolError> {
///     Ok("12x".parse::<u32>()?)
/// }
///
/// let error = read().unwrap_err().with_hint("send digits only");
/// assert_eq!(error.kind(), ErrorKind::Execution);
/// assert_eq!(error.message(), "invalid digit found in string");
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolError(Box<Inner>);

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    kind: ErrorKind,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
    retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partial: Option<ToolOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Cause>,
}

/// The operator's source of a failure. It is serialized as its text; equal texts are equal causes.
#[derive(Clone)]
struct Cause(Arc<dyn Error + Send + Sync>);

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.to_string() == other.0.to_string()
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self(Arc::new(CauseText(text))))
    }
}

/// The text of a cause that was deserialized.
#[derive(Debug)]
struct CauseText(String);

impl fmt::Display for CauseText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for CauseText {}

/// The messages of an error and its causes. Many errors repeat their cause, so duplicates are left out.
fn chain(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

impl ToolError {
    /// An error of the given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hints: Vec::new(),
            retryable: matches!(kind, ErrorKind::RateLimited),
            retry_after: None,
            partial: None,
            source: None,
        }))
    }

    /// The tool ran and failed.
    pub fn execution(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Execution, message)
    }

    /// The arguments are wrong in a way that the schema cannot express.
    pub fn invalid_args(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgs, message)
    }

    /// The answer to the call was lost: it may have taken effect. Not retryable, because a retry could repeat the
    /// effect; the hint tells the model to check first.
    ///
    /// Use it only for calls that change something and are not idempotent: all others can simply be repeated.
    ///
    /// ```
    /// use toolcrib_tool::{ErrorKind, ToolError};
    ///
    /// let error = ToolError::outcome_unknown("the connection broke before the answer came");
    /// assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    /// assert!(!error.retryable());
    /// ```
    pub fn outcome_unknown(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::OutcomeUnknown, message).with_hint(LOOK_FIRST)
    }

    /// The tool cannot run here or now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A rule refused the call.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// A fault of the host or of the tool's own code.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds a line that tells the model what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// The same failure with another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Says whether the same call may succeed later. Default: only for `rate_limited`.
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Sets how long to wait before the same call, if a service says so. Retries wait at least this long.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Adds the output from before the failure.
    #[must_use]
    pub fn with_partial(mut self, partial: impl Into<ToolOutput>) -> Self {
        self.0.partial = Some(partial.into());
        self
    }

    /// Adds a note for programs, for example how the arguments were read. It is part of the partial output, which may
    /// have no other content.
    ///
    /// ```
    /// use toolcrib_tool::ToolError;
    ///
    /// let error = ToolError::execution("no such file").with_note("attempts", 3);
    /// assert_eq!(error.partial().unwrap().meta()["attempts"], 3);
    /// ```
    #[must_use]
    pub fn with_note(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let partial = self.0.partial.take().unwrap_or_default();
        self.0.partial = Some(partial.with_meta(key, value));
        self
    }

    /// Adds the cause, for the operator's log.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Cause(Arc::new(source)));
        self
    }

    /// Applies `map` to the message, the hints and the source's text with its causes. The partial output is left to
    /// [`map_partial`](Self::map_partial).
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolcrib_tool::ToolError;
    ///
    /// let error = ToolError::unavailable("key-123 is used up").with_retry_after(Duration::from_secs(7));
    /// let masked = error.map_texts(|text| text.replace("key-123", "***"));
    /// assert_eq!(masked.message(), "*** is used up");
    /// assert_eq!(masked.retry_after(), Some(Duration::from_secs(7)));
    /// ```
    #[must_use]
    pub fn map_texts(self, mut map: impl FnMut(String) -> String) -> Self {
        let Inner { kind, message, hints, retryable, retry_after, partial, source } = *self.0;
        let message = map(message);
        let hints = hints.into_iter().map(&mut map).collect();
        let source = source.map(|cause| Cause(Arc::new(CauseText(map(chain(&*cause.0))))));
        Self(Box::new(Inner { kind, message, hints, retryable, retry_after, partial, source }))
    }

    /// Applies `map` to the partial output.
    #[must_use]
    pub fn map_partial(mut self, map: impl FnOnce(ToolOutput) -> ToolOutput) -> Self {
        self.0.partial = self.0.partial.map(map);
        self
    }

    /// The messages of the source and its causes, for the operator.
    pub fn source_text(&self) -> Option<String> {
        self.source().map(chain)
    }

    /// The stable kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, for the model.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do next, one line each.
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.0.retryable
    }

    /// How long to wait before the same call, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The same in whole seconds, rounded up.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let wait = self.0.retry_after?;
        Some(wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)))
    }

    /// The failure as JSON: `{kind, message, hints, retryable, retry_after?}`. `retry_after` is the number of seconds
    /// to wait before the same call; absent if unknown.
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolcrib_tool::ToolError;
    ///
    /// let busy = ToolError::unavailable("busy").with_retry_after(Duration::from_millis(1_500));
    /// assert_eq!(busy.to_value()["retry_after"], 2);
    /// ```
    pub fn to_value(&self) -> Value {
        let mut failure = json!({
            "kind": self.kind().as_str(),
            "message": self.message(),
            "hints": self.hints(),
            "retryable": self.retryable(),
        });
        if let Some(seconds) = self.retry_after_seconds() {
            failure["retry_after"] = seconds.into();
        }
        failure
    }

    /// The output from before the failure, and [notes](Self::with_note).
    pub fn partial(&self) -> Option<&ToolOutput> {
        self.0.partial.as_ref()
    }

    /// Removes and returns the partial output.
    pub fn take_partial(&mut self) -> Option<ToolOutput> {
        self.0.partial.take()
    }

    /// The cause, for the operator.
    pub fn source(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.source.as_ref().map(|cause| &*cause.0)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("hints", &self.0.hints)
            .field("retryable", &self.0.retryable)
            .field("source", &self.source())
            .finish_non_exhaustive()
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::execution(error.to_string()).with_source(error)
    }
}
