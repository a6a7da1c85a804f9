//! A rule as it is written.

use std::collections::BTreeMap;

use regex::Regex;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::toolset::pattern::{AnnotationPattern, Pattern, SourcePattern};

/// One rule of a policy: whatever it says must all hold of a call for it to match.
///
/// A rule that says nothing but its action matches every call.
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
    /// What to call the rule in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// The tool's name; `*` is any text, `?` any one character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<Pattern>,
    /// Where the tool comes from: a layer (host, native, manifest, upstream, fallback), a glob of
    /// units (crate, file or upstream name), or both as layer:glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<SourcePattern>,
    /// What the tool says of its effects.
    #[serde(default, skip_serializing_if = "AnnotationPattern::is_empty")]
    pub(super) annotations: AnnotationPattern,
    /// What the arguments are, by the name of a property or a JSON pointer. An argument that is
    /// absent matches nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) arguments: BTreeMap<String, ArgumentPattern>,
    /// What becomes of the call.
    pub(super) action: Action,
    /// For deny: what the model is told. For ask: what the person who decides is told.
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

/// What a rule asks of one argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentPattern {
    /// The value's text matches a glob from end to end; `*` also matches `/`. The text of a value
    /// that is no string is its JSON without blanks.
    Glob(Pattern),
    /// Somewhere in the value's text a regular expression matches (linear time, no look-around).
    Regex(#[serde(deserialize_with = "regular_expression")] String),
    /// The value is this one; numbers are compared by value.
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

    /// The value is this one.
    pub fn equals(value: impl Into<Value>) -> Self {
        Self::Equals(value.into())
    }
}

impl PolicyRule {
    /// A rule of that action that matches every call.
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

    /// Lets calls run.
    pub fn allow() -> Self {
        Self::new(Action::Allow)
    }

    /// Lets calls wait for a decision.
    pub fn ask() -> Self {
        Self::new(Action::Ask)
    }

    /// Refuses calls.
    pub fn deny() -> Self {
        Self::new(Action::Deny)
    }

    /// Names the rule, for messages.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Restricts the rule to tools whose name matches, a [`Pattern`].
    #[must_use]
    pub fn tool(mut self, glob: impl Into<String>) -> Self {
        self.tool = Some(Pattern::new(glob));
        self
    }

    /// Restricts the rule to tools of a source, a [`SourcePattern`].
    #[must_use]
    pub fn source(mut self, pattern: impl Into<String>) -> Self {
        self.source = Some(SourcePattern::new(pattern));
        self
    }

    /// Restricts the rule to tools that say this of their effects.
    #[must_use]
    pub fn annotations(mut self, annotations: AnnotationPattern) -> Self {
        self.annotations = annotations;
        self
    }

    /// Restricts the rule to calls with such an argument. `place` is a JSON pointer if it begins
    /// with `/`, and else the name of a top-level property.
    #[must_use]
    pub fn argument(mut self, place: impl Into<String>, pattern: ArgumentPattern) -> Self {
        self.arguments.insert(place.into(), pattern);
        self
    }

    /// Sets what the model (deny) or the person who decides (ask) is told.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

/// Refuses what is no regular expression where it stands, so that its place in a file is known.
fn regular_expression<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    compile(&pattern).map_err(D::Error::custom)?;
    Ok(pattern)
}

/// Fails with a text that names the pattern.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| {
        // Its text draws the pattern over several lines; the last says what is wrong.
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        format!("`{pattern}` is no regular expression: {reason}")
    })
}
