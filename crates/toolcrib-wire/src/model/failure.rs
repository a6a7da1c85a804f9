//! Failures that a provider reports, in any of the shapes in use.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use toolcrib_json::{Cursor, Number, parse};

/// The longest part of a provider's text that is kept.
const MAX_MESSAGE: usize = 2_000;
/// The longest wait that is believed.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// A failure as the provider reported it, in an error response or in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderFailure {
    /// What the failure means for the next attempt.
    pub kind: FailureKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The provider's `type`, for example `overloaded_error`.
    pub error_type: Option<String>,
    /// The provider's `code`, for example `context_length_exceeded`.
    pub code: Option<String>,
    /// The field of the request that the provider refused, if it named one.
    pub param: Option<String>,
    /// The provider's message, at most 2,000 bytes of it.
    pub message: String,
    /// How long the message asks the client to wait ("try again in 1.5s"), at most an hour. A `Retry-After` header is
    /// more reliable.
    pub wait: Option<Duration>,
}

/// What a [`ProviderFailure`] means for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureKind {
    /// The conversation is longer than the model's context: compact it first.
    ContextExceeded,
    /// The account has no credit or quota left: do not retry.
    Quota,
    /// Too many requests at the moment: wait and retry.
    RateLimited,
    /// The provider has no capacity at the moment: wait and retry.
    Overloaded,
    /// The API key is missing, wrong or lacks a permission: do not retry.
    Authentication,
    /// The model or another resource does not exist: do not retry.
    NotFound,
    /// The provider's content rules refused the request: do not retry.
    Refused,
    /// The request is wrong: do not retry.
    Invalid,
    /// The provider failed, or timed out: retry.
    Server,
    /// Nothing is known about the failure.
    Unknown,
}

impl FailureKind {
    /// Whether the same request may succeed later.
    pub const fn may_succeed_later(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded | Self::Server | Self::Unknown)
    }
}

impl ProviderFailure {
    /// Reads the body of an error response: `{error: {message, type, code, param}}`, the same members without the
    /// wrapper, `{error: "text"}`, `{detail}`, or any text.
    ///
    /// ```
    /// use toolcrib_wire::model::{FailureKind, ProviderFailure};
    ///
    /// let body = br#"{"error": {"message": "Rate limit reached. Please try again in 1.5s.",
    ///     "type": "tokens", "code": "rate_limit_exceeded", "param": null}}"#;
    /// let failure = ProviderFailure::read(Some(429), body);
    /// assert_eq!(failure.kind, FailureKind::RateLimited);
    /// assert_eq!(failure.wait.map(|wait| wait.as_millis()), Some(1_500));
    /// ```
    pub fn read(status: Option<u16>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match parse(&text) {
            Ok(tape) => Self::of(status, tape.root()),
            Err(_) => Self::new(status, &Parts { message: text.trim(), ..Parts::default() }),
        }
    }

    /// Reads a failure from parsed JSON, nested or flat, field by field.
    pub(super) fn of(status: Option<u16>, body: Cursor<'_>) -> Self {
        // Some servers wrap the error in a list.
        let body = body.items().next().unwrap_or(body);
        let nested = body.get("error");
        let read = |key: &str| {
            [nested, Some(body)].into_iter().flatten().find_map(|place| scalar(place.get(key)?))
        };
        let message = read("message")
            .or_else(|| nested.and_then(Cursor::as_str).map(Into::into))
            .or_else(|| scalar(body.get("detail")?));
        // A flat event's own `type` says only that it is an error.
        let error_type =
            read("type").filter(|name| !matches!(name.as_str(), "error" | "response.failed"));
        let code = read("code");
        let status = status.or_else(|| {
            let number = |text: &String| text.parse().ok().filter(|code| (100..600).contains(code));
            code.as_ref().and_then(number).or_else(|| read("status").as_ref().and_then(number))
        });
        let param = read("param");
        let message = message.unwrap_or_else(|| body.source().to_owned());
        Self::new(
            status,
            &Parts {
                error_type: error_type.as_deref(),
                code: code.as_deref(),
                param: param.as_deref(),
                message: &message,
            },
        )
    }

    fn new(status: Option<u16>, parts: &Parts<'_>) -> Self {
        let message = cut(parts.message);
        let owned = |text: Option<&str>| text.map(|text| cut(text).to_owned());
        Self {
            kind: kind(status, parts.error_type, parts.code, message),
            status,
            error_type: owned(parts.error_type),
            code: owned(parts.code),
            param: owned(parts.param),
            wait: wait(message),
            message: message.to_owned(),
        }
    }
}

impl fmt::Display for ProviderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = self.status {
            write!(f, "HTTP {status}, ")?;
        }
        if let Some(name) = self.code.as_ref().or(self.error_type.as_ref()) {
            write!(f, "{name}: ")?;
        }
        f.write_str(if self.message.is_empty() { "no message" } else { &self.message })
    }
}

impl Error for ProviderFailure {}

#[derive(Default)]
struct Parts<'a> {
    error_type: Option<&'a str>,
    code: Option<&'a str>,
    param: Option<&'a str>,
    message: &'a str,
}

/// A string or a number as text.
fn scalar(value: Cursor<'_>) -> Option<String> {
    match value.number() {
        Some(Number::Unsigned(number)) => Some(number.to_string()),
        Some(_) => Some(value.source().to_owned()),
        None => value.as_str().map(Into::into),
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Codes and types are decisive; the message is read only where providers use one type for everything.
fn kind(
    status: Option<u16>,
    error_type: Option<&str>,
    code: Option<&str>,
    message: &str,
) -> FailureKind {
    for name in [code, error_type].into_iter().flatten() {
        match name {
            "context_length_exceeded" | "exceed_context_size_error" | "request_too_large" => {
                return FailureKind::ContextExceeded;
            }
            "insufficient_quota" | "usage_not_included" | "billing_error" => {
                return FailureKind::Quota;
            }
            "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" => {
                return FailureKind::RateLimited;
            }
            "overloaded_error" | "server_is_overloaded" | "slow_down" => {
                return FailureKind::Overloaded;
            }
            "invalid_api_key" | "authentication_error" | "permission_error" => {
                return FailureKind::Authentication;
            }
            "content_filter" | "content_policy_violation" | "invalid_prompt" => {
                return FailureKind::Refused;
            }
            "model_not_found" | "not_found_error" => return FailureKind::NotFound,
            "server_error" | "api_error" | "timeout_error" | "model_error" => {
                return FailureKind::Server;
            }
            _ => {}
        }
    }
    let message = message.to_ascii_lowercase();
    let is_about_context = [
        "prompt is too long",
        "maximum context length",
        "context limit",
        "context window",
        "context size",
        "context length",
    ];
    let is_invalid = matches!(status, Some(400 | 413 | 422))
        || [code, error_type].into_iter().flatten().any(|name| name.starts_with("invalid_request"));
    match status {
        _ if is_invalid && is_about_context.iter().any(|words| message.contains(words)) => {
            FailureKind::ContextExceeded
        }
        Some(401 | 403) => FailureKind::Authentication,
        Some(402) => FailureKind::Quota,
        Some(404) => FailureKind::NotFound,
        Some(413) => FailureKind::ContextExceeded,
        Some(429) => FailureKind::RateLimited,
        Some(503 | 529) => FailureKind::Overloaded,
        Some(408 | 409 | 500..) => FailureKind::Server,
        _ if is_invalid => FailureKind::Invalid,
        Some(400..500) => FailureKind::Invalid,
        _ => FailureKind::Unknown,
    }
}

/// The time after "try again in": a number with the unit `ms`, `s`, `m` or `h`, or several such.
fn wait(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    let (_, rest) = lower.split_once("try again in ")?;
    let mut total = Duration::ZERO;
    let mut rest = rest;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..letters] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            _ => break,
        };
        total =
            total.saturating_add(Duration::try_from_secs_f64(number * unit).unwrap_or(MAX_WAIT));
        rest = &after[letters..];
    }
    (total > Duration::ZERO).then(|| total.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_classified_in_every_shape() {
        let cases: &[(Option<u16>, &str, FailureKind)] = &[
            (
                Some(400),
                r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                FailureKind::ContextExceeded,
            ),
            (
                Some(400),
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                FailureKind::ContextExceeded,
            ),
            (
                Some(400),
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                FailureKind::ContextExceeded,
            ),
            (
                Some(400),
                r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#,
                FailureKind::Invalid,
            ),
            (
                Some(429),
                r#"{"error":{"message":"no credit","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                FailureKind::Quota,
            ),
            (Some(429), r#"{"detail":"slow"}"#, FailureKind::RateLimited),
            (Some(529), "overloaded", FailureKind::Overloaded),
            (Some(502), "<html>bad gateway</html>", FailureKind::Server),
            (Some(401), "{}", FailureKind::Authentication),
            (Some(404), r#"{"error":"model 'x' not found"}"#, FailureKind::NotFound),
            (
                None,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                FailureKind::Overloaded,
            ),
            (
                None,
                r#"{"type":"error","code":"rate_limit_exceeded","message":"wait","param":null}"#,
                FailureKind::RateLimited,
            ),
            (
                None,
                r#"{"error":{"code":502,"message":"Provider returned error"}}"#,
                FailureKind::Server,
            ),
            (None, r#"[{"error":{"code":503,"message":"UNAVAILABLE"}}]"#, FailureKind::Overloaded),
            (None, "", FailureKind::Unknown),
        ];
        for (status, body, kind) in cases {
            let failure = ProviderFailure::read(*status, body.as_bytes());
            assert_eq!(failure.kind, *kind, "{body}");
        }
    }

    #[test]
    fn the_wait_in_a_message_is_read_and_bounded() {
        let wait = |text: &str| wait(text).map(|wait| wait.as_millis());
        assert_eq!(wait("Please try again in 28ms."), Some(28));
        assert_eq!(wait("Please try again in 11.054s. Visit"), Some(11_054));
        assert_eq!(wait("try again in 1m30s"), Some(90_000));
        assert_eq!(wait("Try again in 35 seconds."), Some(35_000));
        assert_eq!(wait("try again in 99999999999999999999h"), Some(3_600_000));
        assert_eq!(wait("try again in a while"), None);
        assert_eq!(wait("try again later"), None);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let failure = ProviderFailure::read(Some(500), "ä".repeat(5_000).as_bytes());
        assert_eq!(failure.message.len(), MAX_MESSAGE);
    }
}
