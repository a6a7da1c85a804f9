//! Outcomes of suspended calls that somebody other than their caller has decided on.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_tool::{CallId, ToolResult};

use super::{Answer, Grant, Resolved, Suspension};
use crate::storage::clock::Timestamp;
use crate::suspension::run::lost;

/// How long an outcome is stored for its caller.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The outcome of a suspended call, stored until its caller takes it or for a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    suspension: Suspension,
    outcome: Outcome,
    decided_at: Timestamp,
}

/// The state of a call after the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It is running.
    Running,
    /// It has its final answer.
    Done(Box<ToolResult>),
    /// It was suspended again.
    Waits(Box<Suspension>),
}

impl Settled {
    /// A call that has been running since `decided_at`.
    pub fn running(suspension: Suspension, decided_at: Timestamp) -> Self {
        Self { suspension, outcome: Outcome::Running, decided_at }
    }

    /// Sets the outcome.
    #[must_use]
    pub fn ended(mut self, answer: Answer) -> Self {
        self.outcome = match answer {
            Answer::Done(result) => Outcome::Done(Box::new(result)),
            Answer::Suspended(next) => Outcome::Waits(next),
        };
        self
    }

    /// The same call after its process ended without storing an outcome. For stores.
    ///
    /// `resolved` is how the call was resolved, if that is known. A call that was denied or
    /// cancelled, or that expired, never ran, and its answer says so. Otherwise it is unknown
    /// whether it ran.
    #[must_use]
    pub fn lost(self, resolved: Option<&Resolved>) -> Self {
        let suspension = &self.suspension;
        // The call that made a nested one may have been at work.
        let refusal = resolved
            .filter(|_| suspension.within().is_none())
            .and_then(|resolved| Grant::refusal_after(suspension, resolved));
        let call = CallId::new(suspension.call_id());
        let error = refusal.unwrap_or_else(lost);
        let result = ToolResult::failure(call, suspension.called_tool(), error, Duration::ZERO);
        self.ended(Answer::Done(result))
    }

    /// The call as it was suspended.
    pub fn suspension(&self) -> &Suspension {
        &self.suspension
    }

    /// The outcome.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// When it was decided on.
    pub fn decided_at(&self) -> Timestamp {
        self.decided_at
    }

    /// The call's final answer, if it has one.
    pub fn result(&self) -> Option<ToolResult> {
        match &self.outcome {
            Outcome::Done(result) => Some((**result).clone()),
            _ => None,
        }
    }

    /// Whether it is old enough to be removed.
    pub fn is_old(&self, now: Timestamp) -> bool {
        now.since(self.decided_at) > KEPT
    }
}
