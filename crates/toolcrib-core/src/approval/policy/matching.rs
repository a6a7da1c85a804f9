//! A rule ready for use: every pattern compiled.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;
use toolcrib_json::exact;
use toolcrib_tool::{Arguments, ToolEntry, canonical_json};

use super::rule::compile;
use super::{ArgumentPattern, DecidedBy, PolicyError, PolicyRule};
use crate::toolset::pattern::Pattern;

#[derive(Debug, Clone)]
pub(super) struct CompiledRule {
    position: usize,
    name: Option<Arc<str>>,
    arguments: Vec<(String, Matcher)>,
    pub(super) written: PolicyRule,
}

#[derive(Debug, Clone)]
enum Matcher {
    Glob(Pattern),
    Regex(Regex),
    Equals(Value),
}

impl CompiledRule {
    pub(super) fn compile(position: usize, written: PolicyRule) -> Result<Self, PolicyError> {
        let mut arguments = Vec::with_capacity(written.arguments.len());
        for (place, pattern) in &written.arguments {
            let matcher = Matcher::new(pattern).map_err(|problem| {
                PolicyError::new(position, format!("arguments.{place}"), problem)
            })?;
            arguments.push((place.clone(), matcher));
        }
        let name = written.name.as_deref().map(Arc::from);
        Ok(Self { position, name, arguments, written })
    }

    pub(super) fn decided_by(&self) -> DecidedBy {
        DecidedBy::Rule { position: self.position, name: self.name.clone() }
    }

    /// Whether the rule can match a call of this tool, with any arguments.
    pub(super) fn may_match(&self, entry: &ToolEntry) -> bool {
        let PolicyRule { tool, source, annotations, .. } = &self.written;
        tool.as_ref().is_none_or(|tool| tool.matches(entry.name()))
            && source.as_ref().is_none_or(|source| source.matches(&entry.source))
            && annotations.matches(entry.definition.annotations())
    }

    /// Cheap checks come first: the arguments are read into a `Value` only if everything else
    /// matches.
    ///
    /// Patterns match numbers as they were written; equality compares values.
    pub(super) fn matches(&self, entry: &ToolEntry, arguments: &Arguments) -> bool {
        if !self.may_match(entry) {
            return false;
        }
        let reads_text = |(_, matcher): &(_, Matcher)| !matches!(matcher, Matcher::Equals(_));
        let exact = self.arguments.iter().any(reads_text).then(|| arguments.exact());
        self.arguments.iter().all(|(place, matcher)| {
            let value = match (matcher, &exact) {
                (Matcher::Equals(_), _) | (_, None) => arguments.value(),
                (_, Some(exact)) => exact.protected(),
            };
            at(value, place).is_some_and(|value| matcher.matches(value))
        })
    }
}

impl Matcher {
    fn new(pattern: &ArgumentPattern) -> Result<Self, String> {
        match pattern {
            ArgumentPattern::Glob(glob) => Ok(Self::Glob(glob.clone())),
            ArgumentPattern::Regex(pattern) => {
                let compiled = compile(pattern).map(Self::Regex);
                compiled.map_err(|broken| broken.lines().join("; "))
            }
            ArgumentPattern::Equals(value) => Ok(Self::Equals(value.clone())),
        }
    }

    fn matches(&self, value: &Value) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(&text(value)),
            Self::Regex(pattern) => pattern.is_match(&text(value)),
            Self::Equals(wanted) => same(wanted, value),
        }
    }
}

fn at<'v>(arguments: &'v Value, place: &str) -> Option<&'v Value> {
    if place.starts_with('/') { arguments.pointer(place) } else { arguments.get(place) }
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(exact::number(text).unwrap_or(text)),
        other => Cow::Owned(canonical_json(other)),
    }
}

/// Equality by value: a config file may say `3.0` where a model says `3`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}
