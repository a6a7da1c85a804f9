//! `null`, which a strict model sends for an omitted property.

use serde_json::{Value, json};

use crate::schema::Object;
use crate::schema::kinds::{kinds, type_value};
use crate::schema::merge::is_listed;
use crate::schema::reference::resolve;

/// Whether the tool's own schema accepts `null`, so that strict mode has nothing to add. A schema without `type` whose
/// keywords apply to one type counts as that type.
pub(crate) fn admits_null(schema: &Value, root: &Value) -> bool {
    admits_null_within(schema, root, &mut 1000)
}

/// Reads at most `fuel` schemas; without fuel the answer is `false`.
fn admits_null_within(schema: &Value, root: &Value, fuel: &mut usize) -> bool {
    if *fuel == 0 {
        return false;
    }
    *fuel -= 1;
    let object = match schema {
        Value::Bool(all) => return *all,
        Value::Object(object) => object,
        _ => return false,
    };
    let kinds = kinds(object);
    let combined =
        ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| object.contains_key(*keyword));
    let unsaid = kinds.is_empty() || (combined && !object.contains_key("type"));
    if !(unsaid || kinds.iter().any(|kind| kind == "null")) || !is_listed(&Value::Null, object) {
        return false;
    }
    if let Some(reference) = object.get("$ref").and_then(Value::as_str)
        && !resolve(root, reference).is_some_and(|target| admits_null_within(target, root, fuel))
    {
        return false;
    }
    let mut parts = |keyword: &str| -> Option<(bool, bool)> {
        let parts = object.get(keyword)?.as_array()?;
        let admitting = parts.iter().filter(|part| admits_null_within(part, root, fuel)).count();
        Some((admitting > 0, admitting == parts.len()))
    };
    parts("allOf").is_none_or(|(_, all)| all)
        && parts("anyOf").is_none_or(|(any, _)| any)
        && parts("oneOf").is_none_or(|(any, _)| any)
}

/// The strict schema, or `null`.
pub(super) fn nullable(mut schema: Object) -> Object {
    let kinds = kinds(&schema);
    let structural = ["$ref", "const", "anyOf"].iter().any(|key| schema.contains_key(*key));
    if !structural && !kinds.is_empty() {
        if let Some(Value::Array(options)) = schema.get_mut("enum")
            && !options.contains(&Value::Null)
        {
            options.push(Value::Null);
        }
        let mut kinds = kinds;
        if !kinds.iter().any(|kind| kind == "null") {
            kinds.push("null".to_owned());
        }
        schema.insert("type".to_owned(), type_value(&kinds));
        return schema;
    }
    let null = json!({"type": "null"});
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.push(null);
        return schema;
    }
    let mut union = Object::new();
    for keyword in ["title", "description"] {
        if let Some(text) = schema.remove(keyword) {
            union.insert(keyword.to_owned(), text);
        }
    }
    union.insert("anyOf".to_owned(), Value::Array(vec![Value::Object(schema), null]));
    union
}
