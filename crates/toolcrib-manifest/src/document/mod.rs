//! Documents: YAML or TOML text as one tree in which every node knows its place.

mod scalar;
mod toml_text;
mod yaml_text;

use std::path::Path;

use serde_json::{Map, Number, Value};

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};

pub(crate) use scalar::{check_literals, check_schema_literals, other_reading};

/// The largest file that is read, in bytes: 4 MiB.
pub const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// How deep sequences and mappings may nest.
pub(crate) const DEPTH_MAX: usize = 32;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.1.
    Toml,
}

impl Format {
    /// The format of a file of that name: TOML for `.toml`, YAML for everything else.
    pub fn of(file: &str) -> Self {
        let extension = Path::new(file).extension();
        if extension.is_some_and(|found| found.eq_ignore_ascii_case("toml")) {
            Self::Toml
        } else {
            Self::Yaml
        }
    }
}

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    /// Where it stands; of an aliased node, where it is defined.
    pub(crate) span: Span,
    pub(crate) style: Style,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// One key of a mapping, with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// How a node is written, as far as it changes what its reader may have meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A YAML scalar without quotes: its type was guessed from its looks.
    Plain,
    /// Everything whose type is plain to see: quoted and block scalars, collections, all of TOML.
    Explicit,
}

impl Node {
    /// What people call a node of this kind, with its text where that helps.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Null => "nothing (null)".to_owned(),
            NodeValue::Bool(value) => format!("`{value}`"),
            NodeValue::Number(value) => format!("the number {value}"),
            NodeValue::String(value) => format!("the text `{}`", shortened(value)),
            NodeValue::Sequence(_) => "a list".to_owned(),
            NodeValue::Mapping(_) => "a mapping".to_owned(),
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            NodeValue::Sequence(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            NodeValue::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The entry under a key of a mapping.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// A value that stands in no text.
    pub(crate) fn without_place(value: &Value) -> Self {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Bool(*value),
            Value::Number(value) => NodeValue::Number(value.clone()),
            Value::String(value) => NodeValue::String(value.clone()),
            Value::Array(items) => {
                NodeValue::Sequence(items.iter().map(Self::without_place).collect())
            }
            Value::Object(entries) => {
                let entry = |(key, value): (&String, &Value)| Entry {
                    key: key.clone(),
                    key_span: 0..0,
                    node: Self::without_place(value),
                };
                NodeValue::Mapping(entries.iter().map(entry).collect())
            }
        };
        Self { value, span: 0..0, style: Style::Explicit }
    }

    /// The node as JSON.
    pub(crate) fn to_value(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(value) => Value::Number(value.clone()),
            NodeValue::String(value) => Value::String(value.clone()),
            NodeValue::Sequence(items) => items.iter().map(Self::to_value).collect(),
            NodeValue::Mapping(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.to_value()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    /// The deepest node on the way of a JSON pointer that exists, and the key it stands under.
    pub(crate) fn at_pointer(&self, pointer: &str) -> (&Self, Option<&Entry>) {
        let mut found = (self, None);
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            let next = match &found.0.value {
                NodeValue::Mapping(_) => {
                    found.0.entry(&segment).map(|entry| (&entry.node, Some(entry)))
                }
                NodeValue::Sequence(items) => segment
                    .parse()
                    .ok()
                    .and_then(|at: usize| items.get(at))
                    .map(|item| (item, None)),
                _ => None,
            };
            match next {
                Some(next) => found = next,
                None => break,
            }
        }
        found
    }

    /// The place to underline for this node: its key, where its own place shows nothing.
    pub(crate) fn visible_span(&self, entry: Option<&Entry>) -> Span {
        match entry {
            Some(entry) if self.span.is_empty() => entry.key_span.clone(),
            _ => self.span.clone(),
        }
    }
}

/// A text short enough for one line of a message.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Reads a text. What is wrong is added to the findings; there is a tree if its outline is clear.
pub(crate) fn parse(format: Format, findings: &mut Findings<'_>) -> Option<Node> {
    if findings.text.len() > FILE_MAX_BYTES {
        let message = format!("the file has {} bytes; at most 4 MiB are read", findings.text.len());
        let place = 0..0;
        findings.add(Diagnostic::error("too-large", &place, message).help("split it into files"));
        return None;
    }
    match format {
        Format::Yaml => yaml_text::parse(findings),
        Format::Toml => toml_text::parse(findings),
    }
}

/// The first line that has more than blanks and a comment, and where it begins.
fn first_content(text: &str) -> Option<(usize, &str)> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if !content.is_empty() && !content.starts_with('#') {
            return Some((start, line.trim_end()));
        }
        start += line.len();
    }
    None
}

/// The diagnostic for a node that nests too deep.
fn too_deep(span: &Span) -> Diagnostic {
    let message = format!("lists and mappings nest more than {DEPTH_MAX} deep here");
    Diagnostic::error("too-complex", span, message).help("no manifest needs this: flatten it")
}
