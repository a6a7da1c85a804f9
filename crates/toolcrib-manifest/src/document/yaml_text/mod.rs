//! Parses YAML into a tree, from the events of a YAML parser.
//!
//! A serde layer would stop at the first duplicate key and has no places of keys. The limits for
//! aliases are enforced here: their copies are counted.

use std::collections::HashMap;

use serde_yaml::granit_parser::{self, Event, Parser, ScalarStyle, Tag};

use super::scalar::resolve;
use super::{DEPTH_MAX, Entry, Node, NodeValue, Style, too_deep};
use crate::diagnostic::position::{Span, boundary};
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::shortened;
use slips::InvisibleCharacter;

mod slips;
mod syntax;

/// The maximum number of anchors, aliases and merge keys, together.
const REFERENCES_MAX: usize = 256;
/// The maximum number of nodes, including copies by aliases.
const NODES_MAX: usize = 200_000;
/// The maximum number of bytes in scalars, including copies by aliases.
const TEXT_MAX: usize = 8 * 1024 * 1024;

/// Reads one YAML document.
pub(super) fn parse(findings: &mut Findings<'_>) -> Option<Node> {
    let mut options = granit_parser::options! {
        emit_unresolved_aliases: true,
        flow_nesting_limit: DEPTH_MAX * 2,
        block_nesting_limit: DEPTH_MAX * 2,
    };
    options.set_emit_comments(false);
    let text = findings.text;
    let mut builder = TreeBuilder::new(findings);
    for event in Parser::new_from_str_with_options(text, options) {
        let step = match event {
            Ok((event, span)) => {
                let place = offset(text, &span.start)..offset(text, &span.end);
                builder.event(event, place)
            }
            Err(error) => {
                let at = offset(text, error.marker());
                let slip = slips::find(text, at, error.kind());
                Err(Box::new(slip.unwrap_or_else(|| syntax::explain(text, at, &error))))
            }
        };
        if let Err(diagnostic) = step {
            builder.findings.add(*diagnostic);
            return None;
        }
    }
    let root = builder.finish()?;
    if let NodeValue::String(_) = root.value
        && let Some(diagnostic) = slips::toml(text)
    {
        findings.add(diagnostic);
        return None;
    }
    Some(root)
}

fn offset(text: &str, marker: &granit_parser::Marker) -> usize {
    boundary(text, marker.byte_offset().unwrap_or(text.len()))
}

/// A collection that has not ended yet.
struct OpenCollection {
    node: Node,
    anchor: usize,
    /// The key whose value comes next.
    key: Option<MappingKey>,
    /// Mappings to merge, in order.
    merged: Vec<Node>,
    flow: bool,
}

enum MappingKey {
    Name(String, Span),
    Merge(Span),
    /// An invalid key, already reported; its value is parsed and dropped.
    Refused,
}

/// An error stops parsing at once, because further errors would be noise or too much work.
type BuildResult = Result<(), Box<Diagnostic>>;

struct TreeBuilder<'f, 't> {
    findings: &'f mut Findings<'t>,
    stack: Vec<OpenCollection>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    whole: bool,
    references: usize,
    nodes: usize,
    bytes: usize,
}

impl<'f, 't> TreeBuilder<'f, 't> {
    fn new(findings: &'f mut Findings<'t>) -> Self {
        Self {
            findings,
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            whole: true,
            references: 0,
            nodes: 0,
            bytes: 0,
        }
    }

    fn finish(self) -> Option<Node> {
        let empty = Node { value: NodeValue::Null, span: 0..0, style: Style::Explicit };
        self.whole.then(|| self.root.unwrap_or(empty))
    }

    fn refuse(&mut self, diagnostic: Diagnostic) {
        self.whole = false;
        self.findings.add(diagnostic);
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> BuildResult {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => Err(Box::new(
                Diagnostic::error("syntax", &span, "a second document begins here")
                    .help("a file holds one document: remove the `---`, or split the file"),
            )),
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, text.len(), &span)?;
                let node = self.scalar(&text, style, tag.as_deref(), span);
                self.remember(anchor, &node)?;
                self.place(node);
                Ok(())
            }
            Event::SequenceStart(style, anchor, tag) => {
                let flow = style == granit_parser::StructureStyle::Flow;
                self.open(NodeValue::Sequence(Vec::new()), anchor, flow, tag.as_deref(), span)
            }
            Event::MappingStart(style, anchor, tag) => {
                let flow = style == granit_parser::StructureStyle::Flow;
                self.open(NodeValue::Mapping(Vec::new()), anchor, flow, tag.as_deref(), span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&span),
            Event::Alias(anchor) => self.alias(anchor, &span),
            Event::UnresolvedAlias(name) => {
                let message = format!(
                    "`*{}` refers to an anchor that is not defined above it",
                    shortened(&name)
                );
                self.refuse(
                    Diagnostic::error("unknown-anchor", &span, message).help(slips::unknown_alias(
                        self.findings.text,
                        span.start,
                        &name,
                    )),
                );
                self.place(Node { value: NodeValue::Null, span, style: Style::Explicit });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, nodes: usize, bytes: usize, span: &Span) -> BuildResult {
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.nodes > NODES_MAX || self.bytes > TEXT_MAX {
            let message = "the file is too complex after its aliases are expanded";
            return Err(Box::new(
                Diagnostic::error("too-complex", span, message)
                    .help("repeat less with aliases, or split the file"),
            ));
        }
        Ok(())
    }

    fn count_reference(&mut self, span: &Span) -> BuildResult {
        self.references += 1;
        if self.references > REFERENCES_MAX {
            let message = format!("more than {REFERENCES_MAX} anchors, aliases and merge keys");
            let help = "write out the values instead of referring to them, or split the file";
            return Err(Box::new(Diagnostic::error("too-complex", span, message).help(help)));
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Node {
        let plain = style == ScalarStyle::Plain;
        let as_text =
            tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str") || tag.original() == "!");
        if !as_text {
            self.check_tag(tag, &span);
        }
        let value =
            if plain && !as_text { resolve(text) } else { NodeValue::String(text.to_owned()) };
        let style = if plain && !as_text { Style::Plain } else { Style::Explicit };
        Node { value, span, style }
    }

    fn check_tag(&mut self, tag: Option<&Tag>, span: &Span) {
        if let Some(tag) = tag {
            let message = format!("the tag `{}` has no meaning here", shortened(&tag.original()));
            self.refuse(
                Diagnostic::error("unknown-tag", span, message)
                    .help("remove it; `!!str` is the only allowed tag, and quotes mean the same"),
            );
        }
    }

    fn open(
        &mut self,
        value: NodeValue,
        anchor: usize,
        flow: bool,
        tag: Option<&Tag>,
        span: Span,
    ) -> BuildResult {
        self.count(1, 0, &span)?;
        if self.stack.len() >= DEPTH_MAX {
            return Err(Box::new(too_deep(&span)));
        }
        self.check_tag(tag, &span);
        let node = Node { value, span, style: Style::Explicit };
        self.stack.push(OpenCollection { node, anchor, key: None, merged: Vec::new(), flow });
        Ok(())
    }

    fn close(&mut self, span: &Span) -> BuildResult {
        let Some(mut open) = self.stack.pop() else { return Ok(()) };
        if let NodeValue::Mapping(entries) = &mut open.node.value {
            let own = entries.len();
            entries.extend(std::mem::take(&mut open.merged).into_iter().flat_map(into_entries));
            keep_first_of_each_key(entries, own, self.findings);
        }
        // The parser reports the end of a block where the next token begins; the end of its last
        // child is more precise.
        let last = match &open.node.value {
            NodeValue::Sequence(items) => items.last().map(|item| item.span.end),
            NodeValue::Mapping(entries) => {
                entries.last().map(|entry| entry.node.span.end.max(entry.key_span.end))
            }
            _ => None,
        };
        let end = if open.flow { span.end } else { last.unwrap_or(open.node.span.end) };
        open.node.span.end = end.max(open.node.span.start);
        self.remember(open.anchor, &open.node)?;
        self.place(open.node);
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node) -> BuildResult {
        if anchor == 0 {
            return Ok(());
        }
        self.count_reference(&node.span)?;
        let (nodes, bytes, _) = weight(node);
        self.count(nodes, bytes, &node.span)?;
        self.anchors.insert(anchor, node.clone());
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: &Span) -> BuildResult {
        self.count_reference(span)?;
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(Box::new(Diagnostic::error(
                "unknown-anchor",
                span,
                "an alias cannot be inside its own anchor",
            )));
        };
        let (nodes, bytes, depth) = weight(node);
        let node = node.clone();
        self.count(nodes, bytes, span)?;
        if self.stack.len() + depth > DEPTH_MAX {
            return Err(Box::new(too_deep(span)));
        }
        self.place(node);
        Ok(())
    }

    /// Adds a finished node: as a key, a value, an item, or the root.
    fn place(&mut self, node: Node) {
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        match (&mut open.node.value, open.key.take()) {
            (NodeValue::Mapping(_), None) => {
                let key = self.key(node);
                if let Some(open) = self.stack.last_mut() {
                    open.key = Some(key);
                }
            }
            (NodeValue::Mapping(entries), Some(MappingKey::Name(key, key_span))) => {
                entries.push(Entry { key, key_span, node });
            }
            (NodeValue::Mapping(_), Some(MappingKey::Merge(span))) => {
                let merged = self.merged(node, &span);
                if let Some(open) = self.stack.last_mut() {
                    open.merged.extend(merged);
                }
            }
            (NodeValue::Sequence(items), _) => items.push(node),
            _ => {}
        }
    }

    fn key(&mut self, node: Node) -> MappingKey {
        let raw = self.findings.text.get(node.span.clone()).unwrap_or_default();
        if let Some(invisible_character) = InvisibleCharacter::find(raw) {
            let message = format!("this key contains the character {}", invisible_character.name());
            let help = format!("write `{}`", shortened(&InvisibleCharacter::removed(raw)));
            self.refuse(Diagnostic::error("bad-key", &node.span, message).help(help));
            return MappingKey::Refused;
        }
        match node.value {
            NodeValue::String(text) if text == "<<" && node.style == Style::Plain => {
                MappingKey::Merge(node.span)
            }
            NodeValue::String(text) => MappingKey::Name(text, node.span),
            NodeValue::Bool(_) | NodeValue::Number(_) => {
                MappingKey::Name(raw.to_owned(), node.span)
            }
            NodeValue::Null if !raw.is_empty() => MappingKey::Name(raw.to_owned(), node.span),
            _ => {
                let diagnostic = Diagnostic::error("bad-key", &node.span, "a key must be text")
                    .help("write `key: value`; quote a key that begins with `[`, `{` or `?`");
                self.refuse(diagnostic);
                MappingKey::Refused
            }
        }
    }

    /// The mappings that `<<` merges.
    fn merged(&mut self, node: Node, span: &Span) -> Vec<Node> {
        self.references += 1;
        let (place, written) = match &node.value {
            NodeValue::String(text) => (node.span.clone(), Some(text.clone())),
            _ => (span.clone(), None),
        };
        let (fits, nodes) = match node.value {
            NodeValue::Mapping(_) => (true, vec![node]),
            NodeValue::Sequence(items) => {
                (items.iter().all(|item| matches!(item.value, NodeValue::Mapping(_))), items)
            }
            _ => (false, Vec::new()),
        };
        if !fits {
            let message = "`<<` merges a mapping, or a list of mappings";
            let help = slips::merge_meant(self.findings.text, place.start, written.as_deref());
            self.refuse(Diagnostic::error("bad-key", &place, message).help(help));
            return Vec::new();
        }
        nodes
    }
}

/// Drops every later entry of a key. Duplicates among the first `own` entries, which were not
/// merged in, are errors. Sorting keeps the cost below quadratic.
fn keep_first_of_each_key(entries: &mut Vec<Entry>, own: usize, findings: &mut Findings<'_>) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key).then(a.cmp(b)));
    let mut keep = vec![true; entries.len()];
    let mut first = 0;
    for (at, &index) in order.iter().enumerate() {
        if at == 0 || entries[index].key != entries[first].key {
            first = index;
            continue;
        }
        keep[index] = false;
        if index < own {
            let Entry { key, key_span, .. } = &entries[index];
            let message = format!("the key `{}` occurs twice here", shortened(key));
            findings.add(
                Diagnostic::error("duplicate-key", key_span, message)
                    .label("a second time")
                    .help("remove one, or rename it")
                    .also(&entries[first].key_span, "first defined here"),
            );
        }
    }
    let mut keep = keep.into_iter();
    entries.retain(|_| keep.next().unwrap_or(true));
}

fn into_entries(node: Node) -> Vec<Entry> {
    match node.value {
        NodeValue::Mapping(entries) => entries,
        _ => Vec::new(),
    }
}

/// The number of nodes, bytes of text, and levels of a subtree.
fn weight(node: &Node) -> (usize, usize, usize) {
    let sum = |children: &mut dyn Iterator<Item = (usize, usize, usize)>| {
        let (nodes, bytes, depth) = children.fold((0, 0, 0), |total, child| {
            (total.0 + child.0, total.1 + child.1, child.2.max(total.2))
        });
        (nodes + 1, bytes, depth + 1)
    };
    match &node.value {
        NodeValue::Sequence(items) => sum(&mut items.iter().map(weight)),
        NodeValue::Mapping(entries) => sum(&mut entries.iter().map(|entry| {
            let (nodes, bytes, depth) = weight(&entry.node);
            (nodes, bytes + entry.key.len(), depth)
        })),
        NodeValue::String(text) => (1, text.len(), 0),
        _ => (1, 0, 0),
    }
}
