//! JSON Schemas and canonical JSON: the same bytes on every run and in every build.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of a Rust type, without the `$schema` and `title` keys.
///
/// An object schema that does not say what happens to unknown properties refuses them, so that a
/// misspelt argument is an error with a suggestion and not a silently ignored value.
pub fn schema_for<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Value::from(generator.into_root_schema_for::<T>());
    if let Some(root) = schema.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
        let open =
            ["additionalProperties", "unevaluatedProperties", "$ref", "oneOf", "anyOf", "allOf"];
        if root.contains_key("properties") && !open.iter().any(|key| root.contains_key(*key)) {
            root.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    schema
}

/// Compact JSON with object keys in byte order, whatever map the graph's `serde_json` uses.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::canonical_json;
///
/// assert_eq!(canonical_json(&json!({"b": [1, null], "a": "x"})), r#"{"a":"x","b":[1,null]}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (index, (key, item)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(item, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
