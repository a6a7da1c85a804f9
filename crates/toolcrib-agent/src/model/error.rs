//! Why an attempt to ask a model failed.

use std::fmt;
use std::time::Duration;

use toolcrib_wire::model::{FailureKind, ModelError, ModelErrorKind, ProviderFailure};

/// Why an attempt to ask a model failed. Nothing of its answer may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptError {
    /// The kind of problem.
    pub kind: AttemptErrorKind,
    /// The problem.
    pub message: String,
    /// Whether the answer had begun.
    pub began: bool,
    /// How long the provider asks to wait.
    pub wait: Option<Duration>,
    /// Whether the provider asks for another attempt (`x-should-retry`), if it says so.
    pub should_retry: Option<bool>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
}

/// The kinds of [`AttemptError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptErrorKind {
    /// No connection.
    Connect,
    /// The answer did not begin, or did not continue, in time.
    Timeout,
    /// The connection ended before the answer did.
    Cut,
    /// The answer is not what the API allows.
    Malformed,
    /// The answer is too large.
    TooLarge,
    /// The provider reported a failure.
    Provider(FailureKind),
    /// The request cannot be sent: a setting is wrong.
    Setup,
}

impl AttemptErrorKind {
    /// The stable word for it, for example `connect`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Cut => "cut",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::Setup => "setup",
            Self::Provider(kind) => match kind {
                FailureKind::ContextExceeded => "context_exceeded",
                FailureKind::Quota => "quota",
                FailureKind::RateLimited => "rate_limited",
                FailureKind::Overloaded => "overloaded",
                FailureKind::Authentication => "authentication",
                FailureKind::NotFound => "not_found",
                FailureKind::Refused => "refused",
                FailureKind::Invalid => "invalid",
                FailureKind::Server => "server",
                _ => "unknown",
            },
        }
    }
}

impl fmt::Display for AttemptErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl AttemptError {
    /// An error before the answer began.
    pub fn new(kind: AttemptErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            began: false,
            wait: None,
            should_retry: None,
            request_id: None,
        }
    }

    /// The error for a failure that the provider reported.
    pub fn of_failure(failure: &ProviderFailure) -> Self {
        let error = Self::new(AttemptErrorKind::Provider(failure.kind), failure.to_string());
        Self { wait: failure.wait, ..error }
    }

    /// The error for an answer that cannot be decoded.
    pub fn of_answer(error: &ModelError) -> Self {
        let kind = match &error.kind {
            ModelErrorKind::Cut => AttemptErrorKind::Cut,
            ModelErrorKind::TooLarge => AttemptErrorKind::TooLarge,
            ModelErrorKind::Provider(failure) => {
                return Self { message: error.to_string(), ..Self::of_failure(failure) };
            }
            _ => AttemptErrorKind::Malformed,
        };
        Self::new(kind, error.to_string())
    }

    /// Whether the same request may succeed later.
    pub fn may_succeed_later(&self) -> bool {
        self.should_retry.unwrap_or(match self.kind {
            AttemptErrorKind::Connect
            | AttemptErrorKind::Timeout
            | AttemptErrorKind::Cut
            | AttemptErrorKind::Malformed => true,
            AttemptErrorKind::Provider(kind) => kind.may_succeed_later(),
            AttemptErrorKind::TooLarge | AttemptErrorKind::Setup => false,
        })
    }

    /// Whether the conversation is longer than the model's context.
    pub fn is_context_exceeded(&self) -> bool {
        self.kind == AttemptErrorKind::Provider(FailureKind::ContextExceeded)
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AttemptError {}
