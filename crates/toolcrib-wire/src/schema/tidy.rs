//! Schemas as people write them, made valid JSON Schema of draft 2020-12.
//!
//! A schema that is valid already comes out as it went in, without `$schema` and `$comment`.

use std::collections::HashSet;

use serde_json::Value;
use toolcrib_tool::canonical_json;

use super::kinds::{KINDS, kind_of, kinds, type_value};
use super::reference::resolve;
use super::{Object, sorted};
use crate::report::{Reason, Refused, Walk};

/// Keywords that hold one schema.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords that hold a list of schemas.
const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that hold named schemas.
const NAMED: [&str; 5] =
    ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];

/// The root of an input schema: an object schema of draft 2020-12.
pub(crate) fn input_schema(schema: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let Value::Object(mut root) = tidy(schema, walk)? else {
        return Err(walk.refuse(Reason::NotAnObject));
    };
    let named = kinds(&root);
    // Only keywords that speak of objects, or none at all, leave the type unsaid.
    let unsaid = named.is_empty() && !root.contains_key("type");
    if !unsaid && !named.iter().any(|kind| kind == "object") {
        return Err(walk.refuse(Reason::NotAnObject));
    }
    root.insert("type".to_owned(), "object".into());
    let root = Value::Object(root);
    check_references(&root, &root, walk)?;
    Ok(root)
}

/// No provider fetches what a schema refers to, so every reference must lead into the schema.
fn check_references(schema: &Value, root: &Value, walk: &mut Walk) -> Result<(), Refused> {
    let Some(object) = schema.as_object() else { return Ok(()) };
    for (keyword, value) in sorted(object) {
        match value {
            Value::String(target) if keyword == "$ref" && resolve(root, target).is_none() => {
                return Err(walk.refuse(Reason::Reference(target.clone())));
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                for (name, inner) in sorted(named) {
                    walk.within(&[keyword, name], |walk| check_references(inner, root, walk))?;
                }
            }
            Value::Array(several) if LIST.contains(&keyword) => {
                for (index, inner) in several.iter().enumerate() {
                    walk.within(&[keyword, &index.to_string()], |walk| {
                        check_references(inner, root, walk)
                    })?;
                }
            }
            inner if ONE.contains(&keyword) => {
                walk.within(&[keyword], |walk| check_references(inner, root, walk))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Any schema.
pub(crate) fn tidy(schema: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let source = match schema {
        Value::Bool(_) => return Ok(schema.clone()),
        Value::Object(source) => source,
        other => return Err(walk.refuse(not_a_schema("a schema", other))),
    };
    let mut tidied = Object::new();
    let mut nullable = false;
    let mut implied = Vec::new();
    for (keyword, value) in sorted(source) {
        match keyword {
            "$schema" | "$comment" | "additionalItems" => {}
            "$id" | "id" if walk.at_root() => {}
            "$id" => return Err(walk.refuse(Reason::Keyword("$id"))),
            "nullable" => nullable = value == &Value::Bool(true),
            "type" => {
                if let Some(kinds) = types(value, walk)? {
                    tidied.insert("type".to_owned(), kinds);
                }
            }
            "enum" => {
                tidied.insert("enum".to_owned(), options(value, walk)?);
            }
            "required" => {
                if let Some(names) = required(value, walk) {
                    tidied.insert("required".to_owned(), names);
                }
            }
            "properties" => {
                implied = names_required_inside(value, walk);
                tidied.insert("properties".to_owned(), named(keyword, value, walk)?);
            }
            "items" if value.is_array() => {
                tidied.insert("prefixItems".to_owned(), list(keyword, value, walk)?);
                if let Some(rest) = source.get("additionalItems") {
                    let rest = walk.within(&["additionalItems"], |walk| tidy(rest, walk))?;
                    tidied.insert("items".to_owned(), rest);
                }
            }
            "dependencies" => dependencies(value, &mut tidied, walk)?,
            keyword if NAMED.contains(&keyword) => {
                tidied.insert(keyword.to_owned(), named(keyword, value, walk)?);
            }
            keyword if LIST.contains(&keyword) => {
                tidied.insert(keyword.to_owned(), list(keyword, value, walk)?);
            }
            keyword if ONE.contains(&keyword) => {
                let one = walk.within(&[keyword], |walk| tidy(value, walk))?;
                tidied.insert(keyword.to_owned(), one);
            }
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {
                old_bound(keyword, value, source, &mut tidied);
            }
            "minimum" if source.get("exclusiveMinimum") == Some(&Value::Bool(true)) => {}
            "maximum" if source.get("exclusiveMaximum") == Some(&Value::Bool(true)) => {}
            keyword if fits(keyword, value) => {
                tidied.insert(keyword.to_owned(), value.clone());
            }
            _ => walk.note(format!("`{keyword}` is left out: it is {}", article(value))),
        }
    }
    add_required(&mut tidied, implied);
    if nullable {
        admit_null(&mut tidied);
    }
    Ok(Value::Object(tidied))
}

/// `type`: one of the seven words or several of them. Absent where it means "any".
fn types(value: &Value, walk: &mut Walk) -> Result<Option<Value>, Refused> {
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
            walk.note(format!("type {text:?} is written {kind:?}"));
        }
        if !kinds.iter().any(|known| known == kind) {
            kinds.push(kind.to_owned());
        }
    }
    if kinds.is_empty() {
        return Err(walk.refuse(Reason::AdmitsNothing));
    }
    // A list of one stays a list where it was one, so that a valid schema is not touched.
    let untouched = value.as_array().is_some_and(|list| list.len() == kinds.len());
    Ok(Some(if untouched { Value::from(kinds) } else { type_value(&kinds) }))
}

/// `enum`: some values, each once.
fn options(value: &Value, walk: &mut Walk) -> Result<Value, Refused> {
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

/// `required`: names, each once. Draft 3's `true` and `false` are read by the parent.
fn required(value: &Value, walk: &mut Walk) -> Option<Value> {
    match value {
        Value::Array(given) => {
            let mut names: Vec<Value> = Vec::with_capacity(given.len());
            for name in given {
                if !name.is_string() {
                    walk.note("`required` names something that is no name");
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

/// The properties that say `required: true` of themselves, as draft 3 has it.
fn names_required_inside(properties: &Value, walk: &mut Walk) -> Vec<String> {
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

fn add_required(schema: &mut Object, names: Vec<String>) {
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

/// Draft 7's `dependencies`, which later drafts divide in two.
fn dependencies(value: &Value, tidied: &mut Object, walk: &mut Walk) -> Result<(), Refused> {
    let Some(given) = value.as_object() else {
        return Err(walk.refuse(not_a_schema("`dependencies`", value)));
    };
    for (name, dependency) in sorted(given) {
        let (keyword, dependency) = if dependency.is_array() {
            ("dependentRequired", dependency.clone())
        } else {
            let schema = walk.within(&["dependencies", name], |walk| tidy(dependency, walk))?;
            ("dependentSchemas", schema)
        };
        let entry = tidied.entry(keyword).or_insert_with(|| Value::Object(Object::new()));
        if let Value::Object(entry) = entry {
            entry.insert(name.to_owned(), dependency);
        }
    }
    Ok(())
}

fn named(keyword: &str, value: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let Some(given) = value.as_object() else {
        return Err(walk.refuse(not_a_schema(&format!("`{keyword}`"), value)));
    };
    let mut schemas = Object::new();
    for (name, schema) in sorted(given) {
        let schema = walk.within(&[keyword, name], |walk| tidy(schema, walk))?;
        schemas.insert(name.to_owned(), schema);
    }
    Ok(Value::Object(schemas))
}

fn list(keyword: &str, value: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let given = value.as_array().filter(|given| !given.is_empty());
    let Some(given) = given else {
        return Err(walk.refuse(not_a_schema(&format!("`{keyword}`"), value)));
    };
    let mut schemas = Vec::with_capacity(given.len());
    for (index, schema) in given.iter().enumerate() {
        schemas.push(walk.within(&[keyword, &index.to_string()], |walk| tidy(schema, walk))?);
    }
    Ok(Value::Array(schemas))
}

/// Draft 4's `minimum: n, exclusiveMinimum: true`.
fn old_bound(keyword: &str, value: &Value, source: &Object, tidied: &mut Object) {
    let plain = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
    if value == &Value::Bool(true)
        && let Some(bound) = source.get(plain).filter(|bound| bound.is_number())
    {
        tidied.insert(keyword.to_owned(), bound.clone());
    }
}

/// Whether the value is of the type that draft 2020-12 asks of the keyword; keywords it does not
/// know may hold anything.
fn fits(keyword: &str, value: &Value) -> bool {
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

/// `nullable: true`, as `OpenAPI` 3.0 has it.
fn admit_null(schema: &mut Object) {
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

fn not_a_schema(what: &str, value: &Value) -> Reason {
    Reason::NotASchema(format!("{what} that is {}", article(value)))
}

fn article(value: &Value) -> String {
    match kind_of(value) {
        "null" => "null".to_owned(),
        kind @ ("array" | "integer" | "object") => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tidied(schema: &Value) -> Value {
        input_schema(schema, &mut Walk::default()).unwrap()
    }

    #[test]
    fn a_valid_schema_is_not_touched() {
        let schema = json!({
            "type": "object",
            "title": "T",
            "properties": {"a": {"type": ["string"]}, "b": {"anyOf": [{"type": "null"}, true]}},
            "required": ["a"],
            "additionalProperties": {"x-unit": "m"},
            "$defs": {"D": {"const": 1}},
        });
        assert_eq!(tidied(&schema), schema);
    }

    #[test]
    fn old_drafts_are_brought_up_to_date() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {
                "a": {"type": "string", "required": true},
                "b": {"type": "integer", "required": false, "minimum": 0, "exclusiveMinimum": true},
                "c": {"type": "array", "items": [{"type": "string"}], "additionalItems": false},
                "d": {"type": "string", "nullable": true},
            },
            "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
        });
        assert_eq!(
            tidied(&schema),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": "integer", "exclusiveMinimum": 0},
                    "c": {"type": "array", "prefixItems": [{"type": "string"}], "items": false},
                    "d": {"type": ["string", "null"]},
                },
                "required": ["a"],
                "dependentRequired": {"a": ["b"]},
                "dependentSchemas": {"c": {"required": ["d"]}},
            })
        );
    }

    #[test]
    fn words_of_other_languages_are_translated() {
        let schema =
            json!({"type": "dict", "properties": {"n": {"type": "INT"}, "x": {"type": "any"}}});
        assert_eq!(
            tidied(&schema),
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "x": {}}})
        );
    }

    #[test]
    fn what_is_no_schema_is_refused_where_it_stands() {
        let refused = |schema| input_schema(&schema, &mut Walk::default()).unwrap_err();
        let enumeration = refused(json!({"properties": {"a": {"enum": []}}}));
        assert_eq!(enumeration.at, "/properties/a");
        assert_eq!(enumeration.reason, Reason::AdmitsNothing);
        assert_eq!(refused(json!({"type": "string"})).reason, Reason::NotAnObject);
        assert_eq!(
            refused(json!([])).reason,
            Reason::NotASchema("a schema that is an array".into())
        );
        let word = refused(json!({"properties": {"a": {"type": "str1ng"}}}));
        assert_eq!(word.reason, Reason::NotASchema("type \"str1ng\"".into()));
    }
}
