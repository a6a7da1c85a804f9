//! Mappings with known keys: one table per mapping says which keys there are, what they hold and
//! which are required, and drives every message about them.

use toolcrib_tool::RateLimit;

use crate::diagnostic::{Diagnostic, Findings, did_you_mean};
use crate::document::{Entry, Node, NodeValue, Style, other_reading, shortened};
use crate::fix::{Fix, rename};
use crate::source::{Span, first_line};
use crate::units::{ByteSize, HumanDuration};

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    Text,
    Bool,
    Integer,
    Duration,
    Size,
    /// So many calls in so much time.
    Rate,
    List,
    /// A list of texts.
    Texts,
    Mapping,
    /// A mapping such as this one, which people often write as a single value.
    MappingLike(&'static str),
    /// True or false, or a mapping such as this one.
    FlagOrMapping(&'static str),
    /// A mapping from names to texts.
    TextMapping,
    /// A JSON Schema: a mapping.
    Schema,
    Choice(&'static [&'static str]),
    Any,
}

/// Whether a key must, may or cannot be there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Presence {
    /// Required; the text says what to write.
    Required(&'static str),
    Optional,
    /// Part of the format, but not honoured by this version; the text says what that means.
    NotYet(&'static str),
}

/// One row of a table of keys.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) expected: Expected,
    pub(crate) presence: Presence,
}

/// A key that may be there.
pub(crate) const fn optional(name: &'static str, expected: Expected) -> Key {
    Key { name, expected, presence: Presence::Optional }
}

/// A key that must be there.
pub(crate) const fn required(name: &'static str, expected: Expected, help: &'static str) -> Key {
    Key { name, expected, presence: Presence::Required(help) }
}

/// A key that is refused until a later version honours it: a promise nobody keeps is worse than
/// an error.
#[cfg_attr(feature = "cel", expect(dead_code, reason = "every key is honoured with all features"))]
pub(crate) const fn not_yet(name: &'static str, what: &'static str) -> Key {
    Key { name, expected: Expected::Any, presence: Presence::NotYet(what) }
}

/// A mapping and its table.
#[derive(Debug)]
pub(crate) struct Keys {
    /// What the mapping is, for messages: "a tool".
    pub(crate) what: &'static str,
    pub(crate) table: &'static [Key],
    /// Keys people write instead, and what to write.
    pub(crate) instead: &'static [(&'static str, &'static str)],
}

/// A mapping whose keys were checked: only entries that hold what they should are in it.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    /// The place of the mapping.
    pub(crate) span: Span,
    good: Vec<&'n Entry>,
    refused: Vec<&'n str>,
}

impl<'n> Fields<'n> {
    /// Checks a mapping against its table. Without a mapping there are no fields.
    pub(crate) fn read(node: &'n Node, keys: &Keys, findings: &mut Findings<'_>) -> Option<Self> {
        let NodeValue::Mapping(entries) = &node.value else {
            findings.add(wrong_type(node, None, &format!("{} is a mapping", keys.what)));
            return None;
        };
        let mut fields = Self { span: node.span.clone(), good: Vec::new(), refused: Vec::new() };
        for entry in entries {
            let Some(key) = keys.table.iter().find(|key| key.name == entry.key) else {
                if !entry.key.starts_with("x-") {
                    let unknown = keys.unknown(entry);
                    // Looking for what was meant takes time that a counted problem is not worth.
                    findings.add(if findings.lists_errors() {
                        keys.explained(unknown, entry, entries, findings.text)
                    } else {
                        unknown
                    });
                }
                continue;
            };
            if let Presence::NotYet(what) = key.presence {
                let message =
                    format!("`{}` is part of the format, but not supported yet", key.name);
                findings.add(
                    Diagnostic::error("not-supported-yet", &entry.key_span, message).help(what),
                );
                fields.refused.push(&entry.key);
            } else if check(key, entry, findings) {
                fields.good.push(entry);
            } else {
                fields.refused.push(&entry.key);
            }
        }
        for key in keys.table {
            if let Presence::Required(help) = key.presence
                && !fields.has(key.name)
            {
                let message = format!("{} needs the key `{}`", keys.what, key.name);
                let place = first_line(findings.text, &node.span);
                findings.add(Diagnostic::error("missing-key", &place, message).help(help));
            }
        }
        Some(fields)
    }

    /// Whether a key is there, rightly or wrongly.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.refused.contains(&key) || self.entry(key).is_some()
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&'n Entry> {
        self.good.iter().copied().find(|entry| entry.key == key)
    }

    pub(crate) fn node(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'n str> {
        self.node(key)?.as_str()
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.node(key)?.value {
            NodeValue::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        match &self.node(key)?.value {
            NodeValue::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    pub(crate) fn texts(&self, key: &str) -> Option<Vec<String>> {
        let items = self.node(key)?.items().iter();
        Some(items.filter_map(|item| item.as_str().map(str::to_owned)).collect())
    }
}

impl Keys {
    fn unknown(&self, entry: &Entry) -> Diagnostic {
        let message = format!("{} has no key `{}`", self.what, shortened(&entry.key));
        Diagnostic::error("unknown-key", &entry.key_span, message)
    }

    /// Adds what was probably meant.
    fn explained(
        &self,
        unknown: Diagnostic,
        entry: &Entry,
        siblings: &[Entry],
        text: &str,
    ) -> Diagnostic {
        let known = || self.table.iter().map(|key| key.name);
        let instead = self.instead.iter().find(|(written, _)| *written == entry.key);
        let help = instead.map(|(_, right)| (*right).to_owned());
        let help = help.or_else(|| did_you_mean(&entry.key, known())).unwrap_or_else(|| {
            let known: Vec<&str> = known().collect();
            format!("known keys: {}; keys of your own begin with `x-`", known.join(", "))
        });
        let names: Vec<&'static str> = known().collect();
        let fix = rename(self.what, entry, siblings, &names, |name| {
            let key = self.table.iter().find(|key| key.name == name);
            let mut findings = Findings::new(text);
            key.is_some_and(|key| {
                !matches!(key.presence, Presence::NotYet(_)) && check(key, entry, &mut findings)
            })
        });
        unknown.help(help).fix(fix)
    }
}

/// The diagnostic for a node of the wrong type.
pub(crate) fn wrong_type(node: &Node, entry: Option<&Entry>, expected: &str) -> Diagnostic {
    let message = format!("{expected}, found {}", node.describe());
    Diagnostic::error("wrong-type", &node.visible_span(entry), message)
}

/// Whether a value is what its key expects; says why not.
fn check(key: &Key, entry: &Entry, findings: &mut Findings<'_>) -> bool {
    let node = &entry.node;
    let text = findings.text;
    let raw = || text.get(node.span.clone()).unwrap_or_default();
    let mend = |findings: &mut Findings<'_>, expected: &str, help: Option<String>, fix| {
        let expected = format!("`{}` expects {expected}", key.name);
        findings.add(wrong_type(node, Some(entry), &expected).maybe_help(help).fix(fix));
        false
    };
    let refuse = |findings: &mut Findings<'_>, expected: &str, help: Option<String>| {
        mend(findings, expected, help, None::<Fix>)
    };
    match (key.expected, &node.value) {
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
        ) => true,
        (Expected::Text, NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_)) => {
            let written = raw();
            let help = (!written.is_empty()).then(|| format!("quote it: \"{written}\""));
            mend(findings, "text", help, Fix::quote(&node.span, written))
        }
        (Expected::Text, _) => refuse(findings, "text", None),
        (Expected::Bool | Expected::FlagOrMapping(_), value) => {
            let meant = match value {
                NodeValue::String(written) => boolean_meant(written),
                _ => None,
            };
            let fix = meant.map(|meant| {
                Fix::replace(&node.span, meant, format!("write `{}: {meant}`", key.name))
            });
            let (expected, example) = match key.expected {
                Expected::FlagOrMapping(example) => {
                    ("true, false or a mapping", Some(format!("write `{}: {example}`", key.name)))
                }
                _ => ("true or false", None),
            };
            mend(findings, expected, meant.map(|meant| format!("write {meant}")).or(example), fix)
        }
        (Expected::Integer, value) => check_integer(value, node.style, raw())
            .map_err(|help| refuse(findings, "a whole number", help))
            .is_ok(),
        (Expected::Duration, value) => {
            let parsed = value_text(value).map(str::parse::<HumanDuration>);
            let help = "write a whole number with ms, s, m, h or d: 250ms, 30s, 5m".to_owned();
            matches!(parsed, Some(Ok(_))) || refuse(findings, "a duration", Some(help))
        }
        (Expected::Size, value) => {
            let parsed = value_text(value).map(str::parse::<ByteSize>);
            let help = "write a whole number with B, KiB, MiB or GiB: 64KiB".to_owned();
            matches!(parsed, Some(Ok(_))) || refuse(findings, "a size", Some(help))
        }
        (Expected::Rate, value) => {
            let parsed = value_text(value).map(str::parse::<RateLimit>);
            let help = "write calls per s, min or h: 5/s, 30/min".to_owned();
            matches!(parsed, Some(Ok(_))) || refuse(findings, "a rate", Some(help))
        }
        (Expected::List, value) => refuse(findings, "a list", Some(list_meant(key.name, value))),
        (Expected::Texts, NodeValue::Sequence(items)) => {
            check_texts(key.name, items.iter().map(|item| (item, None)), findings)
        }
        (Expected::Texts, NodeValue::String(written)) => {
            let help = format!("write [{}]", shortened(written));
            // What holds a comma may be meant to be several.
            let one = !written.is_empty()
                && written.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
            let fix = one.then(|| {
                Fix::replace(
                    &node.span,
                    format!("[{}]", raw()),
                    format!("write `{}: [{written}]`", key.name),
                )
            });
            mend(findings, "a list of texts", Some(help), fix)
        }
        (Expected::Texts, _) => refuse(findings, "a list of texts", None),
        (Expected::TextMapping, NodeValue::Mapping(entries)) => {
            let values = entries.iter().map(|entry| (&entry.node, Some(entry)));
            check_texts(key.name, values, findings)
        }
        (Expected::Mapping | Expected::TextMapping, _) => refuse(findings, "a mapping", None),
        (Expected::MappingLike(example), _) => {
            let help = format!("write `{}: {example}`", key.name);
            refuse(findings, "a mapping", Some(help))
        }
        (Expected::Schema, _) => refuse(findings, "a JSON Schema, which is a mapping", None),
        (Expected::Choice(choices), value) => {
            let written = value_text(value);
            if written.is_some_and(|written| choices.contains(&written)) {
                return true;
            }
            let help = written.and_then(|text| did_you_mean(text, choices.iter().copied()));
            refuse(findings, &format!("one of {}", choices.join(", ")), help)
        }
    }
}

fn value_text(value: &NodeValue) -> Option<&str> {
    match value {
        NodeValue::String(text) => Some(text),
        _ => None,
    }
}

/// Fails with a help text.
fn check_integer(value: &NodeValue, style: Style, raw: &str) -> Result<(), Option<String>> {
    let NodeValue::Number(number) = value else { return Err(None) };
    if style == Style::Plain && other_reading(raw).is_some() {
        return Err(Some(format!("write it without leading zeros: {number}")));
    }
    if number.as_i64().is_some() { Ok(()) } else { Err(None) }
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
            let expected = format!("`{key}` expects texts");
            let fix = help.is_some().then(|| Fix::quote(&node.span, raw)).flatten();
            findings.add(wrong_type(node, entry, &expected).maybe_help(help).fix(fix));
        }
    }
    right
}

/// What to write instead of something that is no list.
fn list_meant(key: &str, value: &NodeValue) -> String {
    match value {
        NodeValue::String(text) if key == "argv" && !text.contains(['"', '\'', '\\', '`']) => {
            let words = text.split_whitespace().map(|word| format!("\"{word}\""));
            let words = shortened(&words.collect::<Vec<_>>().join(", "));
            format!("write an entry for each argument: argv: [{words}]")
        }
        NodeValue::Mapping(_) => "write a list: begin each entry with `- `".to_owned(),
        NodeValue::Null => format!("write `{key}: []` for none"),
        _ => format!("write a list: {key}: [first, second]"),
    }
}

/// What someone meant who wrote a word for a boolean.
fn boolean_meant(written: &str) -> Option<&'static str> {
    match written.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" | "true" | "1" => Some("true"),
        "no" | "off" | "n" | "false" | "0" => Some("false"),
        _ => None,
    }
}
