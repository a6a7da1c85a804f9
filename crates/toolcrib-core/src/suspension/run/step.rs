//! Steps of runs that another crate encodes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::journal::MessageNumber;
use crate::storage::clock::Timestamp;
use crate::suspension::{Suspension, SuspensionId};

/// A step of a run that is not a batch of calls, such as an agent's. Stores know of it what they
/// need to keep its run; the rest is its crate's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStep {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begins: Option<Begun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<StepCall>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_over: bool,
    /// The message that it takes up. Only the store that appends it needs to know.
    #[serde(skip)]
    takes: Option<MessageNumber>,
    body: Value,
}

/// Whose run a step begins, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    identity: String,
    created_at: Timestamp,
}

/// The call that a step is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepCall {
    /// Its number. Of the waiting calls of a run, no two have the same.
    call: usize,
    /// As what it waits now, and until when; `None` if it waits no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits: Option<(SuspensionId, Timestamp)>,
}

impl RunStep {
    /// A step. Secrets in `body` must be masked.
    pub fn new(body: Value) -> Self {
        Self { begins: None, call: None, is_over: false, takes: None, body }
    }

    /// Makes it the first step of a run of this identity.
    #[must_use]
    pub fn beginning(mut self, identity: impl Into<String>, created_at: Timestamp) -> Self {
        self.begins = Some(Begun { identity: identity.into(), created_at });
        self
    }

    /// After it, the call with this number waits. Of the waiting calls of a run, no two may have the
    /// same number.
    #[must_use]
    pub fn waiting(mut self, call: usize, suspension: &Suspension) -> Self {
        let waits = Some((suspension.id().clone(), suspension.expires_at()));
        self.call = Some(StepCall { call, waits });
        self
    }

    /// After it, the call with this number waits no more.
    #[must_use]
    pub fn answering(mut self, call: usize) -> Self {
        self.call = Some(StepCall { call, waits: None });
        self
    }

    /// After it, the run is over and none of its calls waits. A further step reopens it.
    #[must_use]
    pub fn ending(mut self) -> Self {
        self.is_over = true;
        self
    }

    /// It takes up a message that was left for whoever works on the run.
    #[must_use]
    pub fn taking(mut self, message: MessageNumber) -> Self {
        self.takes = Some(message);
        self
    }

    pub(super) fn takes(&self) -> Option<MessageNumber> {
        self.takes
    }

    /// Whether the run is over after it.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The step, as its crate has encoded it.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The step, as its crate has encoded it.
    pub fn into_body(self) -> Value {
        self.body
    }

    pub(super) fn begins(&self) -> Option<(&str, Timestamp)> {
        self.begins.as_ref().map(|begun| (begun.identity.as_str(), begun.created_at))
    }

    pub(super) fn waits(&self) -> Option<(usize, Option<(&SuspensionId, Timestamp)>)> {
        let StepCall { call, waits } = self.call.as_ref()?;
        Some((*call, waits.as_ref().map(|(id, until)| (id, *until))))
    }
}
