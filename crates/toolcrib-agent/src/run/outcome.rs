//! How a run ends.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::budget::Limit;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Outcome {
    /// The model gave its final answer.
    Completed {
        /// The answer.
        text: String,
    },
    /// It failed.
    Failed {
        /// Why.
        reason: FailureReason,
        /// The problem, for people.
        message: String,
        /// What the model had answered last, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// It was cancelled.
    Cancelled {
        /// The reason.
        reason: String,
    },
}

impl Outcome {
    /// The outcome of a run whose budget is used up.
    pub(crate) fn over_budget(limit: Limit) -> Self {
        Self::Failed {
            reason: FailureReason::Budget(limit),
            message: format!("the budget of the run is used up ({limit})"),
            text: None,
        }
    }

    /// Whether the run can go on instead, if somebody says something before it ends.
    pub(crate) fn may_go_on(&self) -> bool {
        match self {
            Self::Completed { .. } => true,
            Self::Failed { reason, .. } => matches!(
                reason,
                FailureReason::Refused | FailureReason::Filtered | FailureReason::Incomplete
            ),
            Self::Cancelled { .. } => false,
        }
    }
}

/// Why a run failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureReason {
    /// The model could not be asked, or gave no complete answer.
    Model,
    /// The conversation is longer than the model's context.
    ContextExceeded,
    /// The model refused to answer.
    Refused,
    /// A content filter of the provider stopped the answer.
    Filtered,
    /// The final answer was stopped by its limit on length, or for an unknown reason.
    Incomplete,
    /// The final answer does not match the schema of the agent's answers.
    InvalidAnswer,
    /// A limit of the budget was reached, and the last round gave no answer.
    #[serde(untagged)]
    Budget(Limit),
}

impl FailureReason {
    /// The stable word for it, for example `context_exceeded` or `max_turns`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::ContextExceeded => "context_exceeded",
            Self::Refused => "refused",
            Self::Filtered => "filtered",
            Self::Incomplete => "incomplete",
            Self::InvalidAnswer => "invalid_answer",
            Self::Budget(limit) => limit.as_str(),
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_stored_as_their_words() {
        for reason in [FailureReason::Model, FailureReason::Budget(Limit::Turns)] {
            let text = serde_json::to_string(&reason).unwrap();
            assert!(text.contains(reason.as_str()), "{text}");
            assert_eq!(serde_json::from_str::<FailureReason>(&text).unwrap(), reason);
        }
    }
}
