//! Converts arguments from a provider's form of the schema back to the tool's own.

use serde_json::Value;

use crate::export::gemini::is_sent_as_text;
use crate::report::{Refused, Walk};
use crate::schema::kinds::{is_of, kinds};
use crate::schema::merge::is_listed;
use crate::schema::reference::resolve;
use crate::schema::shape::{Shape, shape};
use crate::schema::tidy::input_schema;
use crate::schema::{Object, required, size};
use crate::strict::admits_null;

/// How many schemas are read for each value of the arguments before the rest is left unchanged: every value is compared
/// with every branch of every union around it.
const SCHEMAS_PER_VALUE: usize = 100;

/// Removes the nulls that strict mode forces a model to send for optional properties, so that the
/// arguments fit the tool's own `input_schema` again.
///
/// A `null` that the tool's own schema allows is kept. If a value fits several branches of an `anyOf`, the first one
/// decides; patterns and formats are ignored. Linear in the schema and the arguments. Use it only for targets that need
/// it ([`Target::is_strict`]).
///
/// ```
/// use serde_json::json;
/// use toolcrib_wire::from_strict;
///
/// let schema = json!({
///     "type": "object",
///     "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
///     "required": ["city"],
/// });
/// let sent = json!({"city": "Graz", "days": null});
/// assert_eq!(from_strict(sent, &schema), json!({"city": "Graz"}));
/// ```
///
/// [`Target::is_strict`]: crate::Target::is_strict
#[must_use]
pub fn from_strict(arguments: Value, input_schema: &Value) -> Value {
    restored(arguments, input_schema, true)
}

/// Parses the JSON text that Gemini sends where the tool's own `input_schema` wants an object with arbitrary
/// properties. Anything else, including text that is not such JSON, stays unchanged.
///
/// ```
/// use serde_json::json;
/// use toolcrib_wire::from_gemini;
///
/// let schema = json!({"type": "object", "properties": {"labels": {"type": "object"}}});
/// let sent = json!({"labels": "{\"team\": \"blue\"}"});
/// assert_eq!(from_gemini(sent, &schema), json!({"labels": {"team": "blue"}}));
/// ```
#[must_use]
pub fn from_gemini(arguments: Value, input_schema: &Value) -> Value {
    restored(arguments, input_schema, false)
}

fn restored(mut arguments: Value, schema: &Value, strict: bool) -> Value {
    // An unreadable schema was never exported, so there is nothing to convert.
    if let Ok(root) = input_schema(schema, &mut Walk::default()) {
        let mut walk = Walk::with_extra(size(&arguments).saturating_mul(SCHEMAS_PER_VALUE));
        let restore = StrictConversion { root: &root, strict };
        // If an endless schema leaves something unconverted, validation refuses it.
        let _ = restore.value(&mut arguments, &root, &mut walk);
    }
    arguments
}

struct StrictConversion<'a> {
    root: &'a Value,
    strict: bool,
}

impl StrictConversion<'_> {
    fn value(&self, value: &mut Value, schema: &Value, walk: &mut Walk) -> Result<(), Refused> {
        walk.within(&[], |walk| match shape(schema, self.root, walk)? {
            Shape::Plain(object) => self.plain(value, &object, walk),
            Shape::Reference { reference, .. } => match resolve(self.root, &reference) {
                Some(target) => self.value(value, target, walk),
                None => Ok(()),
            },
            Shape::Union { branches, .. } => {
                for branch in &branches {
                    if self.fits(value, branch, walk)? {
                        return self.value(value, branch, walk);
                    }
                }
                Ok(())
            }
            Shape::Bool(_) => Ok(()),
        })
    }

    fn plain(&self, value: &mut Value, schema: &Object, walk: &mut Walk) -> Result<(), Refused> {
        if !self.strict
            && let Value::String(text) = value
            && is_sent_as_text(schema)
            && let Ok(read @ Value::Object(_)) = serde_json::from_str(text)
        {
            *value = read;
            return Ok(());
        }
        match value {
            Value::Object(members) => self.members(members, schema, walk),
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    for item in items {
                        self.value(item, schema, walk)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn members(
        &self,
        members: &mut Object,
        schema: &Object,
        walk: &mut Walk,
    ) -> Result<(), Refused> {
        let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
        let required = required(schema);
        if self.strict {
            members.retain(|name, member| {
                let optional = !required.contains(&name.as_str());
                let known = properties.get(name);
                let forced = known.is_some_and(|property| !admits_null(property, self.root));
                !(member.is_null() && optional && forced)
            });
        }
        for (name, member) in members {
            if let Some(property) = properties.get(name) {
                self.value(member, property, walk)?;
            }
        }
        Ok(())
    }

    /// Whether the value, as the model sent it, fits the provider's form of the schema.
    fn fits(&self, value: &Value, schema: &Value, walk: &mut Walk) -> Result<bool, Refused> {
        walk.within(&[], |walk| match shape(schema, self.root, walk)? {
            Shape::Bool(all) => Ok(all),
            Shape::Reference { reference, .. } => match resolve(self.root, &reference) {
                Some(target) => self.fits(value, target, walk),
                None => Ok(false),
            },
            Shape::Union { branches, .. } => {
                for branch in &branches {
                    if self.fits(value, branch, walk)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Shape::Plain(object) => self.fits_plain(value, &object, walk),
        })
    }

    fn fits_plain(&self, value: &Value, schema: &Object, walk: &mut Walk) -> Result<bool, Refused> {
        if !self.strict && value.is_string() && is_sent_as_text(schema) {
            return Ok(true);
        }
        let kinds = kinds(schema);
        if !(kinds.is_empty() || is_of(value, &kinds)) || !is_listed(value, schema) {
            return Ok(false);
        }
        match value {
            Value::Object(members) => self.fits_object(members, schema, walk),
            Value::Array(items) => {
                if !within(items.len(), schema, "minItems", "maxItems") {
                    return Ok(false);
                }
                let Some(schema) = schema.get("items") else { return Ok(true) };
                for item in items {
                    if !self.fits(item, schema, walk)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Value::Number(number) => Ok(number.as_f64().is_none_or(|n| in_range(n, schema))),
            _ => Ok(true),
        }
    }

    fn fits_object(
        &self,
        members: &Object,
        schema: &Object,
        walk: &mut Walk,
    ) -> Result<bool, Refused> {
        let empty = Object::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = required(schema);
        // In strict form every property is present and there are no others; otherwise the required ones are present.
        let complete = if self.strict {
            properties
                .iter()
                .all(|(name, schema)| members.contains_key(name) || schema == &Value::Bool(false))
        } else {
            required.iter().all(|name| members.contains_key(*name))
        };
        if !complete {
            return Ok(false);
        }
        for (name, member) in members {
            let fits = match properties.get(name) {
                None => !self.strict,
                Some(property) => {
                    let optional = !required.contains(&name.as_str());
                    (self.strict && optional && member.is_null())
                        || self.fits(member, property, walk)?
                }
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn within(length: usize, schema: &Object, least: &str, most: &str) -> bool {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    bound(least).is_none_or(|least| length >= least)
        && bound(most).is_none_or(|most| length <= most)
}

fn in_range(number: f64, schema: &Object) -> bool {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    bound("minimum").is_none_or(|least| number >= least)
        && bound("maximum").is_none_or(|most| number <= most)
        && bound("exclusiveMinimum").is_none_or(|least| number > least)
        && bound("exclusiveMaximum").is_none_or(|most| number < most)
}
