//! Tool definitions for Anthropic.

use serde_json::{Map, Value};

use crate::declaration::Declaration;
use crate::report::{Reason, Refused, Walk};
use crate::schema::root::plain_root;
use crate::schema::sorted;

/// A tool for the Messages API.
pub(crate) fn tool(
    declaration: &Declaration<'_>,
    name: &str,
    description: &str,
    schema: &Value,
    walk: &mut Walk,
) -> Result<Value, Refused> {
    let schema = plain_root(schema, walk)?;
    check_property_names(&schema, walk)?;
    let mut tool = Map::new();
    tool.insert("name".to_owned(), name.into());
    if !description.is_empty() {
        tool.insert("description".to_owned(), description.into());
    }
    tool.insert("input_schema".to_owned(), schema);
    if !declaration.input_examples.is_empty() {
        tool.insert("input_examples".to_owned(), declaration.input_examples.into());
    }
    Ok(Value::Object(tool))
}

/// Property names must match `^[a-zA-Z0-9_.-]{1,64}$`; otherwise Anthropic refuses the whole request.
fn check_property_names(schema: &Value, walk: &mut Walk) -> Result<(), Refused> {
    let Some(object) = schema.as_object() else { return Ok(()) };
    for (keyword, inner) in sorted(object) {
        match (keyword, inner) {
            ("default" | "const" | "enum" | "examples" | "example", _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in sorted(properties) {
                    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
                    if !(1..=64).contains(&name.len()) || !name.chars().all(plain) {
                        return Err(walk.refuse(Reason::PropertyName(name.to_owned())));
                    }
                    walk.within(&["properties", name], |walk| {
                        check_property_names(property, walk)
                    })?;
                }
            }
            ("$defs" | "definitions", Value::Object(named)) => {
                for (name, definition) in sorted(named) {
                    walk.within(&[keyword, name], |walk| check_property_names(definition, walk))?;
                }
            }
            (_, Value::Array(several)) => {
                for (index, one) in several.iter().enumerate() {
                    walk.within(&[keyword, &index.to_string()], |walk| {
                        check_property_names(one, walk)
                    })?;
                }
            }
            (_, Value::Object(_)) => {
                walk.within(&[keyword], |walk| check_property_names(inner, walk))?;
            }
            _ => {}
        }
    }
    Ok(())
}
