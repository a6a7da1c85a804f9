//! MCP's way to be told about a tool, and what it takes as structured data.

use serde_json::{Map, Value, json};

use crate::declaration::Declaration;
use crate::report::{Refused, Walk};
use crate::schema::tidy::tidy;

/// The property that holds what is not an object.
const WRAPPER: &str = "result";

/// Keywords whose values are data, so that a `$ref` inside is no reference.
const LITERAL_KEYWORDS: [&str; 5] = ["const", "enum", "default", "example", "examples"];

/// What a revision of MCP takes as structured data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum McpData {
    /// Objects only, as up to revision 2025-11-25: anything else is wrapped as `{result: …}`.
    #[default]
    Objects,
    /// Any JSON, as from revision 2026-07-28 on.
    Any,
}

/// One entry of `tools/list`.
pub(crate) fn tool(
    declaration: &Declaration<'_>,
    name: &str,
    description: &str,
    schema: &Value,
    walk: &mut Walk,
) -> Result<Value, Refused> {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), name.into());
    if let Some(title) = declaration.title {
        tool.insert("title".to_owned(), title.into());
    }
    if !description.is_empty() {
        tool.insert("description".to_owned(), description.into());
    }
    tool.insert("inputSchema".to_owned(), schema.clone());
    if let Some(schema) = declaration.output_schema {
        let mut own = Walk::default();
        let schema = tidy(schema, &mut own)?;
        tool.insert("outputSchema".to_owned(), object_schema(&schema));
        walk.absorb(own);
    }
    if let Some(hints) = declaration.annotations {
        let mut annotations = json!({
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        });
        if let Some(title) = declaration.title {
            annotations["title"] = title.into();
        }
        tool.insert("annotations".to_owned(), annotations);
    }
    Ok(Value::Object(tool))
}

/// The data as a revision takes it; `schema` is the tool's output schema. Data is wrapped as its
/// schema is, even where it happens to be an object.
pub(crate) fn structured_content(data: &Value, schema: Option<&Value>, takes: McpData) -> Value {
    let wrapped = match (takes, schema) {
        (McpData::Any, _) => false,
        (McpData::Objects, Some(schema)) => !is_object_schema(schema),
        (McpData::Objects, None) => !data.is_object(),
    };
    if wrapped { json!({ WRAPPER: data }) } else { data.clone() }
}

/// The output schema as every revision takes it. Definitions stay inside, where references are
/// led to.
fn object_schema(schema: &Value) -> Value {
    if is_object_schema(schema) {
        return schema.clone();
    }
    let mut inner = schema.clone();
    rebase_references(&mut inner);
    json!({
        "type": "object",
        "properties": { WRAPPER: inner },
        "required": [WRAPPER],
        "additionalProperties": false,
    })
}

/// Whether the schema says outright that it admits objects only.
fn is_object_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
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
    fn a_list_is_wrapped_where_only_objects_are_taken() {
        let schema = json!({"type": "array", "items": {"$ref": "#/$defs/N"}, "$defs": {"N": {"type": "integer"}}});
        let wrapped = object_schema(&schema);
        assert_eq!(wrapped["properties"]["result"]["items"]["$ref"], "#/properties/result/$defs/N");
        let data = json!([1]);
        assert_eq!(
            structured_content(&data, Some(&schema), McpData::Objects),
            json!({"result": [1]})
        );
        assert_eq!(structured_content(&data, Some(&schema), McpData::Any), data);
    }

    #[test]
    fn data_is_wrapped_as_its_schema_is() {
        let either = json!({"anyOf": [{"type": "object"}, {"type": "null"}]});
        let data = json!({"a": 1});
        assert_eq!(
            structured_content(&data, Some(&either), McpData::Objects),
            json!({"result": {"a": 1}})
        );
        assert_eq!(structured_content(&data, None, McpData::Objects), data);
        assert_eq!(structured_content(&json!(7), None, McpData::Objects), json!({"result": 7}));
    }
}
