//! Converts the values of single keywords to draft 2020-12.

use std::collections::HashSet;

use serde_json::Value;
use toolcrib_tool::canonical_json;

use crate::report::{Reason, Refused, Walk};
use crate::schema::kinds::{KINDS, kind_of, type_value};
use crate::schema::{Object, sorted};

/// `type`: one of the seven words, or a list of them. `None` if it means "any".
pub(super) fn types(value: &Value, walk: &mut Walk) -> Result<Option<Value>, Refused> {
    let words: Vec<&Value> = match value {
        Value::Array(several) => several.iter().collect(),
        one => vec![one],
    };
    let mut kinds: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let Some(text) = word.as_str() else {
            return Err(walk.refuse(not_a_schema("`type`", word)));
        };
        let kind = match text.to_ascii_lowercase().as_str() {
            "any" | "mixed" => {
                walk.note(format!("type {text:?} is left out: it means any"));
                return Ok(None);
            }
            "str" | "text" => "string",
            "int" | "long" => "integer",
            "float" | "double" => "number",
            "bool" => "boolean",
            "dict" | "map" => "object",
            "list" | "tuple" => "array",
            "none" => "null",
            lower => match KINDS.into_iter().find(|kind| *kind == lower) {
                Some(kind) => kind,
                None => return Err(walk.refuse(Reason::NotASchema(format!("type {text:?}")))),
            },
        };
        if kind != text {
            walk.note(format!("type {text:?} becomes {kind:?}"));
        }
        if !kinds.iter().any(|known| known == kind) {
            kinds.push(kind.to_owned());
        }
    }
    if kinds.is_empty() {
        return Err(walk.refuse(Reason::AdmitsNothing));
    }
    // A list of one stays a list, so that a valid schema stays unchanged.
    let untouched = value.as_array().is_some_and(|list| list.len() == kinds.len());
    Ok(Some(if untouched { Value::from(kinds) } else { type_value(&kinds) }))
}

/// `enum`: values without duplicates.
pub(super) fn options(value: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let Some(given) = value.as_array() else {
        return Err(walk.refuse(not_a_schema("`enum`", value)));
    };
    if given.is_empty() {
        return Err(walk.refuse(Reason::AdmitsNothing));
    }
    let mut seen = HashSet::with_capacity(given.len());
    let each_once = given.iter().filter(|option| seen.insert(canonical_json(option)));
    Ok(Value::Array(each_once.cloned().collect()))
}

/// `required`: names without duplicates. Draft 3's `true` and `false` are handled by the parent.
pub(super) fn required(value: &Value, walk: &mut Walk) -> Option<Value> {
    match value {
        Value::Array(given) => {
            let mut names: Vec<Value> = Vec::with_capacity(given.len());
            for name in given {
                if !name.is_string() {
                    walk.note("`required` contains something that is not a name");
                } else if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            Some(Value::Array(names))
        }
        Value::Bool(_) => None,
        other => {
            walk.note(format!("`required` is left out: it is {}", article(other)));
            None
        }
    }
}

/// The properties that contain `required: true`, as in draft 3.
pub(super) fn names_required_inside(properties: &Value, walk: &mut Walk) -> Vec<String> {
    let names: Vec<String> = properties
        .as_object()
        .map(sorted)
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, property)| property.get("required") == Some(&Value::Bool(true)))
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in &names {
        walk.note(format!("property {name:?} is required by its own `required: true`"));
    }
    names
}

pub(super) fn add_required(schema: &mut Object, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    let list = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        for name in names {
            if !list.iter().any(|known| known == name.as_str()) {
                list.push(name.into());
            }
        }
    }
}

/// Draft 4's `minimum: n, exclusiveMinimum: true`.
pub(super) fn old_bound(keyword: &str, value: &Value, source: &Object, tidied: &mut Object) {
    let plain = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
    if value == &Value::Bool(true)
        && let Some(bound) = source.get(plain).filter(|bound| bound.is_number())
    {
        tidied.insert(keyword.to_owned(), bound.clone());
    }
}

/// Whether the value has the type that draft 2020-12 requires for the keyword; unknown keywords may have any value.
pub(super) fn fits(keyword: &str, value: &Value) -> bool {
    match keyword {
        "title" | "description" | "format" | "pattern" | "$ref" | "$anchor" | "$dynamicRef"
        | "$dynamicAnchor" | "contentEncoding" | "contentMediaType" => value.is_string(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => {
            value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0)
        }
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        "examples" => value.is_array(),
        "dependentRequired" => value.as_object().is_some_and(|named| {
            named.values().all(|names| {
                names.as_array().is_some_and(|names| names.iter().all(Value::is_string))
            })
        }),
        "$vocabulary" => false,
        _ => true,
    }
}

/// `nullable: true`, as in `OpenAPI` 3.0.
pub(super) fn admit_null(schema: &mut Object) {
    if let Some(kinds) = schema.get_mut("type") {
        let mut list = match kinds {
            Value::Array(list) => list.clone(),
            ref one => vec![Value::clone(one)],
        };
        if !list.iter().any(|kind| kind == "null") {
            list.push("null".into());
        }
        *kinds = Value::Array(list);
    }
    if let Some(Value::Array(options)) = schema.get_mut("enum")
        && !options.contains(&Value::Null)
    {
        options.push(Value::Null);
    }
}

pub(super) fn not_a_schema(what: &str, value: &Value) -> Reason {
    Reason::NotASchema(format!("{what} that is {}", article(value)))
}

pub(super) fn article(value: &Value) -> String {
    match kind_of(value) {
        "null" => "null".to_owned(),
        kind @ ("array" | "integer" | "object") => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}
