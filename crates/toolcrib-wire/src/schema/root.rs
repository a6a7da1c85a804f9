//! Requirements of providers outside strict mode: a plain root, and lists with `items`.

use serde_json::Value;

use super::inside::each_inside;
use super::{Object, required};
use crate::report::{Reason, Refused, Walk};

/// Keywords that OpenAI and Anthropic refuse at the root of a tool's schema.
const REFUSED: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "enum", "const", "if", "then", "else"];

/// Simplifies a tidied schema to a root with `properties` and without combinators.
///
/// Combinators that only restrict the root's own properties are left out, because validation of the call still enforces
/// them. A combinator with properties of its own is refused, because the model would never learn of them.
pub(crate) fn plain_root(schema: &Value, walk: &mut Walk) -> Result<Value, Refused> {
    let Value::Object(mut root) = schema.clone() else {
        return Err(walk.refuse(Reason::NotAnObject));
    };
    let mut followed = Vec::new();
    while let Some(reference) = root.remove("$ref") {
        if followed.contains(&reference) {
            return Err(walk.refuse(Reason::Recursive));
        }
        root = referenced_root(&root, schema, &reference, walk)?;
        followed.push(reference);
    }
    for keyword in REFUSED {
        if let Some(combined) = root.get(keyword) {
            if !only_narrows(combined, &root) {
                return Err(walk.refuse(Reason::Keyword(keyword)));
            }
            root.remove(keyword);
            walk.note(format!("`{keyword}` at the root is left out"));
        }
    }
    if !root.contains_key("properties") {
        root.insert("properties".to_owned(), Value::Object(Object::new()));
    }
    Ok(Value::Object(root))
}

/// Replaces a root that is a reference with its target, which may be a reference again.
fn referenced_root(
    root: &Object,
    schema: &Value,
    reference: &Value,
    walk: &mut Walk,
) -> Result<Object, Refused> {
    let target = reference.as_str().and_then(|to| super::reference::resolve(schema, to));
    let Some(Value::Object(target)) = target else {
        let told = reference.as_str().map_or_else(|| reference.to_string(), str::to_owned);
        return Err(walk.refuse(Reason::Reference(told)));
    };
    super::merge::merge(root, target).map_err(|keyword| walk.refuse(Reason::Conflict(keyword)))
}

/// Whether the combinator names only properties of the root.
fn only_narrows(combined: &Value, root: &Object) -> bool {
    let known = root.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
    match combined {
        Value::Array(parts) => parts.iter().all(|part| only_narrows(part, root)),
        Value::Object(part) => {
            let named = part.get("properties").and_then(Value::as_object);
            named.is_none_or(|named| named.keys().all(|name| is_known(name)))
                && required(part).into_iter().all(is_known)
                && !part.contains_key("$ref")
                && ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"]
                    .iter()
                    .filter_map(|keyword| part.get(*keyword))
                    .all(|inner| only_narrows(inner, root))
        }
        Value::Bool(_) => true,
        _ => false,
    }
}

/// Adds `items` to every list schema, because OpenAI refuses tools without it.
pub(crate) fn add_missing_items(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    each_inside(object, &mut add_missing_items);
    let is_list = match object.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if is_list && !object.contains_key("items") {
        object.insert("items".to_owned(), Value::Object(Object::new()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_union_of_known_properties_is_omitted_with_a_note() {
        let mut walk = Walk::default();
        let root = plain_root(
            &json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            }),
            &mut walk,
        )
        .unwrap();
        assert!(root.get("anyOf").is_none());
        assert_eq!(walk.into_notes("t").next().unwrap().text, "`anyOf` at the root is left out");
    }

    #[test]
    fn a_union_with_its_own_properties_is_refused() {
        let schema = json!({"type": "object", "oneOf": [{"properties": {"a": {}}}]});
        let refused = plain_root(&schema, &mut Walk::default()).unwrap_err();
        assert_eq!(refused.reason, Reason::Keyword("oneOf"));
    }

    #[test]
    fn a_root_reference_is_replaced_with_its_final_target() {
        let schema = json!({
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {"$ref": "#/$defs/b", "title": "A"},
                "b": {"type": "object", "properties": {"c": {"type": "string"}}},
            },
        });
        let root = plain_root(&schema, &mut Walk::default()).unwrap();
        assert!(root.get("$ref").is_none(), "{root}");
        assert_eq!(root["title"], "A");
        assert_eq!(root["properties"], json!({"c": {"type": "string"}}));
    }

    #[test]
    fn a_root_that_references_only_itself_is_refused() {
        for schema in [
            json!({"type": "object", "$ref": "#"}),
            json!({
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            }),
        ] {
            let refused = plain_root(&schema, &mut Walk::default()).unwrap_err();
            assert_eq!(refused.reason, Reason::Recursive, "{schema}");
        }
    }

    #[test]
    fn a_list_gets_items_and_data_is_unchanged() {
        let mut schema = json!({
            "properties": {"type": {"type": "array"}},
            "default": {"type": "array"},
        });
        add_missing_items(&mut schema);
        assert_eq!(schema["properties"]["type"]["items"], json!({}));
        assert_eq!(schema["default"], json!({"type": "array"}));
    }
}
