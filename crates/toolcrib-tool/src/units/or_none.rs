//! Settings that can be switched off with `none`.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// The word that switches a setting off.
pub const NONE: &str = "none";

/// The schema of a setting that is a `T` or `none`, for `#[schemars(with = "OrNone<T>")]` beside `#[serde(with =
/// "or_none")]`.
#[derive(Debug)]
pub struct OrNone<T>(PhantomData<T>);

/// Writes a missing value as `none`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Serialize, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => serializer.serialize_str(NONE),
    }
}

/// Reads `none` as a missing value. Null is refused: in a file it comes from a value that was commented out, which must
/// not lift a limit.
///
/// # Errors
/// Those of `T`.
pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(word) if word == NONE => Ok(None),
        value => T::deserialize(value).map(Some).map_err(D::Error::custom),
    }
}

impl<T: JsonSchema> JsonSchema for OrNone<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}_or_none", T::schema_name()).into()
    }

    /// The schema of `T`, extended by `none`. It stays one flat schema, so that messages about a wrong value can say
    /// what was expected.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let own = schema.get("type").cloned().unwrap_or_default();
        let kinds: Vec<Value> = match own {
            Value::Array(kinds) => kinds,
            Value::Null => Vec::new(),
            kind => vec![kind],
        };
        let is_text = kinds.contains(&json!("string"));
        if !is_text {
            let kinds = kinds.into_iter().chain([json!("string")]).collect();
            schema.insert("type".to_owned(), Value::Array(kinds));
        }
        let pattern = schema.get("pattern").and_then(Value::as_str).map(str::to_owned);
        match pattern {
            Some(pattern) => {
                schema.insert("pattern".to_owned(), format!("^none$|{pattern}").into());
            }
            None if !is_text => {
                schema.insert("pattern".to_owned(), "^none$".into());
            }
            None => {}
        }
        let expected = schema.get("x-expected").and_then(Value::as_str).map(str::to_owned);
        let expected = expected.or_else(|| match schema.get("minimum").and_then(Value::as_u64) {
            Some(least) if !is_text => Some(format!("a whole number from {least}")),
            _ => None,
        });
        if let Some(expected) = expected {
            schema.insert("x-expected".to_owned(), format!("{expected}, or none").into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Settings {
        #[serde(with = "super")]
        #[schemars(with = "OrNone<NonZeroUsize>")]
        most: Option<NonZeroUsize>,
    }

    #[test]
    fn only_none_switches_a_setting_off_and_it_is_written_as_none() {
        let read = |value: Value| serde_json::from_value::<Settings>(json!({"most": value}));
        assert_eq!(read(json!("none")).unwrap().most, None);
        assert!(read(json!(null)).is_err());
        assert_eq!(read(json!(3)).unwrap().most, NonZeroUsize::new(3));
        assert!(read(json!(0)).is_err() && read(json!("off")).is_err());
        let off = serde_json::to_value(Settings { most: None }).unwrap();
        assert_eq!(off, json!({"most": "none"}));
    }

    #[test]
    fn the_schema_accepts_what_is_parsed() {
        let schema = OrNone::<NonZeroUsize>::json_schema(&mut SchemaGenerator::default());
        assert_eq!(schema.get("type"), Some(&json!(["integer", "string"])));
        assert_eq!(schema.get("pattern"), Some(&json!("^none$")));
        assert_eq!(schema.get("x-expected"), Some(&json!("a whole number from 1, or none")));
    }
}
