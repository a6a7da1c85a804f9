//! Structured content and output schemas, in the shape each revision allows.

use serde_json::{Map, Value, json};

use crate::revision::Revision;

/// The property that holds what is not an object.
const WRAPPER: &str = "result";

/// Keywords whose values are data or names, so that a `$ref` inside is no reference.
const LITERAL_KEYWORDS: [&str; 4] = ["const", "enum", "default", "examples"];

/// The output schema as a client of that revision may see it.
pub(crate) fn output_schema(schema: &Value, revision: Revision) -> Map<String, Value> {
    match (schema, revision) {
        (Value::Object(object), _) if is_object_schema(schema) => object.clone(),
        (Value::Object(object), Revision::AnyJson) => object.clone(),
        // MCP writes schemas as objects: `true` admits everything, anything else nothing.
        (Value::Bool(true), Revision::AnyJson) => Map::new(),
        (_, Revision::AnyJson) => Map::from_iter([("not".to_owned(), json!({}))]),
        (_, Revision::Objects) => wrap_schema(schema),
    }
}

/// The data as a client of that revision may see it; `schema` is the tool's output schema.
pub(crate) fn structured_content(
    data: &Value,
    schema: Option<&Value>,
    revision: Revision,
) -> Value {
    let wrapped = match (revision, schema) {
        (Revision::AnyJson, _) => false,
        (Revision::Objects, Some(schema)) => !is_object_schema(schema),
        (Revision::Objects, None) => !data.is_object(),
    };
    if wrapped { json!({ WRAPPER: data }) } else { data.clone() }
}

/// Whether the schema says outright that it admits objects only.
fn is_object_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// `{"result": schema}` as a schema. Definitions stay inside, where references are led to.
fn wrap_schema(schema: &Value) -> Map<String, Value> {
    let mut inner = schema.clone();
    // A schema with its own `$id` is a resource of its own: its references stay right.
    if inner.get("$id").is_none() {
        rebase_references(&mut inner);
    }
    let wrapper = json!({
        "type": "object",
        "properties": { WRAPPER: inner },
        "required": [WRAPPER],
        "additionalProperties": false,
    });
    match wrapper {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Leads references to the schema's root (`#`, `#/…`) to where the root has moved.
fn rebase_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match value {
                    Value::String(target) if keyword == "$ref" => {
                        if target == "#" || target.starts_with("#/") {
                            target.insert_str(1, &format!("/properties/{WRAPPER}"));
                        }
                    }
                    _ if LITERAL_KEYWORDS.contains(&keyword.as_str()) => {}
                    _ => rebase_references(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rebase_references),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_schema_is_the_same_in_every_revision() {
        let schema = json!({"type": "object", "properties": {"total": {"type": "integer"}}});
        for revision in [Revision::Objects, Revision::AnyJson] {
            assert_eq!(Value::Object(output_schema(&schema, revision)), schema);
            assert_eq!(
                structured_content(&json!({"total": 1}), Some(&schema), revision)["total"],
                1
            );
        }
    }

    #[test]
    fn a_list_is_wrapped_for_old_revisions_only() {
        let schema = json!({"type": "array", "items": {"type": "string"}});
        let data = json!(["a"]);
        let wrapped = Value::Object(output_schema(&schema, Revision::Objects));
        assert_eq!(wrapped["properties"]["result"], schema);
        assert_eq!(wrapped["required"], json!(["result"]));
        assert_eq!(
            structured_content(&data, Some(&schema), Revision::Objects),
            json!({"result": ["a"]})
        );
        assert_eq!(Value::Object(output_schema(&schema, Revision::AnyJson)), schema);
        assert_eq!(structured_content(&data, Some(&schema), Revision::AnyJson), data);
    }

    #[test]
    fn data_is_wrapped_as_its_schema_is_even_when_it_happens_to_be_an_object() {
        let schema = json!({"anyOf": [{"type": "object"}, {"type": "null"}]});
        let wrapped = structured_content(&json!({"a": 1}), Some(&schema), Revision::Objects);
        assert_eq!(wrapped, json!({"result": {"a": 1}}));
    }

    #[test]
    fn data_without_a_schema_is_wrapped_only_when_it_must_be() {
        assert_eq!(structured_content(&json!({"a": 1}), None, Revision::Objects), json!({"a": 1}));
        assert_eq!(structured_content(&json!(7), None, Revision::Objects), json!({"result": 7}));
    }

    #[test]
    fn references_follow_a_schema_into_its_wrapper() {
        let schema = json!({
            "type": "array",
            "items": {"$ref": "#/$defs/Node"},
            "$defs": {"Node": {
                "properties": {"children": {"$ref": "#"}, "other": {"$ref": "https://a.example/b"}},
                "default": {"$ref": "#/not/a/reference"},
            }},
        });
        let wrapped = Value::Object(output_schema(&schema, Revision::Objects));
        let inner = &wrapped["properties"]["result"];
        assert_eq!(inner["items"]["$ref"], "#/properties/result/$defs/Node");
        let node = &inner["$defs"]["Node"];
        assert_eq!(node["properties"]["children"]["$ref"], "#/properties/result");
        assert_eq!(node["properties"]["other"]["$ref"], "https://a.example/b");
        assert_eq!(node["default"]["$ref"], "#/not/a/reference");
    }

    #[test]
    fn a_boolean_schema_becomes_an_object_that_means_the_same() {
        assert_eq!(Value::Object(output_schema(&json!(true), Revision::AnyJson)), json!({}));
        assert_eq!(
            Value::Object(output_schema(&json!(false), Revision::AnyJson)),
            json!({"not": {}})
        );
    }
}
