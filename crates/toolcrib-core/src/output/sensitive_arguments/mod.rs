//! Redaction of arguments for logs and audit: sensitive values are replaced, secrets masked, long
//! values shortened.

mod of_schema;

use std::cmp::Ordering;

use serde::Deserialize as _;
use serde_json::{Map, Value};
use toolcrib_json::{Cursor, Kind};
use toolcrib_tool::{Arguments, ToolDefinition, canonical_json};

use crate::output::masking::Mask;
use of_schema::SchemaPosition;

/// What is shown instead of a sensitive value.
pub(crate) const REDACTED: &str = "[redacted]";

/// Characters of a string that are shown.
const SHOWN_CHARS: usize = 256;

/// How many items of a list, or members of an object, are shown.
const SHOWN_ITEMS: usize = 32;

/// How much is shown.
#[derive(Debug, Clone, Copy)]
struct ShownLimits {
    chars: usize,
    items: usize,
}

/// In logs.
const BRIEF: ShownLimits = ShownLimits { chars: SHOWN_CHARS, items: SHOWN_ITEMS };

/// For approvers, who must see the complete call. Requests are bounded.
const WHOLE: ShownLimits = ShownLimits { chars: usize::MAX, items: usize::MAX };

/// Redacts the arguments of a call for logs.
///
/// The value of a property whose schema says `writeOnly: true` or `x-sensitive: true` is replaced
/// by `[redacted]`, anywhere in the schema: nested, in items, behind a `$ref`, in a branch of
/// `allOf`, `anyOf`, `oneOf`. A value in a place unknown to the schema is also replaced if a
/// sibling is sensitive, because it may be the sensitive value under a misspelled name. Then
/// secrets are masked, and long values are shortened.
///
/// ```
/// use serde_json::json;
/// use toolcrib_core::{masking::Mask, redact};
/// use toolcrib_tool::ToolDefinition;
///
/// let login = ToolDefinition::builder("login")
///     .description("Log in.")
///     .input_schema(json!({"properties": {
///         "user": {"type": "string"},
///         "password": {"type": "string", "writeOnly": true},
///     }}))
///     .build()?;
/// let arguments = json!({"user": "ada", "password": "hunter22"});
/// assert_eq!(
///     redact(&login, &arguments, &Mask::default()),
///     json!({"user": "ada", "password": "[redacted]"})
/// );
/// # Ok::<(), toolcrib_tool::DefinitionError>(())
/// ```
pub fn redact(definition: &ToolDefinition, arguments: &Value, mask: &Mask) -> Value {
    shown(&SchemaPosition::root(definition.input_schema()), arguments, mask, BRIEF)
}

/// The arguments of a call for whoever reads about it, as JSON text, if its tool declares any of them
/// sensitive; else `None`: they can be shown as they were written, with secrets masked.
///
/// Without a definition, because there is no such tool, the values are hidden: its name may be a
/// misspelt one.
pub(crate) fn hidden_arguments(
    definition: Option<&ToolDefinition>,
    written: &str,
    mask: &Mask,
) -> Option<String> {
    if written.trim().is_empty() || definition.is_some_and(|tool| !has_sensitive(tool)) {
        return None;
    }
    let hidden = canonical_json(&redact_written(definition, written, mask, WHOLE));
    Some(hidden).filter(|hidden| definition.is_some() || hidden != "{}")
}

/// Whether a schema declares any argument of a tool sensitive.
pub(crate) fn has_sensitive(definition: &ToolDefinition) -> bool {
    SchemaPosition::root(definition.input_schema()).holds_sensitive()
}

/// The same for approvers, without shortening.
pub(crate) fn redact_whole(definition: &ToolDefinition, arguments: &Value, mask: &Mask) -> Value {
    shown(&SchemaPosition::root(definition.input_schema()), arguments, mask, WHOLE)
}

/// Redacts an injected value for approvers. It comes from the host, so if the schema does not
/// describe its parameter, only secrets are masked.
pub(crate) fn redact_injected(
    definition: &ToolDefinition,
    parameter: &str,
    value: &Value,
    mask: &Mask,
) -> Value {
    let schema = definition.input_schema();
    let declared = schema.get("properties").and_then(|own| own.get(parameter)).is_some();
    let unknown = Value::Bool(true);
    let root = SchemaPosition::root(if declared { schema } else { &unknown });
    let place = if declared { root.member(parameter) } else { root };
    shown(&place, value, mask, WHOLE)
}

/// The same for a model's text, which may be invalid JSON, and for a tool that may not exist. Text
/// that cannot be redacted is described, not shown.
pub(crate) fn redact_text(definition: Option<&ToolDefinition>, text: &str, mask: &Mask) -> Value {
    redact_written(definition, text, mask, BRIEF)
}

fn redact_written(
    definition: Option<&ToolDefinition>,
    text: &str,
    mask: &Mask,
    room: ShownLimits,
) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    let arguments = match toolcrib_json::parse(text) {
        Ok(tape) => Ok(exact(tape.root())),
        Err(_) => serde_json::from_str(text),
    };
    match (definition, arguments) {
        (Some(definition), Ok(arguments)) => {
            shown(&SchemaPosition::root(definition.input_schema()), &arguments, mask, room)
        }
        (None, Ok(Value::Object(members))) => listed(&members, mask, BRIEF, |_, _| REDACTED.into()),
        (None, Ok(_)) => REDACTED.into(),
        (_, Err(_)) => format!("[{} bytes that are not JSON]", text.len()).into(),
    }
}

/// The arguments as a value for display: a number that a [`Value`] would round is replaced by its
/// text.
pub(crate) fn exact_value(arguments: &Arguments) -> Value {
    arguments.tape().map(|tape| exact(tape.root())).unwrap_or_default()
}

fn exact(value: Cursor<'_>) -> Value {
    match value.kind() {
        Kind::Array => value.items().map(exact).collect(),
        Kind::Object => value
            .members()
            .map(|(key, value)| (key.key_text().into_owned(), exact(value)))
            .collect(),
        kind => {
            // Reading a scalar cannot fail.
            let read = Value::deserialize(value).unwrap_or_default();
            let rounded = kind.is_number() && !same_number(value, &read.to_string());
            if rounded { Value::from(value.source()) } else { read }
        }
    }
}

/// Whether a text is exactly the same number.
fn same_number(number: Cursor<'_>, text: &str) -> bool {
    toolcrib_json::exact::compare(number.source(), text) == Some(Ordering::Equal)
}

/// The texts of all sensitive values in the arguments, longest first, to hide them in what a tool
/// derives from them.
pub(crate) fn sensitive_texts(definition: &ToolDefinition, arguments: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect(&SchemaPosition::root(definition.input_schema()), arguments, false, &mut texts);
    texts.retain(|text| !text.is_empty());
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    texts
}

fn collect(place: &SchemaPosition<'_>, value: &Value, hidden: bool, texts: &mut Vec<String>) {
    let hidden = hidden || place.hides(value);
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                collect(&place.member(key), member, hidden, texts);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(&place.item(index), item, hidden, texts);
            }
        }
        Value::String(text) if hidden => texts.push(text.clone()),
        Value::Number(number) if hidden => texts.push(number.to_string()),
        _ => {}
    }
}

fn shown(place: &SchemaPosition<'_>, value: &Value, mask: &Mask, room: ShownLimits) -> Value {
    if place.hides(value) {
        return REDACTED.into();
    }
    match value {
        Value::Object(members) => {
            listed(members, mask, room, |key, member| shown(&place.member(key), member, mask, room))
        }
        Value::Array(items) => {
            let mut list: Vec<Value> = items
                .iter()
                .take(room.items)
                .enumerate()
                .map(|(index, item)| shown(&place.item(index), item, mask, room))
                .collect();
            if items.len() > room.items {
                list.push(format!("… and {} more", items.len() - room.items).into());
            }
            Value::Array(list)
        }
        Value::String(text) => shortened(&mask.text(text), room.chars).into(),
        other => mask.value(other.clone()),
    }
}

fn listed(
    members: &Map<String, Value>,
    mask: &Mask,
    room: ShownLimits,
    show: impl Fn(&str, &Value) -> Value,
) -> Value {
    let mut list: Map<String, Value> = members
        .iter()
        .take(room.items)
        .map(|(key, member)| (shortened(&mask.text(key), room.chars), show(key, member)))
        .collect();
    if members.len() > room.items {
        list.insert("…".into(), format!("and {} more", members.len() - room.items).into());
    }
    Value::Object(list)
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

#[cfg(test)]
mod tests;
