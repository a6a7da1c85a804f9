//! Where a schema lets a model write any text, in words.

use super::value_shape::{Shape, is_word};
use crate::document::{Node, NodeValue, shortened};

/// The part of an argument's schema that makes its values [free](Shape::Free), and what restricts it. `None` if the whole
/// schema is such a part: a text without a pattern.
pub(in crate::manifest) fn too_free(name: &str, schema: &Node) -> Option<String> {
    let is_nested = ["pattern", "properties", "items", "additionalProperties"]
        .iter()
        .any(|key| schema.entry(key).is_some());
    if !is_nested || Shape::of(schema) < Shape::Free {
        return None;
    }
    free_part(&shortened(name), schema, 0, false)
}

fn free_part(path: &str, schema: &Node, depth: usize, in_json: bool) -> Option<String> {
    if depth > 4 {
        return Some(format!("`{path}` is nested too deeply"));
    }
    if schema.entry("const").is_some() || schema.entry("enum").is_some() {
        return None;
    }
    let types: Vec<&str> = match schema.entry("type").map(|entry| &entry.node.value) {
        Some(NodeValue::String(name)) => vec![name],
        Some(NodeValue::Sequence(names)) => names.iter().filter_map(Node::as_str).collect(),
        _ => return Some(format!("`{path}` takes any value: give it a `type`")),
    };
    types.iter().find_map(|name| match *name {
        "string" => free_text(path, schema, in_json),
        "array" => match schema.entry("items") {
            Some(items) => free_part(&format!("{path}[]"), &items.node, depth + 1, in_json),
            None => Some(format!("`{path}` takes items of any kind: declare `items`")),
        },
        "object" => free_object(path, schema, depth),
        _ => None,
    })
}

fn free_text(path: &str, schema: &Node, in_json: bool) -> Option<String> {
    match schema.entry("pattern").and_then(|entry| entry.node.as_str()) {
        None => Some(format!("`{path}` takes any text: give it an `enum` or a `pattern`")),
        Some(pattern) if is_word(pattern, in_json) => None,
        Some(pattern) if is_word(pattern, true) => Some(format!(
            "`{path}` can begin with `-`: let its pattern begin with another character, as in \
             `^[a-z0-9][a-z0-9.-]*$`"
        )),
        Some(_) => Some(format!(
            "the pattern of `{path}` allows more than letters, digits, `_`, `.` and `-`, or does not begin with `^` \
             and end with `$`"
        )),
    }
}

fn free_object(path: &str, schema: &Node, depth: usize) -> Option<String> {
    let open = schema.entry("additionalProperties").map(|entry| &entry.node.value);
    if open != Some(&NodeValue::Bool(false)) || schema.entry("patternProperties").is_some() {
        return Some(format!(
            "`{path}` takes keys of any name: name them under `properties`, and add `additionalProperties: false`"
        ));
    }
    let properties = schema.entry("properties").map(|entry| entry.node.entries());
    properties.unwrap_or_default().iter().find_map(|property| {
        let path = format!("{path}.{}", shortened(&property.key));
        free_part(&path, &property.node, depth + 1, true)
    })
}
