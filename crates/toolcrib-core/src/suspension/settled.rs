//! What became of a suspended call that somebody other than its caller has decided on.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_tool::{CallId, ToolResult};

use super::{Answer, Suspension};
use crate::storage::clock::Timestamp;
use crate::suspension::run::lost;

/// How long an outcome waits for its caller.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// What became of a suspended call, kept until its caller takes it or for a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    suspension: Suspension,
    outcome: Outcome,
    decided_at: Timestamp,
}

/// How far a call has come since it was decided on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It is being worked on.
    Running,
    /// It has its final answer.
    Done(Box<ToolResult>),
    /// It waits again, for something else.
    Waits(Box<Suspension>),
}

impl Settled {
    /// A call that is being worked on since `decided_at`.
    pub fn running(suspension: Suspension, decided_at: Timestamp) -> Self {
        Self { suspension, outcome: Outcome::Running, decided_at }
    }

    /// The same call with what came of it.
    #[must_use]
    pub fn ended(mut self, answer: Answer) -> Self {
        self.outcome = match answer {
            Answer::Done(result) => Outcome::Done(Box::new(result)),
            Answer::Suspended(next) => Outcome::Waits(next),
        };
        self
    }

    /// The same call, of which nobody can say what became of it: the process that worked on it ended
    /// before it said so. For stores.
    #[must_use]
    pub fn lost(self) -> Self {
        let call = CallId::new(self.suspension.call_id());
        let result =
            ToolResult::failure(call, self.suspension.called_tool(), lost(), Duration::ZERO);
        self.ended(Answer::Done(result))
    }

    /// The call as it was suspended.
    pub fn suspension(&self) -> &Suspension {
        &self.suspension
    }

    /// What came of it.
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

    /// Whether its caller has had long enough to take it.
    pub fn is_old(&self, now: Timestamp) -> bool {
        now.since(self.decided_at) > KEPT
    }
}
