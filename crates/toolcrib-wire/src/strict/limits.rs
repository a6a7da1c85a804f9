//! The size limits of a strict schema: OpenAI's guide "Structured Outputs", "Supported schemas".

use serde_json::Value;

use crate::report::{Reason, Refused, Walk};
use crate::schema::kinds::kinds;

/// Nested objects and lists, including the root.
const MAX_DEPTH: usize = 10;
/// Properties of all objects together.
const MAX_PROPERTIES: usize = 5000;
/// Values of all enums together.
const MAX_ENUM_VALUES: usize = 1000;
/// Characters of property names, definition names, enum and const values together.
const MAX_NAME_CHARS: usize = 120_000;
/// The number of values above which [`MAX_LONG_ENUM_CHARS`] applies to an enum.
const LONG_ENUM: usize = 250;
/// Characters of the values of one long enum.
const MAX_LONG_ENUM_CHARS: usize = 15_000;

/// Refuses a strict schema that exceeds a limit.
pub(super) fn check(schema: &Value, walk: &Walk) -> Result<(), Refused> {
    Size::default().measure(schema, 0, walk)
}

/// The size of a strict schema, as OpenAI counts it.
#[derive(Default)]
struct Size {
    properties: usize,
    enum_values: usize,
    name_chars: usize,
}

impl Size {
    fn measure(&mut self, schema: &Value, depth: usize, walk: &Walk) -> Result<(), Refused> {
        let Some(object) = schema.as_object() else { return Ok(()) };
        let over = |what, limit| Err(walk.refuse(Reason::Limit { what, limit }));
        let kinds = kinds(object);
        let nests = kinds.iter().any(|kind| kind == "object" || kind == "array");
        let depth = depth + usize::from(nests);
        if depth > MAX_DEPTH {
            return over("levels of objects and lists", MAX_DEPTH);
        }
        let options = object.get("enum").and_then(Value::as_array);
        let chars: usize = options.into_iter().flatten().map(chars).sum();
        self.name_chars += chars + object.get("const").map(self::chars).unwrap_or_default();
        let count = options.map_or(0, Vec::len);
        self.enum_values += count;
        if count > LONG_ENUM && chars > MAX_LONG_ENUM_CHARS {
            return over("characters in one long enum", MAX_LONG_ENUM_CHARS);
        }
        for (keyword, nested) in [("properties", depth), ("$defs", 0)] {
            for (name, inner) in
                object.get(keyword).and_then(Value::as_object).into_iter().flatten()
            {
                self.properties += usize::from(keyword == "properties");
                self.name_chars += name.chars().count();
                self.measure(inner, nested, walk)?;
            }
        }
        if let Some(items) = object.get("items") {
            self.measure(items, depth, walk)?;
        }
        for branch in object.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.measure(branch, depth, walk)?;
        }
        if self.properties > MAX_PROPERTIES {
            return over("properties", MAX_PROPERTIES);
        }
        if self.enum_values > MAX_ENUM_VALUES {
            return over("enum values", MAX_ENUM_VALUES);
        }
        if self.name_chars > MAX_NAME_CHARS {
            return over("characters in names and enum values", MAX_NAME_CHARS);
        }
        Ok(())
    }
}

fn chars(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}
