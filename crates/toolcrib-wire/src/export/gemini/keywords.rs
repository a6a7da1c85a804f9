//! Gemini's keywords, and words for what they cannot express.

use serde_json::{Value, json};
use toolcrib_tool::canonical_json;

use crate::report::Walk;
use crate::schema::kinds::is_of;
use crate::schema::{Object, sorted, words};

/// Keywords with the same meaning in Gemini's schema and in JSON Schema.
pub(super) const KEPT: [&str; 10] = [
    "description",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
];
/// Keywords that are handled elsewhere, or that a model does not need.
pub(super) const READ: [&str; 16] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "title",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicAnchor",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Expresses listed values: `enum` for strings, bounds for one number, words for anything else. Returns whether any
/// value is of the type.
pub(super) fn list_options(
    options: &[Value],
    kind: &str,
    converted: &mut Object,
    walk: &mut Walk,
) -> bool {
    let kinds = [kind.to_owned()];
    let fitting: Vec<&Value> = options.iter().filter(|option| is_of(option, &kinds)).collect();
    match (kind, fitting.as_slice()) {
        (_, []) => return false,
        ("string", fitting) => {
            let is_written = |option: &&&Value| option.as_str() != Some("");
            let written: Vec<&&Value> = fitting.iter().filter(is_written).collect();
            if written.len() == fitting.len() {
                converted.insert("enum".to_owned(), json!(fitting));
            } else {
                // Gemini refuses a whole request in which an enum has an empty text.
                walk.restate("an enum with an empty text is listed in the description");
                let list: Vec<String> =
                    written.iter().map(|option| canonical_json(option)).collect();
                add_words(
                    converted,
                    &match list.join(", ") {
                        list if list.is_empty() => "(An empty text.)".to_owned(),
                        list => format!("(One of: {list}, or an empty text.)"),
                    },
                );
            }
        }
        ("integer" | "number", [only]) => {
            converted.insert("minimum".to_owned(), (*only).clone());
            converted.insert("maximum".to_owned(), (*only).clone());
        }
        // Both values of a boolean are no restriction.
        ("boolean", [_, _]) => {}
        (_, fitting) => {
            walk.restate(format!("the values of an enum of {kind}s are listed in the description"));
            let list: Vec<String> = fitting.iter().map(|option| canonical_json(option)).collect();
            add_words(converted, &format!("One of: {}.", list.join(", ")));
        }
    }
    true
}

/// Appends words to a description.
pub(super) fn add_words(converted: &mut Object, words: &str) {
    let own = converted.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!("{own} {words}");
    converted.insert("description".to_owned(), text.trim_start().into());
}

/// A schema for any value: Gemini needs a type, and lists and objects need more than that.
pub(super) fn scalars(schema: &Object, walk: &mut Walk) -> Object {
    walk.note("any value fits; lists and objects cannot be sent");
    let branch = |kind: &str| {
        let mut branch = Object::from_iter([("type".to_owned(), kind.into())]);
        if let Some(text) = schema.get("description").or_else(|| schema.get("title")) {
            branch.insert("description".to_owned(), text.clone());
        }
        branch
    };
    any_of(["string", "number", "boolean"].into_iter().map(branch).collect())
}

pub(super) fn any_of(branches: Vec<Object>) -> Object {
    let branches = branches.into_iter().map(Value::Object).collect();
    Object::from_iter([("anyOf".to_owned(), Value::Array(branches))])
}

/// Puts the annotations of the place before those of the schema there.
pub(super) fn annotate(converted: &mut Object, annotations: &Object, walk: &mut Walk) {
    if let Some(Value::Array(branches)) = converted.get_mut("anyOf") {
        let mut others = annotations.clone();
        let default = others.remove("default");
        // The first branch that the default fits names it, not all of them.
        let fits = |branch: &Value| {
            let listed = branch.get("enum").and_then(Value::as_array);
            default.as_ref().is_some_and(|default| {
                branch
                    .get("type")
                    .and_then(Value::as_str)
                    .is_some_and(|kind| is_of(default, &[kind.to_owned()]))
                    && listed.is_none_or(|listed| listed.contains(default))
            })
        };
        let first = branches.iter().position(fits);
        for (at, branch) in branches.iter_mut().enumerate() {
            let own = if first == Some(at) { annotations } else { &others };
            if let Some(branch) = branch.as_object_mut() {
                annotate(branch, own, walk);
            }
        }
        return;
    }
    let said = annotations.get("description").or_else(|| annotations.get("title"));
    if let Some(said) = said.and_then(Value::as_str) {
        let text = match converted.get("description").and_then(Value::as_str) {
            Some(own) if own != said && !own.is_empty() => format!("{said} {own}"),
            _ => said.to_owned(),
        };
        converted.insert("description".to_owned(), text.into());
    }
    let kind = converted.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let dropped: Vec<(&str, &Value)> = sorted(annotations)
        .into_iter()
        .filter(|(keyword, value)| match *keyword {
            "default" => !value.is_null() && is_of(value, std::slice::from_ref(&kind)),
            "example" | "examples" => true,
            _ => false,
        })
        .collect();
    words::restate(converted, &dropped, walk);
}

/// The formats that Gemini accepts; it refuses others.
pub(super) fn format_fits(kind: &str, format: &Value) -> bool {
    let known: &[&str] = match kind {
        "string" => &["date-time"],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    known.iter().any(|known| format == known)
}

/// Whether a keyword applies to values of a type; elsewhere Gemini refuses it.
pub(super) fn applies_to(keyword: &str, kind: &str) -> bool {
    match keyword {
        "pattern" | "minLength" | "maxLength" => kind == "string",
        "minItems" | "maxItems" => kind == "array",
        "minProperties" | "maxProperties" => kind == "object",
        "minimum" | "maximum" => matches!(kind, "integer" | "number"),
        _ => true,
    }
}
