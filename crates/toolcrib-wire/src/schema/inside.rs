//! The schemas right inside a schema, whatever its draft.

use serde_json::Value;

use super::Object;

/// Keywords whose values are data, in which nothing is a schema.
pub(crate) const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];

/// Keywords that hold named schemas; those of older drafts are among them.
const NAMED: [&str; 6] =
    ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies"];

/// Visits every schema right inside the object. A keyword that nobody knows may hold schemas too,
/// and a property may have any keyword's name.
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
