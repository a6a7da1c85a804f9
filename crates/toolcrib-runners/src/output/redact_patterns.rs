//! Redacts matches of a declaration's patterns.

use std::borrow::Cow;

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;
use toolcrib_json::exact;
use toolcrib_tool::{CallContext, Data, visible};

/// The replacement for a match.
const MARK: &str = "[redacted]";

/// Compiles the patterns of a declaration; fails with one clause about the first that is invalid. `what` says what the
/// patterns are for.
pub(crate) fn patterns(what: &str, texts: &[String]) -> Result<Vec<Regex>, String> {
    let compile = |text: &String| {
        Regex::new(text).map_err(|error| format!("the {what} pattern `{text}` is invalid: {error}"))
    };
    texts.iter().map(compile).collect()
}

/// The compiled patterns of a declaration.
#[derive(Debug, Default)]
pub(crate) struct Redaction(Vec<Regex>);

impl Redaction {
    /// Compiles the patterns; fails with a clause about the first invalid one.
    pub(crate) fn new(texts: &[String]) -> Result<Self, String> {
        patterns("redaction", texts).map(Self)
    }

    /// Whether there are no patterns.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a match may span several lines, so that a single line cannot be redacted alone.
    pub(crate) fn spans_lines(&self) -> bool {
        self.0.iter().any(|pattern| {
            regex_syntax::parse(pattern.as_str()).map_or(true, |parsed| has_line_end(&parsed))
        })
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
            // An exact number in its protected form stays a number.
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

/// What one call must not show: the host's secrets and matches of the declaration's patterns.
#[derive(Clone, Copy)]
pub(crate) struct CallRedaction<'c> {
    pub(crate) patterns: &'c Redaction,
    pub(crate) cx: &'c CallContext,
}

impl CallRedaction<'_> {
    /// The text without secrets and without matches.
    pub(crate) fn text(&self, text: String) -> String {
        self.patterns.text(self.cx.masked(text))
    }

    /// The text as it may be shown. Its control characters are escaped last: a secret that contains some would not be
    /// found any more.
    pub(crate) fn shown(&self, text: String) -> String {
        visible(&self.text(text)).into_owned()
    }

    /// The data without matches. The host masks secrets in it.
    pub(crate) fn data(&self, data: Data) -> Data {
        self.patterns.data(data)
    }

    /// The JSON text of such data, if it cannot be shown as it is: without secrets, control characters escaped.
    pub(crate) fn escaped_json(&self, data: &Data) -> Option<String> {
        let text = data.to_json();
        let escapes = matches!(visible(&text), Cow::Owned(_));
        escapes.then(|| visible(&self.cx.masked(text)).into_owned())
    }
}

/// Whether a match may contain a line feed.
fn has_line_end(pattern: &Hir) -> bool {
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&'\n'))
        }
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&b'\n'))
        }
        HirKind::Repetition(repetition) => has_line_end(&repetition.sub),
        HirKind::Capture(capture) => has_line_end(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_line_end),
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
    fn patterns_that_may_match_across_lines_are_detected() {
        let spans = |pattern: &str| Redaction::new(&[pattern.to_owned()]).unwrap().spans_lines();
        for pattern in ["Bearer [A-Za-z0-9._-]+", "(?m)^password=.*$", "key: ?(a|b)+", ""] {
            assert!(!spans(pattern), "{pattern}");
        }
        for pattern in ["(?s)BEGIN.*END", "a\\s+b", "a\nb", "key=[^;]*", "x|(y\\W)"] {
            assert!(spans(pattern), "{pattern}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_named() {
        let error = Redaction::new(&["(".into()]).unwrap_err();
        assert!(error.starts_with("the redaction pattern `(` is invalid"), "{error}");
    }
}
