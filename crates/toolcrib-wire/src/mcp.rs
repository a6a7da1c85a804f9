//! Tool definitions and structured data for MCP.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};

use crate::declaration::Declaration;
use crate::report::{Refused, Walk};
use crate::schema::inside::each_inside;
use crate::schema::tidy::tidy;

/// The property that wraps data that is not an object.
const WRAPPER: &str = "result";

/// Which structured data a revision of MCP accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum McpData {
    /// Only objects, up to revision 2025-11-25: other data is wrapped as `{result: …}`.
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
        let schema = mcp_output_schema(&schema, McpData::Objects);
        tool.insert("outputSchema".to_owned(), Value::Object(schema));
        walk.absorb(own);
    }
    if let Some(hints) = declaration.annotations {
        let mut annotations = json!({
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.may_destroy(),
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

/// The data in the form of a revision; `schema` is the tool's output schema. If the schema has to be wrapped, the data
/// is wrapped too, even if it happens to be an object.
pub(crate) fn structured_content<'a>(
    data: &'a Value,
    schema: Option<&Value>,
    takes: McpData,
) -> StructuredContent<'a> {
    let wrapped = match (takes, schema) {
        (McpData::Any, _) => false,
        (McpData::Objects, Some(schema)) => !is_object_schema(schema),
        (McpData::Objects, None) => !data.is_object(),
    };
    StructuredContent { data, wrapped }
}

/// Data, unchanged or as `{result: …}`.
pub(crate) struct StructuredContent<'a> {
    data: &'a Value,
    wrapped: bool,
}

impl Serialize for StructuredContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.wrapped {
            return self.data.serialize(serializer);
        }
        let mut wrapper = serializer.serialize_map(Some(1))?;
        wrapper.serialize_entry(WRAPPER, self.data)?;
        wrapper.end()
    }
}

/// A tool's output schema in the form of a revision; the form for [`McpData::Objects`] is valid in every revision.
///
/// A wrapped schema keeps its definitions inside, and its references are adjusted.
///
/// ```
/// use serde_json::{Value, json};
/// use toolcrib_wire::{McpData, mcp_output_schema};
///
/// let schema = json!({"type": "array", "items": {"type": "string"}});
/// let wrapped = mcp_output_schema(&schema, McpData::Objects);
/// assert_eq!(wrapped["properties"]["result"], schema);
/// assert_eq!(Value::Object(mcp_output_schema(&schema, McpData::Any)), schema);
/// ```
pub fn mcp_output_schema(schema: &Value, takes: McpData) -> Map<String, Value> {
    match (schema, takes) {
        (Value::Object(object), _) if is_object_schema(schema) => object.clone(),
        (Value::Object(object), McpData::Any) => object.clone(),
        // MCP requires objects as schemas: `true` accepts everything, anything else nothing.
        (Value::Bool(true), McpData::Any) => Map::new(),
        (_, McpData::Any) => Map::from_iter([("not".to_owned(), json!({}))]),
        (_, McpData::Objects) => wrapped(schema),
    }
}

/// The schema of `{result: schema}`.
fn wrapped(schema: &Value) -> Map<String, Value> {
    let mut inner = schema.clone();
    // A schema with its own `$id` is a separate resource, so its references stay valid.
    if inner.get("$id").is_none() {
        rebase_references(&mut inner);
    }
    Map::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), json!({ WRAPPER: inner })),
        ("required".to_owned(), json!([WRAPPER])),
        ("additionalProperties".to_owned(), false.into()),
    ])
}

/// Whether the schema says explicitly that it accepts only objects.
fn is_object_schema(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Adjusts references to the schema's root (`#`, `#/…`) after the root has moved.
fn rebase_references(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    if let Some(Value::String(target)) = object.get_mut("$ref")
        && (target == "#" || target.starts_with("#/"))
    {
        target.insert_str(1, &format!("/properties/{WRAPPER}"));
    }
    each_inside(object, &mut rebase_references);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_as(data: &Value, schema: Option<&Value>, takes: McpData) -> Value {
        serde_json::to_value(structured_content(data, schema, takes)).unwrap()
    }

    fn schema(schema: &Value, takes: McpData) -> Value {
        Value::Object(mcp_output_schema(schema, takes))
    }

    #[test]
    fn an_object_schema_is_the_same_in_every_revision() {
        let object = json!({"type": "object", "properties": {"total": {"type": "integer"}}});
        for takes in [McpData::Objects, McpData::Any] {
            assert_eq!(schema(&object, takes), object);
            let data = json!({"total": 1});
            assert_eq!(data_as(&data, Some(&object), takes), data);
        }
    }

    #[test]
    fn a_list_is_wrapped_if_only_objects_are_accepted() {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let wrapped = schema(&list, McpData::Objects);
        assert_eq!(wrapped["properties"]["result"], list);
        assert_eq!(wrapped["required"], json!(["result"]));
        assert_eq!(schema(&list, McpData::Any), list);
        let data = json!(["a"]);
        assert_eq!(data_as(&data, Some(&list), McpData::Objects), json!({"result": ["a"]}));
        assert_eq!(data_as(&data, Some(&list), McpData::Any), data);
    }

    #[test]
    fn references_follow_a_schema_into_its_wrapper() {
        let list = json!({
            "type": "array",
            "items": {"$ref": "#/$defs/Node"},
            "$defs": {"Node": {
                "properties": {
                    "children": {"$ref": "#"},
                    "other": {"$ref": "https://a.example/b"},
                    "default": {"$ref": "#"},
                    "$ref": {"type": "string"},
                },
                "default": {"$ref": "#/not/a/reference"},
            }},
        });
        let wrapped = schema(&list, McpData::Objects);
        let inner = &wrapped["properties"]["result"];
        assert_eq!(inner["items"]["$ref"], "#/properties/result/$defs/Node");
        let node = &inner["$defs"]["Node"];
        assert_eq!(node["properties"]["children"]["$ref"], "#/properties/result");
        assert_eq!(node["properties"]["other"]["$ref"], "https://a.example/b");
        // Also for a property that is named like a keyword.
        assert_eq!(node["properties"]["default"]["$ref"], "#/properties/result");
        assert_eq!(node["properties"]["$ref"], json!({"type": "string"}));
        assert_eq!(node["default"]["$ref"], "#/not/a/reference");
        // A separate resource is left unchanged.
        let own = json!({"$id": "https://a.example/list", "items": {"$ref": "#/$defs/Node"}});
        assert_eq!(schema(&own, McpData::Objects)["properties"]["result"], own);
    }

    #[test]
    fn a_boolean_schema_becomes_an_equivalent_object() {
        assert_eq!(schema(&json!(true), McpData::Any), json!({}));
        assert_eq!(schema(&json!(false), McpData::Any), json!({"not": {}}));
        assert_eq!(schema(&json!(true), McpData::Objects)["properties"]["result"], true);
    }

    #[test]
    fn data_is_wrapped_like_its_schema() {
        let either = json!({"anyOf": [{"type": "object"}, {"type": "null"}]});
        let data = json!({"a": 1});
        assert_eq!(data_as(&data, Some(&either), McpData::Objects), json!({"result": {"a": 1}}));
        assert_eq!(data_as(&data, None, McpData::Objects), data);
        assert_eq!(data_as(&json!(7), None, McpData::Objects), json!({"result": 7}));
    }
}
