//! Hides secret values of a config in messages: those at and below a place whose schema says
//! `writeOnly`, and those that may be misplaced secrets.

use std::sync::Arc;

use serde_json::Value;

use super::place::SettingSchema;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::position::Span;
use crate::document::{Node, NodeValue};

/// Shorter texts are not searched for in messages, because common words would hide whole messages.
const LOOKED_FOR: usize = 8;

/// The parts of a file that are hidden in messages and excerpts.
#[derive(Debug, Default)]
pub(super) struct SecretFilter {
    /// The places that are blanked, sorted.
    hidden: Vec<Span>,
    /// Hidden texts, which must not occur in messages.
    texts: Vec<String>,
    /// Lines that may contain a secret, in a file that cannot be parsed.
    doubtful: Vec<Span>,
}

impl SecretFilter {
    /// Decides what is hidden. Without a tree, as after a syntax error, all lines are hidden except
    /// those in sections without secrets.
    pub(super) fn over(schema: &Value, text: &str, node: Option<&Node>) -> Self {
        let mut secret_filter = Self::default();
        let root = SettingSchema::at(schema, schema);
        if !root.has_secrets() {
            return secret_filter;
        }
        if let Some(node) = node {
            let mut scalars = Vec::new();
            secret_filter.cover(Some(&root), false, node, &mut scalars);
            secret_filter.cover_comments(text, scalars);
        } else {
            secret_filter.cover_lines(&root, text);
        }
        secret_filter.hidden.sort_by_key(|span| span.start);
        secret_filter
    }

    fn cover(
        &mut self,
        place: Option<&SettingSchema<'_>>,
        is_hidden: bool,
        node: &Node,
        scalars: &mut Vec<Span>,
    ) {
        let is_hidden = is_hidden || place.is_none_or(SettingSchema::is_secret);
        match &node.value {
            NodeValue::Mapping(entries) => {
                for entry in entries {
                    scalars.push(entry.key_span.clone());
                    let is_named = place.is_some_and(|place| place.names(&entry.key));
                    if matches!(entry.node.value, NodeValue::Null) && !is_named {
                        // A value without a key is parsed as a key without a value.
                        self.hidden.push(entry.key_span.clone());
                        self.texts.push(entry.key.clone());
                    }
                    let below = place.and_then(|place| place.below(&entry.key));
                    self.cover(below.as_ref(), is_hidden, &entry.node, scalars);
                }
            }
            NodeValue::Sequence(items) => {
                let below = place.and_then(SettingSchema::item);
                for item in items {
                    self.cover(below.as_ref(), is_hidden, item, scalars);
                }
            }
            value => {
                scalars.push(node.span.clone());
                // A single value in place of a section may be one of the section's secrets.
                if is_hidden || place.is_some_and(SettingSchema::has_secrets) {
                    self.hidden.push(node.span.clone());
                    if let NodeValue::String(text) = value {
                        self.texts.push(text.clone());
                    }
                }
            }
        }
    }

    /// Hides comments, which often hold an earlier value.
    fn cover_comments(&mut self, text: &str, mut scalars: Vec<Span>) {
        scalars.sort_by_key(|span| span.start);
        let mut scalars = scalars.into_iter().peekable();
        let mut hidden_to = 0;
        for (at, _) in text.match_indices('#') {
            while scalars.next_if(|span| span.end <= at).is_some() {}
            let is_in_a_value = scalars.peek().is_some_and(|span| span.contains(&at));
            if at < hidden_to || is_in_a_value {
                continue;
            }
            hidden_to = text[at..].find('\n').map_or(text.len(), |end| at + end);
            self.hidden.push(at..hidden_to);
        }
    }

    /// Hides the lines that are not in a section known to hold no secrets.
    fn cover_lines(&mut self, root: &SettingSchema<'_>, text: &str) {
        let mut is_clear = false;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let content = line.trim_end();
            let begins_section = content
                .starts_with(|first: char| !first.is_whitespace() && !"#-]}".contains(first));
            if begins_section {
                let heading = content.trim_start_matches(['[', '"', '\'']);
                let name =
                    heading.split([':', '=', '.', ']', '"', '\'']).next().unwrap_or_default();
                is_clear = root.named(name.trim()).is_some_and(|section| !section.has_secrets());
            }
            let end = start + content.len();
            if !is_clear {
                self.doubtful.push(start..start + line.len());
                let from =
                    after_key(content).map_or(content.len() - content.trim_start().len(), |at| at);
                self.hidden.push(start + from..end);
            } else if let Some(comment) = content.find('#') {
                self.hidden.push(start + comment..end);
            }
            start += line.len();
        }
    }

    /// Masks hidden texts in the excerpt of a problem whose message contains none.
    pub(super) fn blank(self, problem: &mut Diagnostic) {
        problem.hidden = self.hidden.into();
    }

    /// Removes hidden texts from problems.
    pub(super) fn apply(self, problems: &mut [Diagnostic]) {
        let hidden: Arc<[Span]> = self.hidden.into();
        let repeats = |text: &str| {
            self.texts.iter().any(|hidden| {
                let start: String = hidden.trim().chars().take(40).collect();
                start.len() >= LOOKED_FOR && text.contains(&start)
            })
        };
        let is_told = |problem: &Diagnostic| {
            let labels = problem.secondary.iter().map(|(_, label)| label);
            let texts = labels.chain([&problem.message, &problem.label]);
            texts.chain(problem.help.as_ref()).any(|text| repeats(text))
        };
        let touches = |one: &Span, other: &Span| one.start < other.end && other.start <= one.end;
        let is_doubtful = |problem: &Diagnostic| {
            let others = problem.secondary.iter().map(|(span, _)| span);
            let mut places = others.chain([&problem.span]);
            places.any(|place| self.doubtful.iter().any(|line| touches(place, line)))
        };
        for problem in problems {
            problem.hidden = Arc::clone(&hidden);
            if is_doubtful(problem) || hidden.contains(&problem.span) || is_told(problem) {
                problem.has_own_help |= problem.help.as_deref().is_some_and(names_a_section);
                problem.conceal();
            }
        }
    }
}

/// Whether a help text is about an empty value above an example. It contains a key of the format
/// and no text of the file.
fn names_a_section(help: &str) -> bool {
    ["secrets", "tokens"].iter().any(|key| help == format!("delete the `{{}}` behind `{key}:`"))
}

/// The beginning of the value in a line that starts with a plain key.
fn after_key(line: &str) -> Option<usize> {
    let (key, _) = line.split_once(": ").or_else(|| line.split_once(" = "))?;
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let is_key = key.len() < 32 && key.trim_start().chars().all(is_plain);
    is_key.then_some(key.len() + 2)
}

/// Whether the value at a pointer is hidden: it is below a `writeOnly` place, under an unknown key
/// of a schema with secrets, or a single value in place of a section with secrets.
pub(crate) fn is_hidden(schema: &Value, pointer: &str, node: &Node) -> bool {
    let mut place = SettingSchema::at(schema, schema);
    let root_has_secrets = place.has_secrets();
    if !root_has_secrets {
        return false;
    }
    for key in segments(pointer) {
        if place.is_secret() {
            return true;
        }
        match place.below(&key) {
            Some(below) => place = below,
            None => return true,
        }
    }
    let is_one_value = !matches!(node.value, NodeValue::Mapping(_) | NodeValue::Null);
    place.is_secret() || is_one_value && place.has_secrets()
}

/// The path of a place, with `*` for names that are not in the schema.
pub(crate) fn known_path(schema: &Value, pointer: &str) -> String {
    let mut place = Some(SettingSchema::at(schema, schema));
    let mut path = Vec::new();
    for key in segments(pointer) {
        let is_named = place.as_ref().is_some_and(|place| place.names(&key));
        let is_number = key.bytes().all(|byte| byte.is_ascii_digit()) && key.len() < 6;
        let is_item = is_number && place.as_ref().is_some_and(|place| place.item().is_some());
        place = place.and_then(|place| place.below(&key));
        path.push(if is_named || is_item { key } else { "*".to_owned() });
    }
    path.join(".")
}

/// The keys of a JSON pointer.
fn segments(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"))
}
