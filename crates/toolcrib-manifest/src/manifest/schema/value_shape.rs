//! The shapes of values that a schema allows, which decide how much a model controls with them.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::document::{Node, NodeValue};

/// The shape of a value, from the most restricted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) enum Shape {
    /// A number, a boolean, or a listed value.
    Fixed,
    /// Letters, digits, `_`, `.` and `-`, not beginning with `-`: such a value cannot add a program
    /// or an option.
    Word,
    /// Any text.
    Free,
}

impl Shape {
    /// The shape of the values that a schema allows.
    pub(in crate::manifest) fn of(schema: &Node) -> Self {
        Self::below(schema, 0, false)
    }

    /// `in_json` if a text stands inside the JSON text of an object, where no program takes it for an option.
    fn below(schema: &Node, depth: usize, in_json: bool) -> Self {
        // The depth is limited, because a schema may refer to itself.
        if depth > 4 {
            return Self::Free;
        }
        if schema.entry("const").is_some() || schema.entry("enum").is_some() {
            return Self::Fixed;
        }
        let types: Vec<&str> = match schema.entry("type").map(|entry| &entry.node.value) {
            Some(NodeValue::String(name)) => vec![name],
            Some(NodeValue::Sequence(names)) => names.iter().filter_map(Node::as_str).collect(),
            _ => return Self::Free,
        };
        let shapes = types.iter().map(|name| match *name {
            "integer" | "number" | "boolean" | "null" => Self::Fixed,
            "string" => Self::of_text(schema, in_json),
            "array" => schema
                .entry("items")
                .map_or(Self::Free, |items| Self::below(&items.node, depth + 1, in_json)),
            "object" => Self::of_object(schema, depth),
            _ => Self::Free,
        });
        shapes.max().unwrap_or(Self::Free)
    }

    fn of_text(schema: &Node, in_json: bool) -> Self {
        let pattern = schema.entry("pattern").and_then(|entry| entry.node.as_str());
        if pattern.is_some_and(|pattern| is_word(pattern, in_json)) {
            Self::Word
        } else {
            Self::Free
        }
    }

    /// An object has the least restricted shape of its properties, if no others are allowed.
    fn of_object(schema: &Node, depth: usize) -> Self {
        let open = schema.entry("additionalProperties").map(|entry| &entry.node.value);
        if open != Some(&NodeValue::Bool(false)) || schema.entry("patternProperties").is_some() {
            return Self::Free;
        }
        let properties = schema.entry("properties").map(|entry| entry.node.entries());
        let shapes = properties.unwrap_or_default().iter();
        let shapes = shapes.map(|property| Self::below(&property.node, depth + 1, true));
        shapes.max().unwrap_or(Self::Fixed)
    }
}

/// The beginnings of texts that a schema allows, as far as they matter to programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::manifest) enum Beginning {
    /// None of the others.
    Plain,
    /// `/` or `./`: the value is a path, and no program takes it for anything else.
    Folder,
    /// An operator of an expression: `!`, `(`, `)` or `,`.
    Operator,
    /// `-`, as an option does.
    Dash,
}

impl Beginning {
    pub(in crate::manifest) fn of(schema: &Node) -> Self {
        if can_begin_with(schema, "-") {
            Self::Dash
        } else if begins_with_folder(schema) {
            Self::Folder
        } else if can_begin_with(schema, "!(),") {
            Self::Operator
        } else {
            Self::Plain
        }
    }
}

/// Whether a text that a schema takes can begin with one of these characters.
fn can_begin_with(schema: &Node, characters: &str) -> bool {
    let schema = schema.entry("items").map_or(schema, |items| &items.node);
    Shape::of(schema) == Shape::Free
        && !first_part(schema).is_some_and(|part| begins_apart(&part, characters))
}

/// Whether every text that a schema takes begins with `/` or `./`.
fn begins_with_folder(schema: &Node) -> bool {
    let schema = schema.entry("items").map_or(schema, |items| &items.node);
    let is_text = schema.entry("type").and_then(|entry| entry.node.as_str()) == Some("string");
    is_text && first_part(schema).is_some_and(|part| begins_path(&part))
}

/// What every text begins with that a schema takes: the part of its pattern behind the anchor.
fn first_part(schema: &Node) -> Option<Hir> {
    let pattern = schema.entry("pattern").and_then(|entry| entry.node.as_str())?;
    let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
    let HirKind::Concat(parts) = regex_syntax::parse(&translated).ok()?.into_kind() else {
        return None;
    };
    let mut parts = parts.into_iter();
    let is_anchored = parts.next().is_some_and(|part| *part.kind() == HirKind::Look(Look::Start));
    parts.next().filter(|_| is_anchored)
}

/// Whether every match of a part begins with `/` or `./`.
fn begins_path(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.starts_with(b"/") || literal.0.starts_with(b"./"),
        HirKind::Repetition(repetition) => repetition.min > 0 && begins_path(&repetition.sub),
        HirKind::Capture(capture) => begins_path(&capture.sub),
        HirKind::Concat(parts) => parts.first().is_some_and(begins_path),
        HirKind::Alternation(parts) => parts.iter().all(begins_path),
        _ => false,
    }
}

/// Whether no match of a part begins with one of these characters.
fn begins_apart(hir: &Hir, from: &str) -> bool {
    let apart = |start: char, end: char| !from.chars().any(|one| (start..=end).contains(&one));
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().all(|range| apart(range.start(), range.end()))
        }
        HirKind::Repetition(repetition) => {
            repetition.min > 0 && begins_apart(&repetition.sub, from)
        }
        HirKind::Capture(capture) => begins_apart(&capture.sub, from),
        HirKind::Concat(parts) => parts.first().is_some_and(|part| begins_apart(part, from)),
        HirKind::Alternation(parts) => parts.iter().all(|part| begins_apart(part, from)),
        HirKind::Literal(literal) => {
            literal.0.first().is_some_and(|byte| !from.as_bytes().contains(byte))
        }
        _ => false,
    }
}

/// Whether a text that a schema takes can hold one of these characters, given as ranges, as far as
/// its pattern says.
pub(in crate::manifest) fn can_hold(schema: &Node, characters: &[(char, char)]) -> bool {
    if Shape::of(schema) < Shape::Free {
        return false;
    }
    let pattern = schema.entry("pattern").and_then(|entry| entry.node.as_str());
    let Some(Ok(translated)) = pattern.map(jsonschema_regex::to_rust_regex) else { return true };
    let Ok(hir) = regex_syntax::parse(&translated) else { return true };
    let HirKind::Concat(parts) = hir.kind() else { return true };
    let [first, between @ .., last] = parts.as_slice() else { return true };
    let is = |part: &Hir, look: Look| *part.kind() == HirKind::Look(look);
    let is_anchored = is(first, Look::Start) && is(last, Look::End);
    !is_anchored || between.iter().any(|part| matches_one(part, characters))
}

/// Whether what matches a part can hold one of these characters.
pub(super) fn matches_one(hir: &Hir, characters: &[(char, char)]) -> bool {
    let is_among = |start: char, end: char| {
        characters.iter().any(|(first, last)| start <= *last && *first <= end)
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => text.chars().any(|c| is_among(c, c)),
            Err(_) => true,
        },
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().any(|range| is_among(range.start(), range.end()))
        }
        HirKind::Class(Class::Bytes(_)) => true,
        HirKind::Repetition(repetition) => matches_one(&repetition.sub, characters),
        HirKind::Capture(capture) => matches_one(&capture.sub, characters),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().any(|part| matches_one(part, characters))
        }
    }
}

/// Whether an anchored pattern only matches letters, digits, `_`, `.` and `-`, the first not `-` unless it may be.
pub(super) fn is_word(pattern: &str, dash_first: bool) -> bool {
    let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { return false };
    let Ok(hir) = regex_syntax::parse(&translated) else { return false };
    let HirKind::Concat(parts) = hir.kind() else { return false };
    let [first, second, .., last] = parts.as_slice() else { return false };
    let is = |part: &Hir, look: Look| *part.kind() == HirKind::Look(look);
    is(first, Look::Start)
        && is(last, Look::End)
        && parts[1..parts.len() - 1].iter().all(|part| only(part, true))
        && (dash_first || begins_plainly(second))
}

/// Whether every character that can match is one of a word; `dash` if `-` is one too.
fn only(hir: &Hir, dash: bool) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.' || dash && c == '-';
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.iter().all(|byte| plain(char::from(*byte))),
        HirKind::Class(Class::Unicode(class)) => {
            class.ranges().iter().all(|range| (range.start()..=range.end()).all(plain))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut ranges = class.ranges().iter();
            ranges.all(|range| (range.start()..=range.end()).all(|byte| plain(char::from(byte))))
        }
        HirKind::Repetition(repetition) => only(&repetition.sub, dash),
        HirKind::Capture(capture) => only(&capture.sub, dash),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(|part| only(part, dash))
        }
    }
}

/// Whether the part that every match begins with has no `-` in its first place.
fn begins_plainly(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => begins_plainly(&capture.sub),
        HirKind::Concat(parts) => parts.first().is_some_and(begins_plainly),
        HirKind::Alternation(parts) => parts.iter().all(begins_plainly),
        HirKind::Literal(literal) => literal.0.first().is_some_and(|byte| *byte != b'-'),
        // What may be absent leaves the first place to what follows.
        HirKind::Repetition(repetition) => repetition.min > 0 && begins_plainly(&repetition.sub),
        _ => only(hir, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_an_anchored_pattern_of_plain_characters() {
        let words = ["^[a-z0-9][a-z0-9.-]{0,252}$", "^[A-Z]+$", "^(web|db)-[0-9]$", "^v[0-9.]+$"];
        let others = [
            "^[a-z0-9.-]+$",
            "[a-z]+",
            "^[a-z ]+$",
            "^.*$",
            "^-[a-z]$",
            "^[a-z]+",
            "^a/b$",
            "^[a-z]*-x$",
        ];
        for pattern in words {
            assert!(is_word(pattern, false), "{pattern}");
        }
        for pattern in others {
            assert!(!is_word(pattern, false), "{pattern}");
        }
    }
}
