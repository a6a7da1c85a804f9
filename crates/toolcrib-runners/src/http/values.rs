//! Values as parts of a request: complete texts, and JSON with its types.

use serde::Deserialize as _;
use serde_json::Value;
use toolcrib_manifest::template::{Piece, Reference, Template};
use toolcrib_tool::ToolError;

use crate::expansion::text::{Destination, json_of};
use crate::expansion::values::{CallValues, refuse_control_in_context};

/// JSON as it is sent, and as data for comparison and display. Only the text keeps every number as written.
pub(crate) struct JsonPart {
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl From<Value> for JsonPart {
    fn from(value: Value) -> Self {
        Self { text: value.to_string(), value }
    }
}

impl CallValues<'_> {
    /// A value with its JSON type and checked strings. `None` if an optional value is absent.
    pub(crate) fn json(
        &self,
        reference: &Reference,
        destination: Destination,
    ) -> Result<Option<JsonPart>, ToolError> {
        match reference {
            Reference::Arg(name) => {
                let Some(argument) = self.argument(name) else { return Ok(None) };
                let value = Value::deserialize(argument)
                    .map_err(|error| ToolError::internal(error.to_string()))?;
                each_text(&value, &mut |text| self.refuse_control(name, text, destination))?;
                Ok(Some(JsonPart { text: json_of(argument), value }))
            }
            Reference::Ctx(name) => {
                let Some(value) = self.context_value(name)? else { return Ok(None) };
                each_text(&value, &mut |text| refuse_control_in_context(name, text, destination))?;
                Ok(Some(value.into_owned().into()))
            }
            Reference::Env(_) | Reference::Secret(_) => {
                Ok(self.text(reference, destination)?.map(|text| Value::String(text).into()))
            }
        }
    }

    /// A template with its values filled in. `None` if an optional value is absent.
    pub(crate) fn fill(
        &self,
        template: &Template,
        destination: Destination,
    ) -> Result<Option<String>, ToolError> {
        let mut filled = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Literal(literal) => filled.push_str(literal),
                Piece::Reference(reference) => {
                    let Some(value) = self.text(reference, destination)? else { return Ok(None) };
                    filled.push_str(&value);
                }
            }
        }
        Ok(Some(filled))
    }
}

/// Calls `look` for every string in a value, including keys.
fn each_text(
    value: &Value,
    look: &mut dyn FnMut(&str) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().try_for_each(|item| each_text(item, look)),
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            look(key)?;
            each_text(member, look)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}
