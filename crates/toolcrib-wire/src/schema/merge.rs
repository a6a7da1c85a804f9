//! Combines two schemas into one with the meaning of both.

use serde_json::Value;

use super::Object;
use super::kinds::kind_of;

/// Keywords that do not affect which values fit.
pub(crate) const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

/// Combines both schemas; if both have an annotation, the one of `first` is used. The error is the keyword that cannot
/// be combined.
pub(crate) fn merge(first: &Object, second: &Object) -> Result<Object, String> {
    let mut merged = first.clone();
    closed_objects_agree(first, second)?;
    for (keyword, theirs) in second {
        let Some(ours) = first.get(keyword) else {
            merged.insert(keyword.clone(), theirs.clone());
            continue;
        };
        if ours == theirs || ANNOTATIONS.contains(&keyword.as_str()) || keyword.starts_with("x-") {
            continue;
        }
        let both = both(keyword, ours, theirs).ok_or_else(|| keyword.clone())?;
        merged.insert(keyword.clone(), both);
    }
    Ok(merged)
}

/// Combines the different values of a keyword in two schemas.
fn both(keyword: &str, ours: &Value, theirs: &Value) -> Option<Value> {
    match keyword {
        "type" => common_type(ours, theirs),
        "required" => {
            let mut names = ours.as_array()?.clone();
            names.extend(
                theirs
                    .as_array()?
                    .iter()
                    .filter(|n| !names.contains(n))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            Some(Value::Array(names))
        }
        "enum" => {
            let theirs = theirs.as_array()?;
            let common: Vec<_> =
                ours.as_array()?.iter().filter(|value| theirs.contains(value)).cloned().collect();
            (!common.is_empty()).then_some(Value::Array(common))
        }
        "properties" | "$defs" | "definitions" => {
            let mut merged = ours.as_object()?.clone();
            for (name, theirs) in theirs.as_object()? {
                let together = match merged.get(name) {
                    None => theirs.clone(),
                    Some(ours) if keyword == "properties" => schemas(ours, theirs)?,
                    Some(ours) => (ours == theirs).then(|| ours.clone())?,
                };
                merged.insert(name.clone(), together);
            }
            Some(Value::Object(merged))
        }
        "items" | "additionalProperties" => schemas(ours, theirs),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            Some(if ours.as_f64()? >= theirs.as_f64()? { ours } else { theirs }.clone())
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            Some(if ours.as_f64()? <= theirs.as_f64()? { ours } else { theirs }.clone())
        }
        "uniqueItems" => Some(Value::Bool(true)),
        _ => None,
    }
}

/// Two schemas of any form.
fn schemas(ours: &Value, theirs: &Value) -> Option<Value> {
    match (ours, theirs) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => Some(other.clone()),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Some(Value::Bool(false)),
        (Value::Object(ours), Value::Object(theirs)) if !refers(ours) && !refers(theirs) => {
            merge(ours, theirs).ok().map(Value::Object)
        }
        _ => (ours == theirs).then(|| ours.clone()),
    }
}

/// Keywords beside a reference apply together with its target, which is not visible here.
fn refers(schema: &Object) -> bool {
    schema.contains_key("$ref")
}

/// A closed schema forbids the properties that only the other one has; no merged list of properties can express that.
fn closed_objects_agree(first: &Object, second: &Object) -> Result<(), String> {
    let names = |schema: &Object| -> Vec<String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.map(|named| named.keys().cloned().collect()).unwrap_or_default()
    };
    for (closed, other) in [(first, second), (second, first)] {
        let limits =
            closed.get("additionalProperties").is_some_and(|rest| rest != &Value::Bool(true));
        let known = names(closed);
        if limits && names(other).iter().any(|name| !known.contains(name)) {
            return Err("additionalProperties".to_owned());
        }
    }
    Ok(())
}

/// The types that two `type` keywords have in common.
fn common_type(ours: &Value, theirs: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    let (ours, theirs) = (list(ours), list(theirs));
    let admits = |list: &[String], kind: &str| {
        list.iter().any(|own| own == kind || (own == "number" && kind == "integer"))
    };
    let mut common: Vec<String> = ours
        .iter()
        .chain(&theirs)
        .filter(|kind| admits(&ours, kind) && admits(&theirs, kind))
        .cloned()
        .collect();
    common.sort_unstable();
    common.dedup();
    (!common.is_empty()).then(|| super::kinds::type_value(&common))
}

/// Whether a value satisfies a schema's `const` and `enum`; numbers are compared by value.
pub(crate) fn is_listed(value: &Value, schema: &Object) -> bool {
    let constant = schema.get("const").is_none_or(|only| same(only, value));
    let listed = schema
        .get("enum")
        .and_then(Value::as_array)
        .is_none_or(|options| options.iter().any(|option| same(option, value)));
    constant && listed
}

/// Equality as in JSON Schema: `1` equals `1.0`.
fn same(left: &Value, right: &Value) -> bool {
    left == right
        || (kind_of(left) == kind_of(right)
            && left.is_number()
            && left.as_f64() == right.as_f64()
            && left.as_f64().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(first: &Value, second: &Value) -> Result<Value, String> {
        merge(first.as_object().unwrap(), second.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn constraints_are_narrowed_and_the_first_annotation_stays() {
        let first = json!({"type": "number", "minimum": 1, "description": "ours"});
        let second = json!({"type": ["integer", "null"], "minimum": 3, "description": "theirs"});
        assert_eq!(
            merged(&first, &second).unwrap(),
            json!({"type": "integer", "minimum": 3, "description": "ours"})
        );
    }

    #[test]
    fn properties_and_required_are_united() {
        let first = json!({"properties": {"a": {"type": "string"}}, "required": ["a"]});
        let second = json!({"properties": {"a": {"minLength": 1}, "b": true}, "required": ["b"]});
        assert_eq!(
            merged(&first, &second).unwrap(),
            json!({
                "properties": {"a": {"type": "string", "minLength": 1}, "b": true},
                "required": ["a", "b"],
            })
        );
    }

    #[test]
    fn the_keyword_that_cannot_be_merged_is_named() {
        let conflict = |first, second| merged(&first, &second).unwrap_err();
        assert_eq!(conflict(json!({"type": "string"}), json!({"type": "array"})), "type");
        assert_eq!(conflict(json!({"pattern": "a"}), json!({"pattern": "b"})), "pattern");
        assert_eq!(
            conflict(
                json!({"properties": {"a": true}, "additionalProperties": false}),
                json!({"properties": {"b": true}})
            ),
            "additionalProperties"
        );
    }
}
