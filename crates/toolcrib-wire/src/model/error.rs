//! What can be wrong with a model's answer.

use std::error::Error;
use std::fmt;

use toolcrib_json::Cursor;

use super::failure::ProviderFailure;

/// Why an answer cannot be used. None of its calls may run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelError {
    /// The kind of problem.
    pub kind: ModelErrorKind,
    /// The wrong field as a JSON pointer into the body or, in a stream, into the event; empty if the problem is not in
    /// one field.
    pub at: String,
    /// The number of the event in the stream, from 1; `None` outside a stream.
    pub event: Option<u64>,
    /// The problem, and what would be correct.
    pub message: String,
}

/// The kinds of [`ModelError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The stream ended before the answer did. Another attempt may succeed.
    Cut,
    /// The provider sent something that its API does not allow. Another attempt may succeed.
    Malformed,
    /// The answer is larger than a [limit](super::Limits). Another attempt rarely succeeds.
    TooLarge,
    /// The provider reported a failure.
    Provider(Box<ProviderFailure>),
}

impl ModelError {
    /// The field at `at` is wrong: `problem` continues its name, as in "must be a string".
    pub(super) fn field(at: Cursor<'_>, problem: impl Into<String>) -> Self {
        Self::at(at.pointer(), problem)
    }

    /// The member `key` of `value` is missing or wrong.
    pub(super) fn member(value: Cursor<'_>, key: &str, problem: impl Into<String>) -> Self {
        Self::at(format!("{}/{key}", value.pointer()), problem)
    }

    pub(super) fn at(pointer: String, problem: impl Into<String>) -> Self {
        Self { kind: ModelErrorKind::Malformed, at: pointer, event: None, message: problem.into() }
    }

    pub(super) fn cut(message: impl Into<String>) -> Self {
        Self { kind: ModelErrorKind::Cut, at: String::new(), event: None, message: message.into() }
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self {
            kind: ModelErrorKind::TooLarge,
            at: String::new(),
            event: None,
            message: message.into(),
        }
    }

    pub(super) fn provider(failure: ProviderFailure) -> Self {
        Self {
            message: failure.to_string(),
            kind: ModelErrorKind::Provider(Box::new(failure)),
            at: String::new(),
            event: None,
        }
    }

    pub(super) fn in_event(mut self, event: u64) -> Self {
        self.event.get_or_insert(event);
        self
    }

    /// The failure that the provider reported, if this is one.
    pub fn failure(&self) -> Option<&ProviderFailure> {
        match &self.kind {
            ModelErrorKind::Provider(failure) => Some(failure),
            _ => None,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ModelErrorKind::Malformed => f.write_str("the model's answer is malformed")?,
            ModelErrorKind::Cut => f.write_str("the model's answer was cut off")?,
            ModelErrorKind::TooLarge => f.write_str("the model's answer is too large")?,
            ModelErrorKind::Provider(_) => f.write_str("the model provider failed")?,
        }
        if let Some(event) = self.event {
            write!(f, " in event {event}")?;
        }
        f.write_str(": ")?;
        if !self.at.is_empty() {
            write!(f, "`{}` ", self.at)?;
        }
        f.write_str(&self.message)
    }
}

impl Error for ModelError {}
