//! Checks whether a value has the type of its key, and suggests what to write otherwise.

use std::str::FromStr;

use toolcrib_tool::RateLimit;

use super::{Expected, Key, wrong_type};
use crate::diagnostic::fix::Fix;
use crate::diagnostic::{Findings, did_you_mean};
use crate::document::{Entry, Node, NodeValue, Style, other_reading};
use crate::fields::suggestions;
use crate::units::{ByteSize, HumanDuration};

/// The expected value, in place of a wrong one.
struct Mismatch {
    expected: String,
    help: Option<String>,
    fix: Option<Fix>,
}

impl Mismatch {
    fn new(expected: impl Into<String>, help: Option<String>) -> Self {
        Self { expected: expected.into(), help, fix: None }
    }

    fn fix(self, fix: impl Into<Option<Fix>>) -> Self {
        Self { fix: fix.into(), ..self }
    }
}

/// Whether a value has the type of its key; adds a diagnostic if not.
pub(super) fn check(key: &Key, entry: &Entry, findings: &mut Findings<'_>) -> bool {
    let node = &entry.node;
    let raw = findings.text.get(node.span.clone()).unwrap_or_default();
    let mismatch = match (key.expected, &node.value) {
        (Expected::Texts, NodeValue::Sequence(items)) => {
            return check_texts(key.name, items.iter().map(|item| (item, None)), findings);
        }
        (Expected::TextMapping, NodeValue::Mapping(entries)) => {
            let values = entries.iter().map(|entry| (&entry.node, Some(entry)));
            return check_texts(key.name, values, findings);
        }
        (Expected::Any, _)
        | (Expected::Text, NodeValue::String(_))
        | (Expected::Bool | Expected::FlagOrMapping(_), NodeValue::Bool(_))
        | (Expected::List, NodeValue::Sequence(_))
        | (
            Expected::Mapping
            | Expected::MappingLike(_)
            | Expected::FlagOrMapping(_)
            | Expected::Schema,
            NodeValue::Mapping(_),
        ) => None,
        (Expected::Text, _) => Some(no_text(node, raw)),
        (Expected::Bool | Expected::FlagOrMapping(_), _) => Some(no_flag(key, node)),
        (Expected::Integer, _) => no_integer(key, node, raw),
        (Expected::Duration, value) => {
            let known = "a whole number with ms, s, m, h or d: 250ms, 30s, 5m";
            let meant = suggestions::duration(raw);
            let meant = match meant {
                Some(zero) if is_zero_limit(key, &zero) => Some("10m".to_owned()),
                meant => meant,
            };
            no_measure::<HumanDuration>(value, "a duration", meant, known)
        }
        (Expected::Size, value) => {
            let known = "a whole number with B, KiB, MiB or GiB: 64KiB";
            no_measure::<ByteSize>(value, "a size", suggestions::size(raw), known)
        }
        (Expected::Rate, value) => {
            let known = "calls per s, min or h: 5/s, 30/min";
            no_measure::<RateLimit>(value, "a rate", suggestions::rate(raw), known)
        }
        (Expected::Choice(choices), value) => no_choice(key, value, raw, choices),
        (Expected::List, value) => {
            Some(Mismatch::new("a list", Some(suggestions::list(key.name, value, raw))))
        }
        (Expected::Texts, value) => {
            let help = suggestions::texts(key.name, value, raw);
            Some(Mismatch::new("a list of texts", help).fix(list_of_one(key, node, raw)))
        }
        (Expected::TextMapping, value) => {
            Some(Mismatch::new("a mapping", suggestions::text_mapping(key.name, value)))
        }
        (Expected::Mapping, value) => {
            Some(Mismatch::new("a mapping", suggestions::mapping(key.name, value, raw)))
        }
        (Expected::MappingLike(example), value) => {
            let help = suggestions::mapping(key.name, value, raw)
                .unwrap_or_else(|| format!("write `{}: {example}`", key.name));
            Some(Mismatch::new("a mapping", Some(help)))
        }
        (Expected::Schema, value) => {
            let help = suggestions::mapping(key.name, value, raw);
            Some(Mismatch::new("a JSON Schema, which is a mapping", help))
        }
    };
    let Some(Mismatch { expected, help, fix }) = mismatch else { return true };
    let help = help.or_else(|| suggestions::nothing(key.name, &node.value));
    let expected = format!("`{}` expects {expected}", key.name);
    findings.add(wrong_type(node, Some(entry), &expected).maybe_help(help).fix(fix));
    false
}

fn no_text(node: &Node, raw: &str) -> Mismatch {
    match &node.value {
        NodeValue::Sequence(items) => {
            let only = match items.as_slice() {
                [only] => only.as_str().map(|text| format!("write one text: \"{text}\"")),
                _ => None,
            };
            Mismatch::new("text", only)
        }
        NodeValue::Mapping(_) | NodeValue::String(_) => Mismatch::new("text", None),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
            let help = (!raw.is_empty()).then(|| format!("quote it: \"{raw}\""));
            Mismatch::new("text", help).fix(Fix::quote(&node.span, raw))
        }
    }
}

fn no_flag(key: &Key, node: &Node) -> Mismatch {
    let meant = node.as_str().and_then(boolean_meant);
    let fix = meant
        .map(|meant| Fix::replace(&node.span, meant, format!("write `{}: {meant}`", key.name)));
    let (expected, example) = match key.expected {
        Expected::FlagOrMapping(example) => {
            ("true, false or a mapping", Some(format!("write `{}: {example}`", key.name)))
        }
        _ => ("true or false", None),
    };
    Mismatch::new(expected, meant.map(|meant| format!("write {meant}")).or(example)).fix(fix)
}

fn no_integer(key: &Key, node: &Node, raw: &str) -> Option<Mismatch> {
    const EXPECTED: &str = "a whole number";
    match &node.value {
        NodeValue::Number(number) if node.style == Style::Plain && other_reading(raw).is_some() => {
            let help = format!("write it without leading zeros: {number}");
            Some(Mismatch::new(EXPECTED, Some(help)))
        }
        NodeValue::Number(number) if number.as_i64().is_some() => None,
        NodeValue::String(digits)
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            let help = format!("write it without quotes: `{}: {digits}`", key.name);
            let fix = Fix::replace(&node.span, digits.as_str(), format!("unquote `{digits}`"));
            Some(Mismatch::new(EXPECTED, Some(help)).fix(fix))
        }
        NodeValue::String(word) => {
            let number = number_meant(word);
            Some(Mismatch::new(
                EXPECTED,
                number.map(|number| format!("write `{}: {number}`", key.name)),
            ))
        }
        _ => Some(Mismatch::new(EXPECTED, None)),
    }
}

/// The number for a number word.
fn number_meant(word: &str) -> Option<usize> {
    const WORDS: [&str; 11] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.iter().position(|known| known.eq_ignore_ascii_case(word.trim()))
}

/// The expectation for a value with a wrong or missing unit.
fn no_measure<T: FromStr>(
    value: &NodeValue,
    expected: &str,
    meant: Option<String>,
    known: &str,
) -> Option<Mismatch> {
    if let NodeValue::String(text) = value
        && text.parse::<T>().is_ok()
    {
        return None;
    }
    let help = meant
        .map_or_else(|| format!("write {known}"), |meant| format!("write `{meant}` ({known})"));
    Some(Mismatch::new(expected, Some(help)))
}

/// Whether a suggested time would be refused, because it ends every call before it begins.
fn is_zero_limit(key: &Key, meant: &str) -> bool {
    let number = meant.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    key.name == "timeout" && number.bytes().all(|digit| digit == b'0')
}

fn no_choice(key: &Key, value: &NodeValue, raw: &str, choices: &[&str]) -> Option<Mismatch> {
    let written = match value {
        NodeValue::String(text) if choices.contains(&text.as_str()) => return None,
        NodeValue::String(text) => text,
        _ => raw,
    };
    let help = suggestions::choice(key.name, written, choices)
        .map(|meant| format!("write `{}: {meant}`", key.name))
        .or_else(|| suggestions::profiles(key.name, written))
        .or_else(|| did_you_mean(written, choices.iter().copied()));
    Some(Mismatch::new(format!("one of {}", choices.join(", ")), help))
}

/// The edit that turns a text into a list. A text with a comma may mean several items.
fn list_of_one(key: &Key, node: &Node, raw: &str) -> Option<Fix> {
    let written = node.as_str()?;
    let one =
        !written.is_empty() && written.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    one.then(|| {
        let what = format!("write `{}: [{written}]`", key.name);
        Fix::replace(&node.span, format!("[{raw}]"), what)
    })
}

fn check_texts<'n>(
    key: &str,
    values: impl Iterator<Item = (&'n Node, Option<&'n Entry>)>,
    findings: &mut Findings<'_>,
) -> bool {
    let mut right = true;
    for (node, entry) in values {
        if node.as_str().is_none() {
            right = false;
            let raw = findings.text.get(node.span.clone()).unwrap_or_default();
            let scalar = !matches!(node.value, NodeValue::Sequence(_) | NodeValue::Mapping(_));
            let help = (scalar && !raw.is_empty()).then(|| format!("quote it: \"{raw}\""));
            let empty = (node.value == NodeValue::Null).then(|| match entry {
                Some(entry) => {
                    format!("write `{}: \"\"` for an empty text, or remove it", entry.key)
                }
                None => "write \"\" for an empty text, or remove the entry".to_owned(),
            });
            let help = help.or(empty);
            let expected = format!("`{key}` expects texts");
            let fix = (scalar && !raw.is_empty()).then(|| Fix::quote(&node.span, raw)).flatten();
            findings.add(wrong_type(node, entry, &expected).maybe_help(help).fix(fix));
        }
    }
    right
}

/// The boolean for a word such as `yes`.
pub(crate) fn boolean_meant(written: &str) -> Option<&'static str> {
    match written.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" | "1" => Some("true"),
        "no" | "off" | "n" | "false" | "0" => Some("false"),
        _ => None,
    }
}
