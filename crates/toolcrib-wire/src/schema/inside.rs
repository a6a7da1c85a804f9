//! Visits the direct subschemas of a schema of any draft.

use serde_json::Value;

use super::Object;

/// Keywords whose values are data and contain no schemas.
pub(crate) const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];

/// Keywords that contain named schemas, including those of older drafts.
const NAMED: [&str; 6] =
    ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"];

/// Visits every direct subschema. An unknown keyword may contain schemas, too, and a property may have any keyword's
/// name.
pub(crate) fn each_inside(object: &mut Object, visit: &mut dyn FnMut(&mut Value)) {
    for (keyword, inner) in object.iter_mut() {
        match inner {
            _ if DATA.contains(&keyword.as_str()) => {}
            Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                named.values_mut().for_each(&mut *visit);
            }
            Value::Object(_) => visit(inner),
            Value::Array(several) => several.iter_mut().for_each(&mut *visit),
            _ => {}
        }
    }
}
