//! JSON Schemas of Rust types, as models and providers want them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of a Rust type, without the `$schema` and `title` keys.
///
/// An object schema that does not say what happens to unknown properties refuses them, so that a
/// misspelt argument is an error with a suggestion and not a silently ignored value. An optional
/// property (`Option<T>`) has the schema of `T`: to leave it out is how to give no value.
pub fn schema_for<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Value::from(generator.into_root_schema_for::<T>());
    if let Some(root) = schema.as_object_mut() {
        root.remove("$schema");
        root.remove("title");
        let open =
            ["additionalProperties", "unevaluatedProperties", "$ref", "oneOf", "anyOf", "allOf"];
        if root.contains_key("properties") && !open.iter().any(|key| root.contains_key(*key)) {
            root.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    drop_null_of_optionals(&mut schema);
    schema
}

/// An optional property is left out when it has no value, so its schema need not allow `null`,
/// which several providers refuse.
fn drop_null_of_optionals(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties {
            if !required.iter().any(|own| own == name) {
                drop_null(property);
            }
        }
    }
    for (_, inner) in object {
        match inner {
            Value::Array(several) => several.iter_mut().for_each(drop_null_of_optionals),
            Value::Object(named) => named.values_mut().for_each(drop_null_of_optionals),
            _ => {}
        }
    }
}

fn drop_null(property: &mut Value) {
    let Some(object) = property.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(options)) = object.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
        branches.retain(|branch| branch.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            // The property's own words (its description) stand before those of the type.
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Args {
        /// How many.
        count: Option<u8>,
        /// Where.
        place: Option<Place>,
        must: Option<bool>,
        places: Vec<Option<bool>>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Place {
        floor: Option<i64>,
    }

    #[test]
    fn optional_properties_do_not_ask_for_null() {
        let schema = schema_for::<Args>();
        assert_eq!(schema["properties"]["count"]["type"], "integer");
        assert_eq!(
            schema["properties"]["place"],
            json!({"$ref": "#/$defs/Place", "description": "Where."})
        );
        assert_eq!(schema["$defs"]["Place"]["properties"]["floor"]["type"], "integer");
        assert_eq!(schema["properties"]["places"]["items"]["type"], json!(["boolean", "null"]));
        assert_eq!(schema["required"], json!(["places"]));
    }
}
