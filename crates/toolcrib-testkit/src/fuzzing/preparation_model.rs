//! The model for preparing arguments, written in the simplest way over `serde_json::Value`: the real code, which works
//! on text, is compared with it.

use serde_json::{Value, json};
use toolcrib_tool::{Injection, ToolDefinition};

/// The largest whole number up to which every whole number is a double: 2^53.
const EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

const INJECTED: &str = "project_id";
const DECLARED_PRIVATE: &str = "_trace";
const EMPTY_AS_ABSENT: &str = "label";

/// A tool whose definition uses every feature of preparation and validation.
pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::builder("fuzzed")
        .description("Answers with its arguments.")
        .input_schema(json!({
            "properties": {
                "text": {"type": "string", "minLength": 1, "maxLength": 12, "pattern": "^[^x]"},
                "count": {"type": "integer", "minimum": -5, "maximum": 9_007_199_254_740_993_u64},
                "ratio": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
                "kind": {"enum": ["a", "é", 1, null, {"x": [1]}], "default": "a"},
                "list": {
                    "type": "array",
                    "items": {"type": ["integer", "string", "array"]},
                    "uniqueItems": true,
                    "maxItems": 6,
                },
                "nested": {
                    "type": "object",
                    "properties": {
                        "level": {"type": "integer", "default": 3},
                        "deep": {"properties": {"end": {"default": [1.5]}}},
                    },
                    "propertyNames": {"maxLength": 5},
                    "maxProperties": 4,
                },
                "filled": {
                    "default": {},
                    "properties": {"level": {"type": "integer", "default": 2.0}},
                },
                "either": {"oneOf": [{"type": "boolean"}, {"type": "integer"}, {"minimum": 10}]},
                "label": {"type": "string", "default": "none"},
                "_trace": {"const": {"a": 1}},
                "project_id": {"type": "string"},
            },
            "patternProperties": {"^x-": true},
            "required": ["project_id"],
            "additionalProperties": false,
        }))
        .injections(vec![Injection::new(INJECTED, "project").optional()])
        .empty_as_absent(vec![EMPTY_AS_ABSENT.to_owned()])
        .build()
        .expect("a valid definition")
}

/// The arguments as the tool should get them.
pub(super) fn prepared(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    if let Some(root) = arguments.as_object_mut() {
        root.retain(|name, value| {
            let private = name.starts_with('_') && name != DECLARED_PRIVATE;
            let absent = name == EMPTY_AS_ABSENT && value == "";
            name != INJECTED && !private && !absent
        });
        root.entry("kind").or_insert_with(|| "a".into());
        root.entry(EMPTY_AS_ABSENT).or_insert_with(|| "none".into());
        let filled = root.entry("filled").or_insert_with(|| json!({}));
        if let Some(filled) = filled.as_object_mut() {
            filled.entry("level").or_insert_with(|| 2.into());
        }
        if let Some(nested) = root.get_mut("nested").and_then(Value::as_object_mut) {
            nested.entry("level").or_insert_with(|| 3.into());
            if let Some(deep) = nested.get_mut("deep").and_then(Value::as_object_mut) {
                deep.entry("end").or_insert_with(|| json!([1.5]));
            }
        }
    }
    with_whole_numbers(arguments)
}

/// Replaces doubles that are whole numbers within ±2^53 with integers.
pub(super) fn with_whole_numbers(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(with_whole_numbers).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, with_whole_numbers(value))).collect()
        }
        Value::Number(number) if number.is_f64() => {
            let double = number.as_f64().expect("is_f64");
            if double.fract() == 0.0 && double.abs() <= EXACT_WHOLE {
                #[expect(clippy::cast_possible_truncation, reason = "whole and within ±2^53")]
                let whole = double as i64;
                whole.into()
            } else {
                Value::Number(number)
            }
        }
        other => other,
    }
}
