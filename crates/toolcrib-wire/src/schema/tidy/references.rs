//! Refuses references without a target.

use serde_json::Value;

use super::{LIST, NAMED, ONE};
use crate::report::{Reason, Refused, Walk};
use crate::schema::reference::resolve;
use crate::schema::sorted;

/// No provider fetches external schemas, so every reference must lead into the schema.
pub(super) fn check(schema: &Value, root: &Value, walk: &mut Walk) -> Result<(), Refused> {
    let Some(object) = schema.as_object() else { return Ok(()) };
    for (keyword, value) in sorted(object) {
        match value {
            Value::String(target) if keyword == "$ref" && resolve(root, target).is_none() => {
                return Err(walk.refuse(Reason::Reference(target.clone())));
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                for (name, inner) in sorted(named) {
                    walk.within(&[keyword, name], |walk| check(inner, root, walk))?;
                }
            }
            Value::Array(several) if LIST.contains(&keyword) => {
                for (index, inner) in several.iter().enumerate() {
                    walk.within(&[keyword, &index.to_string()], |walk| check(inner, root, walk))?;
                }
            }
            inner if ONE.contains(&keyword) => {
                walk.within(&[keyword], |walk| check(inner, root, walk))?;
            }
            _ => {}
        }
    }
    Ok(())
}
