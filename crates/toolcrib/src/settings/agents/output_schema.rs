//! The JSON Schema that the answer of an agent has to match (`agents.<name>.output_schema`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The JSON Schema of an agent's answer, which can be compiled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
#[schemars(with = "Map<String, Value>")]
pub struct OutputSchema(Value);

impl OutputSchema {
    /// The schema.
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

impl TryFrom<Map<String, Value>> for OutputSchema {
    type Error = String;

    fn try_from(schema: Map<String, Value>) -> Result<Self, String> {
        let schema = Value::Object(schema);
        if let Some(reference) = inner_reference(&schema) {
            return Err(format!(
                "the reference `{reference}` into the schema itself is not possible here: write what it refers to in its \
                 place"
            ));
        }
        // The model gives the answer as this argument of a call, so references into the schema do not reach it.
        let arguments = json!({"type": "object", "properties": {"result": schema}});
        let options =
            jsonschema::options().with_pattern_options(jsonschema::PatternOptions::regex());
        match options.offline().build(&arguments) {
            Ok(_) => Ok(Self(schema)),
            Err(error) => {
                let path = error.instance_path().to_string();
                let at = path.strip_prefix("/properties/result").filter(|at| !at.is_empty());
                let at = at.map(|at| format!(" at `{at}`")).unwrap_or_default();
                Err(format!("this is no usable JSON Schema{at}: {error}"))
            }
        }
    }
}

/// A reference of a schema to a part of itself.
fn inner_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(entries) => {
            let own =
                entries.get("$ref").and_then(Value::as_str).filter(|one| one.starts_with('#'));
            own.or_else(|| entries.values().find_map(inner_reference))
        }
        Value::Array(items) => items.iter().find_map(inner_reference),
        _ => None,
    }
}

impl From<OutputSchema> for Map<String, Value> {
    fn from(schema: OutputSchema) -> Self {
        match schema.0 {
            Value::Object(schema) => schema,
            _ => Self::new(),
        }
    }
}
