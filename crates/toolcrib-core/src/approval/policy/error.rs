//! Why a policy is invalid.

/// An invalid rule: which one, where in it, and why.
///
/// ```
/// use toolcrib_core::policy::{ArgumentPattern, Policy, OnAsk, PolicyRule};
///
/// let rule = PolicyRule::ask().argument("sql", ArgumentPattern::regex("("));
/// let error = Policy::new(OnAsk::Wait, [rule]).unwrap_err();
/// assert!(error.to_string().starts_with("policy.rules[0].arguments.sql: `(` is not a regular expression"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    position: usize,
    place: String,
    problem: String,
}

impl PolicyError {
    pub(super) fn new(position: usize, place: impl Into<String>, problem: String) -> Self {
        Self { position, place: place.into(), problem }
    }

    /// The rule's index, from 0.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl std::fmt::Display for PolicyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "policy.rules[{}].{}: {}", self.position, self.place, self.problem)
    }
}

impl std::error::Error for PolicyError {}
