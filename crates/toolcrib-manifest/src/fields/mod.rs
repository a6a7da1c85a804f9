//! Mappings with known keys. A table for each mapping lists the keys, their types and which are
//! required; all messages about keys use it.

mod check;
mod suggestions;

pub(crate) use crate::fields::check::boolean_meant;
pub(crate) use crate::fields::suggestions::{duration, list_of, number, rate, shell_line, size};

use crate::diagnostic::fix::rename;
use crate::diagnostic::position::{Span, first_line};
use crate::diagnostic::{Diagnostic, Findings, did_you_mean, keys_meant};
use crate::document::{Entry, Node, NodeValue, shortened};
use crate::units::HumanDuration;
use check::check;

/// The expected type of a key's value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    Text,
    Bool,
    Integer,
    Duration,
    Size,
    /// A rate: calls per time.
    Rate,
    List,
    /// A list of texts.
    Texts,
    Mapping,
    /// A mapping, with an example, because people often write a single value instead.
    MappingLike(&'static str),
    /// A boolean, or a mapping with this example.
    FlagOrMapping(&'static str),
    /// A mapping from names to texts.
    TextMapping,
    /// A JSON Schema: a mapping.
    Schema,
    Choice(&'static [&'static str]),
    Any,
}

/// Whether a key is required, optional or unsupported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Presence {
    /// Required; with the help text.
    Required(&'static str),
    Optional,
    /// Part of the format, but not supported by this build; with the help text.
    NotYet(&'static str),
}

/// A row of a table of keys.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) expected: Expected,
    pub(crate) presence: Presence,
}

/// An optional key.
pub(crate) const fn optional(name: &'static str, expected: Expected) -> Key {
    Key { name, expected, presence: Presence::Optional }
}

/// A required key.
pub(crate) const fn required(name: &'static str, expected: Expected, help: &'static str) -> Key {
    Key { name, expected, presence: Presence::Required(help) }
}

/// A key that is refused because this build does not support it: ignoring it would be worse than an
/// error.
#[cfg_attr(feature = "cel", expect(dead_code, reason = "every key is honoured with all features"))]
pub(crate) const fn not_yet(name: &'static str, what: &'static str) -> Key {
    Key { name, expected: Expected::Any, presence: Presence::NotYet(what) }
}

/// The table of a mapping.
#[derive(Debug)]
pub(crate) struct Keys {
    /// The name of the mapping for messages: "a tool".
    pub(crate) what: &'static str,
    pub(crate) table: &'static [Key],
    /// Keys that people write by mistake, and what to write instead; `<value>` stands for the
    /// written mapping, `<time>` for the written time.
    pub(crate) instead: &'static [(&'static str, &'static str)],
}

/// A checked mapping, which contains only valid entries.
#[derive(Debug)]
pub(crate) struct Fields<'n> {
    /// The place of the mapping.
    pub(crate) span: Span,
    good: Vec<&'n Entry>,
    refused: Vec<&'n str>,
    unknown: Vec<&'n Entry>,
}

impl<'n> Fields<'n> {
    /// Checks a mapping against its table. `None` if the node is not a mapping.
    pub(crate) fn read(node: &'n Node, keys: &Keys, findings: &mut Findings<'_>) -> Option<Self> {
        let NodeValue::Mapping(entries) = &node.value else {
            findings.add(wrong_type(node, None, &format!("{} is a mapping", keys.what)));
            return None;
        };
        let mut fields = Self {
            span: node.span.clone(),
            good: Vec::new(),
            refused: Vec::new(),
            unknown: Vec::new(),
        };
        for entry in entries {
            let Some(key) = keys.table.iter().find(|key| key.name == entry.key) else {
                if !entry.key.starts_with("x-") {
                    fields.unknown.push(entry);
                    let unknown = keys.unknown(entry);
                    // Suggestions take time, so unlisted problems get none.
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

    /// Whether a key is present, valid or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.refused.contains(&key) || self.entry(key).is_some()
    }

    /// The entries with unknown keys.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &'n Entry> {
        self.unknown.iter().copied()
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

    /// Adds a suggestion.
    fn explained(
        &self,
        unknown: Diagnostic,
        entry: &Entry,
        siblings: &[Entry],
        text: &str,
    ) -> Diagnostic {
        let known = || self.table.iter().map(|key| key.name);
        let instead = self.instead.iter().find(|(written, _)| *written == entry.key);
        let raw = text.get(entry.node.span.clone()).unwrap_or_default();
        let value = if raw.starts_with('{') && !raw.contains('\n') { raw } else { "{…}" };
        let time = entry.node.as_str().filter(|text| text.parse::<HumanDuration>().is_ok());
        let time = time.unwrap_or("30s");
        let help =
            instead.map(|(_, right)| right.replace("<value>", value).replace("<time>", time));
        let help = help.or_else(|| did_you_mean(&entry.key, known())).unwrap_or_else(|| {
            let known: Vec<&str> = known().collect();
            format!("{}; keys of your own begin with `x-`", keys_meant(&entry.key, &known))
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
