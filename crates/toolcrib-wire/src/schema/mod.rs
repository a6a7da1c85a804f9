//! Reads and rewrites JSON Schemas.

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

/// A schema other than `true` and `false`.
pub(crate) type Object = Map<String, Value>;

/// The members sorted by name, whatever map type `serde_json` uses in this build.
pub(crate) fn sorted(object: &Object) -> Vec<(&str, &Value)> {
    let mut members: Vec<_> = object.iter().map(|(key, value)| (key.as_str(), value)).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    members
}

/// The number of values in a value, including itself.
pub(crate) fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

/// The required names of an object schema.
pub(crate) fn required(schema: &Object) -> Vec<&str> {
    schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}
