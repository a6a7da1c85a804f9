//! Converts `key=value` pairs of the command line to JSON arguments, according to the tool's
//! schema.

use std::borrow::Cow;

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use toolcrib::tool::{canonical_json, exact};

/// Splits a `key=value` pair of the context; the value is parsed as JSON if possible, else it is
/// text.
pub(crate) fn context_pair(pair: &str) -> anyhow::Result<(String, Value)> {
    let (key, text) = split(pair, "--ctx")?;
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    if !value.is_string() && matches!(exact::protect(text), Cow::Owned(_)) {
        bail!(
            "--ctx {key}: {text} has a number beyond 64 bits or double precision, which would not stay \
             the same: write it in quotation marks, as a string"
        );
    }
    Ok((key.to_owned(), value))
}

/// Builds the JSON text of an arguments object from `key=value` pairs. Numbers stay exact.
///
/// A property whose schema allows only strings gets the text as it is. Any other property gets JSON
/// if the text is JSON (`lines=50`, `deep=true`), and else the text, so that validation reports
/// what is wrong with it. A list property may be given several times.
pub(crate) fn from_pairs(pairs: &[String], schema: &Value) -> anyhow::Result<String> {
    let mut arguments = Map::new();
    for pair in pairs {
        let (key, text) = split(pair, "an argument")?;
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        let is_list = property.is_some_and(|property| accepts(property, "array"));
        match arguments.get_mut(key) {
            None if is_list && !text.starts_with('[') => {
                let items = property.and_then(|property| property.get("items"));
                arguments.insert(key.to_owned(), Value::Array(vec![scalar(text, items)]));
            }
            None => {
                arguments.insert(key.to_owned(), scalar(text, property));
            }
            Some(Value::Array(items)) if is_list => {
                let schema = property.and_then(|property| property.get("items"));
                items.push(scalar(text, schema));
            }
            Some(_) => bail!("the argument `{key}` is given twice"),
        }
    }
    Ok(canonical_json(&Value::Object(arguments)))
}

fn split<'p>(pair: &'p str, what: &str) -> anyhow::Result<(&'p str, &'p str)> {
    let (key, value) = pair
        .split_once('=')
        .with_context(|| format!("{what} has the form key=value, not {pair:?}"))?;
    if key.is_empty() {
        bail!("{what} has the form key=value, but {pair:?} has no key");
    }
    Ok((key, value))
}

/// A JSON text, with stand-ins for the numbers that a [`Value`] cannot hold.
pub(crate) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(&exact::protect(text))
        .map_err(|error| format!("this is not JSON: {error}"))
}

/// The arguments of a call as a JSON text, read as [`json`] does.
pub(crate) fn object(text: &str) -> Result<Value, String> {
    match json(text)? {
        value @ Value::Object(_) => Ok(value),
        _ => Err("the arguments of a call are a JSON object".to_owned()),
    }
}

/// The value that a person means who types this text for a property. The items of a list are
/// separated by commas, unless it is JSON.
pub(crate) fn typed(text: &str, property: Option<&Value>) -> Value {
    let is = |kind| property.is_some_and(|property| accepts(property, kind));
    if is("array") && !text.trim_start().starts_with('[') {
        let items = property.and_then(|property| property.get("items"));
        return text.split(',').map(|item| scalar(item.trim(), items)).collect();
    }
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" if is("boolean") => Value::Bool(true),
        "n" | "no" if is("boolean") => Value::Bool(false),
        _ => scalar(text, property),
    }
}

fn scalar(text: &str, schema: Option<&Value>) -> Value {
    if schema.is_some_and(|schema| accepts(schema, "string")) {
        return Value::from(text);
    }
    json(text).unwrap_or_else(|_| Value::from(text))
}

/// Whether a schema explicitly allows this type, alone or among others, or lists only values of it.
fn accepts(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(several)) => several.iter().any(|own| own == kind),
        _ => {
            let listed = schema.get("enum").and_then(Value::as_array);
            kind == "string" && listed.is_some_and(|values| values.iter().all(Value::is_string))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pairs(pairs: &[&str]) -> anyhow::Result<Value> {
        let schema = json!({"properties": {
            "path": {"type": "string"},
            "lines": {"type": "integer"},
            "mode": {"enum": ["1", "2"]},
            "names": {"type": "array", "items": {"type": "string"}},
        }});
        let pairs: Vec<_> = pairs.iter().map(|&pair| pair.to_owned()).collect();
        Ok(serde_json::from_str(&from_pairs(&pairs, &schema)?)?)
    }

    #[test]
    fn arguments_are_an_object() {
        assert!(object(r#"{"a": 1}"#).is_ok());
        assert!(object("[]").unwrap_err().contains("object"));
        assert!(object("{").unwrap_err().contains("not JSON"));
    }

    #[test]
    fn the_schema_decides_how_a_value_is_parsed() {
        let arguments =
            pairs(&["path=12", "lines=50", "mode=1", "other=true", "free=a=b"]).unwrap();
        assert_eq!(
            arguments,
            json!({"path": "12", "lines": 50, "mode": "1", "other": true, "free": "a=b"})
        );
    }

    #[test]
    fn numbers_stay_exact_or_are_refused() {
        let pairs =
            ["lines=123456789012345678901".to_owned(), "rate=0.1000000000000000055".to_owned()];
        assert_eq!(
            from_pairs(&pairs, &json!({})).unwrap(),
            r#"{"lines":123456789012345678901,"rate":0.1000000000000000055}"#
        );
        let error = context_pair("id=123456789012345678901").unwrap_err().to_string();
        assert!(error.contains("--ctx id"), "{error}");
        assert_eq!(
            context_pair("id=\"123456789012345678901\"").unwrap().1,
            "123456789012345678901"
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_left_for_the_validator() {
        assert_eq!(pairs(&["lines=many"]).unwrap(), json!({"lines": "many"}));
    }

    #[test]
    fn a_list_may_be_given_item_by_item_or_as_json() {
        assert_eq!(pairs(&["names=1", "names=b"]).unwrap(), json!({"names": ["1", "b"]}));
        assert_eq!(pairs(&["names=[\"a\"]"]).unwrap(), json!({"names": ["a"]}));
    }

    #[test]
    fn a_pair_without_equals_sign_or_given_twice_is_an_error() {
        assert!(pairs(&["path"]).unwrap_err().to_string().contains("key=value"));
        assert!(pairs(&["=x"]).unwrap_err().to_string().contains("no key"));
        assert!(pairs(&["path=a", "path=b"]).unwrap_err().to_string().contains("twice"));
    }
}
