//! The JSON types that a schema accepts, explicitly or implicitly.

use serde_json::Value;

use super::Object;

/// The seven words of `type`.
pub(crate) const KINDS: [&str; 7] =
    ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The types that a schema names or, without `type`, to which its other keywords apply. Empty if it has no restriction.
pub(crate) fn kinds(schema: &Object) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(one)) => return vec![one.clone()],
        Some(Value::Array(several)) => {
            return several.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        _ => {}
    }
    let values = schema.get("enum").and_then(Value::as_array).cloned();
    if let Some(values) = values.or_else(|| schema.get("const").map(|only| vec![only.clone()])) {
        let mut kinds: Vec<String> = values.iter().map(|v| kind_of(v).to_owned()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.iter().any(|kind| kind == "number") {
            kinds.retain(|kind| kind != "integer");
        }
        return kinds;
    }
    let speaks_of = |keywords: &[&str]| keywords.iter().any(|key| schema.contains_key(*key));
    let implied = [
        ("object", &["properties", "required", "additionalProperties", "patternProperties"][..]),
        ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"][..]),
        ("string", &["minLength", "maxLength", "pattern", "format"][..]),
        (
            "number",
            &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"][..],
        ),
    ];
    implied
        .iter()
        .filter(|(_, keywords)| speaks_of(keywords))
        .map(|(kind, _)| (*kind).to_owned())
        .collect()
}

/// The type of a value; a whole number is an `integer`, however it is written.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => {
            let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            if number.is_i64() || number.is_u64() || whole { "integer" } else { "number" }
        }
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether the value is of one of the types.
pub(crate) fn is_of(value: &Value, kinds: &[String]) -> bool {
    let kind = kind_of(value);
    kinds.iter().any(|admitted| admitted == kind || (admitted == "number" && kind == "integer"))
}

/// The shortest `type` value for these types.
pub(crate) fn type_value(kinds: &[String]) -> Value {
    match kinds {
        [only] => Value::from(only.as_str()),
        several => Value::from(several.to_vec()),
    }
}
