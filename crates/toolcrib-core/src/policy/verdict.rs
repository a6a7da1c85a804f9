//! What policy says of a call.

use std::fmt;
use std::sync::Arc;

/// What becomes of a call, and by whose word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow {
        /// By whose word.
        by: DecidedBy,
    },
    /// It waits for a decision.
    Ask {
        /// By whose word.
        by: DecidedBy,
        /// Why, for the person who decides.
        reason: String,
    },
    /// It is refused.
    Deny {
        /// By whose word.
        by: DecidedBy,
        /// Why, for the model.
        message: String,
    },
}

impl Verdict {
    /// By whose word.
    pub fn by(&self) -> &DecidedBy {
        match self {
            Self::Allow { by } | Self::Ask { by, .. } | Self::Deny { by, .. } => by,
        }
    }
}

/// Who decided: a rule, or the tool itself where no rule matched.
///
/// ```
/// use toolcrib_core::policy::DecidedBy;
///
/// let by = DecidedBy::Rule { position: 0, name: Some("no drops".into()) };
/// assert_eq!(by.to_string(), "policy.rules[0] (no drops)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// The tool's own `approval`.
    Definition,
    /// A rule of the policy.
    Rule {
        /// Its place among the rules, from 0.
        position: usize,
        /// Its name, if it has one.
        name: Option<Arc<str>>,
    },
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition => f.write_str("the tool's own `approval`"),
            Self::Rule { position, name: None } => write!(f, "policy.rules[{position}]"),
            Self::Rule { position, name: Some(name) } => {
                write!(f, "policy.rules[{position}] ({name})")
            }
        }
    }
}
