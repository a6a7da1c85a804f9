//! Converts schemas as people write them to valid JSON Schema of draft 2020-12.
//!
//! A valid schema stays unchanged, except for `$schema` and `$comment`, which are removed.

mod keywords;
mod references;

use serde_json::Value;

use self::keywords::{
    add_required, admit_null, article, fits, names_required_inside, not_a_schema, old_bound,
    options, required, types,
};
use super::kinds::kinds;
use super::{Object, sorted};
use crate::report::{Reason, Refused, Walk};

/// Keywords that contain one schema.
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
/// Keywords that contain a list of schemas.
const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that contain named schemas.
const NAMED: [&str; 5] =
    ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];

/// The root of an input schema: an object schema of draft 2020-12.
pub(crate) fn input_schema(schema: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let Value::Object(mut root) = tidy(schema, walk)? else {
        return Err(walk.refuse(Reason::NotAnObject));
    };
    let named = kinds(&root);
    // The type is implied if only keywords about objects are present, or none.
    let unsaid = named.is_empty() && !root.contains_key("type");
    if !unsaid && !named.iter().any(|kind| kind == "object") {
        return Err(walk.refuse(Reason::NotAnObject));
    }
    root.insert("type".to_owned(), "object".into());
    let root = Value::Object(root);
    references::check(&root, &root, walk)?;
    Ok(root)
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

/// Draft 7's `dependencies`, which later drafts split in two.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tidied(schema: &Value) -> Value {
        input_schema(schema, &mut Walk::default()).unwrap()
    }

    #[test]
    fn a_valid_schema_stays_unchanged() {
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
    fn type_names_of_other_languages_are_translated() {
        let schema =
            json!({"type": "dict", "properties": {"n": {"type": "INT"}, "x": {"type": "any"}}});
        assert_eq!(
            tidied(&schema),
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "x": {}}})
        );
    }

    #[test]
    fn an_invalid_schema_is_refused_with_its_position() {
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
