//! JSON Schemas of Rust types, in a form that suits models and providers.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The JSON Schema (draft 2020-12) of a Rust type, without the `$schema` and `title` keys.
///
/// An object schema that says nothing about unknown properties refuses them, so that a misspelt argument is an error
/// with a suggestion and not silently ignored. An optional property (`Option<T>`) has the schema of `T`: a model omits
/// it to give no value. Where `null` is a value of its own (in lists, for example) the schema offers both with `anyOf`,
/// because strict readers refuse a list of types.
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
    for_each_schema(&mut schema, &mut drop_null_of_optionals);
    for_each_schema(&mut schema, &mut name_one_type);
    schema
}

/// Keywords whose value is a schema.
const ONE: [&str; 9] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
const NAMED: [&str; 4] = ["$defs", "dependentSchemas", "patternProperties", "properties"];

/// Applies `change` to a schema and every schema in it, outer ones first.
fn for_each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(object) = schema.as_object_mut() else { return };
    change(object);
    for (keyword, value) in object {
        let keyword = keyword.as_str();
        match value {
            Value::Array(several) if LISTED.contains(&keyword) => {
                for one in several.iter_mut() {
                    for_each_schema(one, change);
                }
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                named.values_mut().for_each(|one| for_each_schema(one, change));
            }
            one if ONE.contains(&keyword) => for_each_schema(one, change),
            _ => {}
        }
    }
}

/// An optional property is omitted when it has no value, so its schema need not allow `null`, which several providers
/// refuse.
fn drop_null_of_optionals(object: &mut Map<String, Value>) {
    let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties {
            if !required.iter().any(|own| own == name) {
                drop_null(property);
            }
        }
    }
}

/// Replaces a list of types with `anyOf`, one branch for each. Annotations stay outside.
fn name_one_type(object: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = object.get("type") else { return };
    if object.contains_key("anyOf") {
        return;
    }
    let types = types.clone();
    let outside = ["$defs", "default", "deprecated", "description", "examples", "title"];
    let (outer, inner): (Map<_, _>, Map<_, _>) =
        std::mem::take(object).into_iter().partition(|(key, _)| outside.contains(&key.as_str()));
    let branch = |kind: Value| {
        if kind == "null" {
            return json!({"type": "null"});
        }
        let mut branch = inner.clone();
        if let Some(Value::Array(options)) = branch.get_mut("enum") {
            options.retain(|option| !option.is_null());
        }
        branch.insert("type".to_owned(), kind);
        Value::Object(branch)
    };
    *object = outer;
    object.insert("anyOf".to_owned(), types.into_iter().map(branch).collect());
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
            // The property's own annotations precede those of the type.
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
        #[serde(default)]
        several: Vec<Inline>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[schemars(inline)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inline {
        /// Which line.
        #[schemars(range(min = 1))]
        line: Option<usize>,
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
        let line = &schema["properties"]["several"]["items"]["properties"]["line"];
        assert_eq!((&line["type"], &line["minimum"]), (&json!("integer"), &json!(1)));
        assert_eq!(schema["required"], json!(["places"]));
    }

    #[test]
    fn a_value_that_may_be_null_has_one_type_in_each_branch() {
        let schema = schema_for::<Args>();
        assert_eq!(
            schema["properties"]["places"]["items"],
            json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]})
        );
        let mut bounded = json!({
            "type": ["string", "null"],
            "description": "Which.",
            "enum": ["a", null],
        });
        for_each_schema(&mut bounded, &mut name_one_type);
        assert_eq!(
            bounded,
            json!({
                "description": "Which.",
                "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}],
            })
        );
    }
}
