//! Documents: parses YAML or TOML into a tree in which every node has its place.

mod scalar;
mod toml_text;
mod yaml_text;

use std::path::Path;

use serde_json::{Map, Number, Value};

use crate::diagnostic::position::Span;
use crate::diagnostic::{Diagnostic, Findings};

pub(crate) use scalar::{check_literals, check_schema_literals, other_reading};

/// The maximum size of a file, in bytes: 4 MiB.
pub const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The maximum nesting depth of sequences and mappings.
pub(crate) const DEPTH_MAX: usize = 32;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2.
    Yaml,
    /// TOML 1.1.
    Toml,
}

impl Format {
    /// The format by file name: TOML for `.toml`, YAML for everything else.
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
    /// Its place; for an aliased node, the place of its definition.
    pub(crate) span: Span,
    pub(crate) style: Style,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeValue {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A key of a mapping, with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// How a node is written, as far as that affects its interpretation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A YAML scalar without quotes, whose type is guessed from its text.
    Plain,
    /// Nodes with an explicit type: quoted and block scalars, collections, everything in TOML.
    Explicit,
}

impl Node {
    /// A description of the node for messages.
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

    /// A node for a value that is not from a text.
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

    /// The deepest existing node on the path of a JSON pointer, and its entry.
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

    /// The place to underline for this node: its key, if its own place is empty.
    pub(crate) fn visible_span(&self, entry: Option<&Entry>) -> Span {
        match entry {
            Some(entry) if self.span.is_empty() => entry.key_span.clone(),
            _ => self.span.clone(),
        }
    }
}

/// The text shortened for one line of a message.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Parses a text. Problems are added to the findings; the tree is `None` if the structure cannot be
/// determined.
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

/// The first line that is not blank or a comment, with its offset.
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

/// The diagnostic for a node that is nested too deeply.
fn too_deep(span: &Span) -> Diagnostic {
    let message = format!("lists and mappings are nested more than {DEPTH_MAX} levels deep here");
    Diagnostic::error("too-complex", span, message).help("flatten it: no manifest needs this depth")
}
