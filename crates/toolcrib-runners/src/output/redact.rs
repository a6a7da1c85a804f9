//! Redacts matches of a declaration's patterns.

use std::borrow::Cow;

use regex::Regex;
use serde_json::Value;
use toolcrib_json::exact;
use toolcrib_tool::Data;

/// The replacement for a match.
const MARK: &str = "[redacted]";

/// The compiled patterns of a declaration.
#[derive(Debug, Default)]
pub(crate) struct Redaction(Vec<Regex>);

impl Redaction {
    /// Compiles the patterns; fails with a clause about the first invalid one.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, String> {
        let compile = |pattern: &String| {
            Regex::new(pattern)
                .map_err(|error| format!("the redaction pattern `{pattern}` is invalid: {error}"))
        };
        patterns.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are no patterns.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with every match replaced.
    pub(crate) fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, pattern| {
            // A pattern that matches the empty string would put a mark between all characters.
            let replaced = pattern.replace_all(
                &text,
                |found: &regex::Captures<'_>| {
                    if found[0].is_empty() { "" } else { MARK }
                },
            );
            match replaced {
                Cow::Borrowed(_) => text,
                Cow::Owned(replaced) => replaced,
            }
        })
    }

    /// The data with matches replaced in its strings and keys.
    pub(crate) fn data(&self, data: Data) -> Data {
        if self.0.is_empty() {
            return data;
        }
        Data::from_protected(self.value(data.into_protected()))
    }

    fn value(&self, value: Value) -> Value {
        match value {
            // A number like any other.
            Value::String(text) if exact::number(&text).is_some() => Value::String(text),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(key, member)| (self.text(key), self.value(member)))
                .collect(),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn matches_are_replaced_in_text_and_data() {
        let redaction = Redaction::new(&["Bearer [a-z0-9]+".into(), "x*".into()]).unwrap();
        assert_eq!(redaction.text("a Bearer abc1, xx".into()), "a [redacted], [redacted]");
        assert_eq!(
            redaction.data(json!({"h": ["Bearer abc1", 1], "Bearer k": null}).into()),
            json!({"h": ["[redacted]", 1], "[redacted]": null}).into()
        );
    }

    #[test]
    fn an_invalid_pattern_is_named() {
        let error = Redaction::new(&["(".into()]).unwrap_err();
        assert!(error.starts_with("the redaction pattern `(` is invalid"), "{error}");
    }
}
