//! The four forms of a schema after `allOf` and `oneOf` are resolved.

use serde_json::Value;

use super::merge::{ANNOTATIONS, merge};
use super::reference::resolve;
use super::{Object, size};
use crate::report::{Reason, Refused, Walk};

/// How many references in a row are followed before a schema counts as endless.
const MAX_HOPS: usize = 32;

/// The form of a schema.
#[derive(Debug)]
pub(crate) enum Shape {
    /// `true`, `{}` or `false`.
    Bool(bool),
    /// A `$ref` with at most annotations beside it.
    Reference { reference: String, annotations: Object },
    /// One of several schemas; keywords beside them are copied into each, except annotations.
    Union { branches: Vec<Value>, annotations: Object },
    /// Keywords without references and combinators, except `not` and `if`.
    Plain(Object),
}

/// The form of `schema`, a part of `root`.
///
/// `allOf` is merged, `oneOf` is read as `anyOf`, and `P ∧ (A ∨ B)` is written as `(P ∧ A) ∨ (P ∧ B)`. This preserves
/// the meaning, except for `oneOf`, which is noted.
pub(crate) fn shape(schema: &Value, root: &Value, walk: &mut Walk) -> Result<Shape, Refused> {
    match schema {
        Value::Bool(all) => Ok(Shape::Bool(*all)),
        Value::Object(object) => of_object(object, root, walk, 0),
        _ => Err(walk.refuse(Reason::NotASchema("a value that is no object".to_owned()))),
    }
}

fn of_object(
    object: &Object,
    root: &Value,
    walk: &mut Walk,
    hops: usize,
) -> Result<Shape, Refused> {
    if hops > MAX_HOPS {
        return Err(walk.refuse(Reason::Recursive));
    }
    walk.spend(1)?;
    if let Some(parts) = object.get("allOf").and_then(Value::as_array) {
        let mut whole = without(object, &["allOf"]);
        for part in parts {
            match part {
                Value::Bool(true) => {}
                Value::Object(part) => whole = join(&whole, part, root, walk)?,
                _ => return Err(walk.refuse(Reason::AdmitsNothing)),
            }
        }
        return of_object(&whole, root, walk, hops + 1);
    }
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        let beside = without(object, &["$ref"]);
        let Some(target) = resolve(root, reference) else {
            return Err(walk.refuse(Reason::Reference(reference.to_owned())));
        };
        if constrains(&beside) {
            let Value::Object(target) = target else {
                return Ok(Shape::Bool(target == &Value::Bool(true)));
            };
            let whole = join(&beside, target, root, walk)?;
            return of_object(&whole, root, walk, hops + 1);
        }
        return Ok(Shape::Reference {
            reference: reference.to_owned(),
            annotations: annotations(object),
        });
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(parts) = object.get(keyword).and_then(Value::as_array) {
            if keyword == "oneOf" {
                walk.note("`oneOf` is exported as `anyOf`");
            }
            return union(&without(object, &[keyword]), parts, root, walk);
        }
    }
    if object.is_empty() {
        return Ok(Shape::Bool(true));
    }
    Ok(Shape::Plain(object.clone()))
}

/// The branches of a union, each with the keywords beside the combinator.
fn union(
    beside: &Object,
    parts: &[Value],
    root: &Value,
    walk: &mut Walk,
) -> Result<Shape, Refused> {
    let annotations = annotations(beside);
    let common: Object = beside
        .iter()
        .filter(|(keyword, _)| !is_annotation(keyword))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect();
    let mut branches = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Value::Bool(false) => {}
            Value::Bool(true) if !constrains(&common) => return Ok(Shape::Bool(true)),
            Value::Bool(true) => branches.push(Value::Object(common.clone())),
            // A branch whose type contradicts the surrounding keywords accepts nothing.
            Value::Object(part) if constrains(&common) => match join(part, &common, root, walk) {
                Ok(branch) => branches.push(Value::Object(branch)),
                Err(Refused { reason: Reason::Conflict(keyword), .. }) if keyword == "type" => {}
                Err(refused) => return Err(refused),
            },
            part => branches.push(part.clone()),
        }
    }
    match branches.as_slice() {
        [] => Err(walk.refuse(Reason::AdmitsNothing)),
        [Value::Object(only)] if !only.contains_key("$ref") || annotations.is_empty() => {
            // The outer annotations precede those of the only branch.
            let whole = merge(&annotations, only)
                .map_err(|keyword| walk.refuse(Reason::Conflict(keyword)))?;
            walk.within(&[], |walk| shape(&Value::Object(whole), root, walk))
        }
        _ => Ok(Shape::Union { branches, annotations }),
    }
}

/// Combines two schemas after resolving the references of both.
fn join(first: &Object, second: &Object, root: &Value, walk: &mut Walk) -> Result<Object, Refused> {
    let first = expanded(first, root, walk, 0)?;
    let second = expanded(second, root, walk, 0)?;
    // Both are copied, so a large schema beside many branches would be copied many times.
    walk.spend(first.values().chain(second.values()).map(size).sum())?;
    merge(&first, &second).map_err(|keyword| walk.refuse(Reason::Conflict(keyword)))
}

/// A schema without its own `$ref` or `allOf`.
fn expanded(
    schema: &Object,
    root: &Value,
    walk: &mut Walk,
    hops: usize,
) -> Result<Object, Refused> {
    if hops > MAX_HOPS {
        return Err(walk.refuse(Reason::Recursive));
    }
    walk.spend(1)?;
    let mut whole = without(schema, &["$ref", "allOf"]);
    let mut parts = Vec::new();
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        match resolve(root, reference) {
            Some(target) => parts.push(target),
            None => return Err(walk.refuse(Reason::Reference(reference.to_owned()))),
        }
    }
    parts.extend(schema.get("allOf").and_then(Value::as_array).into_iter().flatten());
    for part in parts {
        match part {
            Value::Bool(true) => {}
            Value::Object(part) => {
                let part = expanded(part, root, walk, hops + 1)?;
                whole = merge(&whole, &part)
                    .map_err(|keyword| walk.refuse(Reason::Conflict(keyword)))?;
            }
            _ => return Err(walk.refuse(Reason::AdmitsNothing)),
        }
    }
    Ok(whole)
}

fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword)
        || keyword.starts_with("x-")
        || matches!(keyword, "$defs" | "definitions" | "$id" | "$anchor")
}

fn constrains(schema: &Object) -> bool {
    schema.keys().any(|keyword| !is_annotation(keyword))
}

/// The annotations of the place, without definitions.
fn annotations(schema: &Object) -> Object {
    schema
        .iter()
        .filter(|(keyword, _)| ANNOTATIONS.contains(&keyword.as_str()))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect()
}

fn without(schema: &Object, keywords: &[&str]) -> Object {
    schema
        .iter()
        .filter(|(keyword, _)| !keywords.contains(&keyword.as_str()))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn formed(schema: &Value) -> Shape {
        shape(schema, schema, &mut Walk::default()).unwrap()
    }

    #[test]
    fn keywords_beside_a_union_are_in_every_branch() {
        let Shape::Union { branches, annotations } = formed(&json!({
            "type": "string", "description": "d", "anyOf": [{"minLength": 3}, {"enum": ["a"]}, {"type": "null"}],
        })) else {
            panic!("a union");
        };
        assert_eq!(
            branches,
            [json!({"type": "string", "minLength": 3}), json!({"type": "string", "enum": ["a"]})]
        );
        assert_eq!(Value::Object(annotations), json!({"description": "d"}));
    }

    #[test]
    fn the_parts_of_all_of_are_one_schema() {
        let Shape::Plain(merged) = formed(&json!({
            "$defs": {"Base": {"properties": {"a": {"type": "string"}}, "required": ["a"]}},
            "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": {"type": "integer"}}}],
        })) else {
            panic!("keywords");
        };
        assert_eq!(merged["properties"]["a"]["type"], "string");
        assert_eq!(merged["properties"]["b"]["type"], "integer");
        assert_eq!(merged["required"], json!(["a"]));
    }

    #[test]
    fn a_reference_to_itself_ends() {
        let looped = json!({"allOf": [{"$ref": "#"}]});
        assert!(shape(&looped, &looped, &mut Walk::default()).is_err());
    }
}
