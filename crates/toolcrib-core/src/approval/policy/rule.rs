//! A rule as it is written.

use std::collections::BTreeMap;

use regex::Regex;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::toolset::pattern::{AnnotationPattern, Pattern, SourcePattern};

/// One rule of a policy. A call matches if it meets every condition of the rule.
///
/// A rule without conditions matches every call.
///
/// ```
/// use toolcrib_core::AnnotationPattern;
/// use toolcrib_core::policy::PolicyRule;
///
/// // Nothing that an upstream server calls destructive runs unasked.
/// let rule = PolicyRule::ask()
///     .named("upstream writes")
///     .source("upstream")
///     .annotations(AnnotationPattern { destructive: Some(true), ..Default::default() });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The rule's name in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// The tool's name; `*` is any text, `?` any one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<Pattern>,
    /// Where the tool comes from: a layer (host, native, manifest, upstream, fallback), a glob of
    /// units (crate, file or upstream name), or both as layer:glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<SourcePattern>,
    /// The tool's annotations of its effects.
    #[serde(default, skip_serializing_if = "AnnotationPattern::is_empty")]
    pub(super) annotations: AnnotationPattern,
    /// Patterns for arguments, by property name or JSON pointer. A missing argument matches
    /// nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) arguments: BTreeMap<String, ArgumentPattern>,
    /// What to do with the call.
    pub(super) action: Action,
    /// For `deny`: the message for the model. For `ask`: the message for the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// What a rule does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It runs.
    Allow,
    /// It waits for a decision.
    Ask,
    /// It is refused.
    Deny,
}

/// A condition on one argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-scalar" = "write a mapping with one of `glob: 'a*'`, `regex: '^a'` or `equals: a`"))]
pub enum ArgumentPattern {
    /// The whole text of the value matches a glob; `*` also matches `/`. The text of a value other
    /// than a string is its compact JSON.
    Glob(Pattern),
    /// A regular expression matches somewhere in the value's text (linear time, no look-around).
    Regex(#[serde(deserialize_with = "regular_expression")] String),
    /// The value equals this one; numbers are compared by value.
    Equals(Value),
}

impl ArgumentPattern {
    /// The value's text matches a glob.
    pub fn glob(glob: impl Into<String>) -> Self {
        Self::Glob(Pattern::new(glob))
    }

    /// A regular expression matches somewhere in the value's text.
    pub fn regex(pattern: impl Into<String>) -> Self {
        Self::Regex(pattern.into())
    }

    /// The value equals this one.
    pub fn equals(value: impl Into<Value>) -> Self {
        Self::Equals(value.into())
    }
}

impl PolicyRule {
    /// A rule with this action that matches every call.
    pub fn new(action: Action) -> Self {
        Self {
            name: None,
            tool: None,
            source: None,
            annotations: AnnotationPattern::default(),
            arguments: BTreeMap::new(),
            action,
            message: None,
        }
    }

    /// A rule that allows calls.
    pub fn allow() -> Self {
        Self::new(Action::Allow)
    }

    /// A rule that makes calls wait for a decision.
    pub fn ask() -> Self {
        Self::new(Action::Ask)
    }

    /// A rule that denies calls.
    pub fn deny() -> Self {
        Self::new(Action::Deny)
    }

    /// Sets the rule's name for messages.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Restricts the rule to tools whose name matches a [`Pattern`].
    #[must_use]
    pub fn tool(mut self, glob: impl Into<String>) -> Self {
        self.tool = Some(Pattern::new(glob));
        self
    }

    /// Restricts the rule to tools whose source matches a [`SourcePattern`].
    #[must_use]
    pub fn source(mut self, pattern: impl Into<String>) -> Self {
        self.source = Some(SourcePattern::new(pattern));
        self
    }

    /// Restricts the rule to tools with these annotations.
    #[must_use]
    pub fn annotations(mut self, annotations: AnnotationPattern) -> Self {
        self.annotations = annotations;
        self
    }

    /// Restricts the rule to calls with a matching argument. `place` is a JSON pointer if it begins
    /// with `/`, otherwise the name of a top-level property.
    #[must_use]
    pub fn argument(mut self, place: impl Into<String>, pattern: ArgumentPattern) -> Self {
        self.arguments.insert(place.into(), pattern);
        self
    }

    /// Sets the message for the model (`deny`) or for the approver (`ask`).
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// Refuses an invalid regular expression while it is parsed, so that its position in the file is
/// known.
fn regular_expression<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    // Config files show the lines after the first one as help.
    compile(&pattern).map_err(|broken| D::Error::custom(broken.lines().join("\n")))?;
    Ok(pattern)
}

/// Why a pattern is no regular expression, and how to repair it.
pub(super) struct BrokenPattern {
    problem: String,
    repair: Option<&'static str>,
}

impl BrokenPattern {
    /// The problem, then the repair if it is known.
    pub(super) fn lines(&self) -> Vec<&str> {
        std::iter::once(self.problem.as_str()).chain(self.repair).collect()
    }
}

/// Fails with a text that names the pattern.
pub(super) fn compile(pattern: &str) -> Result<Regex, BrokenPattern> {
    Regex::new(pattern).map_err(|error| {
        // The error shows the pattern on several lines; its last line says what is wrong.
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        let problem = format!("`{pattern}` is not a regular expression: {reason}");
        BrokenPattern { problem, repair: toolcrib_tool::pattern_repair(reason) }
    })
}
