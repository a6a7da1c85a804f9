//! Files with a schema of their own, such as `config.yml`: checked whole, then read into a type.

use jsonschema::PatternOptions;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::diagnostic::{Diagnostic, Findings, Severity};
use crate::document::{Format, Node, NodeValue, parse};
use crate::source::without_bom;
use crate::violation::Subject;

/// Reads a YAML or TOML text (by the file's name) into a type.
///
/// Everything that is wrong is reported at once, with its place: the text is checked against the
/// type's own JSON Schema before anything is deserialised. Keys the type does not have are errors,
/// also where it does not say `deny_unknown_fields`. An empty text is an empty mapping.
///
/// ```
/// use toolcrib_manifest::{decode, units::HumanDuration};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Config {
///     timeout: HumanDuration,
/// }
///
/// assert!(decode::<Config>("config.yml", "timeout: 30s").is_ok());
/// let problems = decode::<Config>("config.yml", "timout: 30s\n").err().unwrap_or_default();
/// assert_eq!(problems[0].code, "unknown-key");
/// assert_eq!(problems[0].help.as_deref(), Some("did you mean `timeout`?"));
/// ```
///
/// # Errors
/// The problems of the file, in the order of the text; render them with the same `file` and `text`.
pub fn decode<T: DeserializeOwned + JsonSchema>(
    file: &str,
    text: &str,
) -> Result<T, Vec<Diagnostic>> {
    let mut findings = Findings::new(without_bom(text));
    let decoded =
        parse(Format::of(file), &mut findings).and_then(|node| decode_node(&node, &mut findings));
    match decoded {
        Some(value) if !findings.has_errors() => Ok(value),
        _ => Err(findings.finish()),
    }
}

fn decode_node<T: DeserializeOwned + JsonSchema>(
    node: &Node,
    findings: &mut Findings<'_>,
) -> Option<T> {
    let value = match &node.value {
        NodeValue::Null => Value::Object(Map::new()),
        _ => node.to_value(),
    };
    // Not `toolcrib_tool::schema_for`: that one is for arguments, where null is not worth offering.
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = Value::from(generator.into_root_schema_for::<T>());
    close(&mut schema);
    let start = 0..0;
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex()).offline();
    match options.build(&schema) {
        Ok(validator) if !validator.is_valid(&value) => {
            let severity = Severity::Error;
            let subject = Subject { node, schema: &schema, code: "", severity, prefix: "" };
            subject.report(validator.iter_errors(&value), findings);
            return None;
        }
        Ok(_) => {}
        Err(error) => {
            let message = format!("the type's own schema cannot be used: {error}");
            findings.add(Diagnostic::error("invalid-value", &start, message));
            return None;
        }
    }
    serde_json::from_value(value)
        .map_err(|error| {
            findings.add(Diagnostic::error("invalid-value", &start, error.to_string()));
        })
        .ok()
}

/// Makes every object schema with properties refuse the ones it does not name.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(object) => {
            object.values_mut().for_each(close);
            let open = [
                "additionalProperties",
                "unevaluatedProperties",
                "$ref",
                "oneOf",
                "anyOf",
                "allOf",
            ];
            let has_properties = object.get("properties").is_some_and(Value::is_object);
            if has_properties && !open.iter().any(|keyword| object.contains_key(*keyword)) {
                object.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        _ => {}
    }
}
