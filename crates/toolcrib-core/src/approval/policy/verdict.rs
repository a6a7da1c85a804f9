//! The verdict of a policy on a call.

use std::fmt;
use std::sync::Arc;

/// What happens to a call, and which rule decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow {
        /// What decided it.
        by: DecidedBy,
    },
    /// It waits for a decision.
    Ask {
        /// What decided it.
        by: DecidedBy,
        /// Why, for the person who decides.
        reason: String,
    },
    /// It is refused.
    Deny {
        /// What decided it.
        by: DecidedBy,
        /// Why, for the model.
        message: String,
    },
}

impl Verdict {
    /// What decided it.
    pub fn by(&self) -> &DecidedBy {
        match self {
            Self::Allow { by } | Self::Ask { by, .. } | Self::Deny { by, .. } => by,
        }
    }

    /// The stricter of this verdict and that of a turn's own rules; this one if they are equally
    /// strict.
    #[must_use]
    pub(crate) fn narrowed(self, scope: Self) -> Self {
        if scope.strictness() > self.strictness() { scope.of_scope() } else { self }
    }

    fn strictness(&self) -> u8 {
        match self {
            Self::Allow { .. } => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        }
    }

    fn of_scope(mut self) -> Self {
        let (Self::Allow { by } | Self::Ask { by, .. } | Self::Deny { by, .. }) = &mut self;
        if let DecidedBy::Rule { position, name } = by {
            *by = DecidedBy::ScopeRule { position: *position, name: name.take() };
        }
        self
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
        /// Its index, from 0.
        position: usize,
        /// Its name, if it has one.
        name: Option<Arc<str>>,
    },
    /// A rule of the turn's own ([`TurnOptions::scope`](crate::TurnOptions::scope)).
    ScopeRule {
        /// Its index among them, from 0.
        position: usize,
        /// Its name, if it has one.
        name: Option<Arc<str>>,
    },
    /// The host, about this very call ([`TurnOptions::asking`](crate::TurnOptions::asking)).
    Host,
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (position, name) = match self {
            Self::Definition => return f.write_str("the tool's own `approval`"),
            Self::Host => return f.write_str("the host"),
            Self::Rule { position, name } => (position, name),
            Self::ScopeRule { position, name } => {
                f.write_str("the caller's ")?;
                (position, name)
            }
        };
        write!(f, "policy.rules[{position}]")?;
        name.as_ref().map_or(Ok(()), |name| write!(f, " ({name})"))
    }
}
