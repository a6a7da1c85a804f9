//! JSON Schemas, read and rewritten.

pub(crate) mod conversion;
pub(crate) mod inside;
pub(crate) mod kinds;
pub(crate) mod merge;
pub(crate) mod reference;
pub(crate) mod root;
pub(crate) mod shape;
pub(crate) mod tidy;
pub(crate) mod words;

use serde_json::{Map, Value};

/// A schema that is not `true` or `false`.
pub(crate) type Object = Map<String, Value>;

/// The members in the order of their names, whatever map the graph's `serde_json` uses.
pub(crate) fn sorted(object: &Object) -> Vec<(&str, &Value)> {
    let mut members: Vec<_> = object.iter().map(|(key, value)| (key.as_str(), value)).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    members
}

/// How many values a value is made of, itself included.
pub(crate) fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

/// The names an object schema requires.
pub(crate) fn required(schema: &Object) -> Vec<&str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}
