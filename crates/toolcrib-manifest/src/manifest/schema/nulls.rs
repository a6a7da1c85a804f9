//! `default: null`, which generators write for arguments without a default.

use serde_json::Value;

use super::keywords;
use crate::diagnostic::{Diagnostic, Findings};
use crate::document::{Node, NodeValue};

/// Removes null defaults from schemas that do not allow null, with a warning.
pub(super) fn leave_out(node: &Node, schema: &mut Value, findings: &mut Findings<'_>) {
    let root = schema.clone();
    below(node, schema, &root, findings);
}

/// Whether this schema has a null default that means no default.
pub(super) fn means_none(schema: &Node, root: &Value) -> bool {
    let default = schema.entry("default").map(|default| &default.node.value);
    default == Some(&NodeValue::Null) && !admits_null(&schema.to_value(), root, 0)
}

fn below(node: &Node, schema: &mut Value, root: &Value, findings: &mut Findings<'_>) {
    if let Some(default) = node.entry("default")
        && means_none(node, root)
    {
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("default");
        }
        let message = "null is not an allowed value here, so this means no default";
        let place = default.key_span.start..default.node.span.end.max(default.key_span.end);
        findings.add(
            Diagnostic::warning("null-default", &place, message)
                .help("remove it: an optional argument that is absent has no value"),
        );
    }
    for entry in node.entries() {
        let Some(value) = schema.get_mut(&entry.key) else { continue };
        if keywords::maps_to_schemas(&entry.key) {
            for named in entry.node.entries() {
                if let Some(value) = value.get_mut(&named.key) {
                    below(&named.node, value, root, findings);
                }
            }
        } else if keywords::has_schemas(&entry.key) {
            match value {
                Value::Array(values) => {
                    for (item, value) in entry.node.items().iter().zip(values) {
                        below(item, value, root, findings);
                    }
                }
                value => below(&entry.node, value, root, findings),
            }
        }
    }
}

/// Whether a schema allows null by its own keywords; a schema without keywords allows everything.
fn admits_null(schema: &Value, root: &Value, depth: usize) -> bool {
    let Some(keywords) = schema.as_object() else { return schema.as_bool().unwrap_or(true) };
    if depth > 4 {
        return true;
    }
    let names = |value: &Value, name: &str| match value {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    };
    let all = |key: &str, held: &dyn Fn(&Value) -> bool| keywords.get(key).is_none_or(held);
    let some = |branches: &Value| {
        let branches = branches.as_array().map(Vec::as_slice).unwrap_or_default();
        branches.iter().any(|branch| admits_null(branch, root, depth + 1))
    };
    let every = |branches: &Value| {
        let branches = branches.as_array().map(Vec::as_slice).unwrap_or_default();
        branches.iter().all(|branch| admits_null(branch, root, depth + 1))
    };
    let target = |reference: &Value| {
        let target = reference.as_str().and_then(|text| text.strip_prefix('#'));
        target
            .and_then(|pointer| root.pointer(pointer))
            .is_none_or(|target| admits_null(target, root, depth + 1))
    };
    all("type", &|value| names(value, "null"))
        && all("enum", &|value| value.as_array().is_none_or(|all| all.contains(&Value::Null)))
        && all("const", &Value::is_null)
        && all("anyOf", &some)
        && all("oneOf", &some)
        && all("allOf", &every)
        && all("$ref", &target)
}
