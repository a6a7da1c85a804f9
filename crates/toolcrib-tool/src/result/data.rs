//! The structured data of an output, with every number as written.

use std::sync::OnceLock;

use serde_json::{Map, Number, Value};
use toolcrib_json::exact;

use crate::canonical_json;

/// JSON data that keeps every number as written.
///
/// A [`Value`] holds 64-bit integers and doubles. Data parsed from JSON text ([`from_json`](Self::from_json)) may
/// contain numbers that are neither: they are stored beside the value and written out unchanged by every surface of
/// toolcrib.
///
/// ```
/// use toolcrib_tool::{Data, ToolOutput};
///
/// let data = Data::from_json(r#"{"id": 123456789012345678901}"#)?;
/// assert_eq!(data.to_json(), r#"{"id":123456789012345678901}"#);
/// // A `Value` holds the nearest double.
/// assert_eq!(data.value()["id"], 123456789012345680000.0);
///
/// let output = ToolOutput::new().with_exact_data(data);
/// assert_eq!(output.text(), r#"{"id":123456789012345678901}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Data {
    /// The value with stand-ins ([`exact`]) for numbers that it cannot hold.
    protected: Value,
    /// Whether it contains stand-ins.
    has_stand_ins: bool,
    /// The value with the nearest doubles, built at the first use if there are stand-ins.
    value: OnceLock<Value>,
}

impl Data {
    /// Parses JSON text. A number beyond the range of a double is refused, as in `serde_json`.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(&exact::protect(text)).map(Self::from_protected)
    }

    /// Takes a value that was parsed from [protected](exact::protect) text.
    pub fn from_protected(protected: Value) -> Self {
        let has_stand_ins = has_stand_ins(&protected);
        Self { protected, has_stand_ins, value: OnceLock::new() }
    }

    /// The value with stand-ins ([`exact`]) for numbers that it cannot hold: for code that writes it as text and
    /// [restores](exact::restore) the numbers.
    pub fn protected(&self) -> &Value {
        &self.protected
    }

    /// Returns the value with stand-ins.
    pub fn into_protected(self) -> Value {
        self.protected
    }

    /// The data as a value. Integers beyond 64 bits and decimals beyond double precision become the nearest doubles;
    /// use [`to_json`](Self::to_json) where they matter.
    pub fn value(&self) -> &Value {
        if !self.has_stand_ins {
            return &self.protected;
        }
        self.value.get_or_init(|| without_stand_ins(&self.protected, nearest_double))
    }

    /// The data as a value in which numbers that a value cannot hold are strings with their digits, so no number is
    /// changed.
    pub fn to_shown(&self) -> Value {
        if !self.has_stand_ins {
            return self.protected.clone();
        }
        without_stand_ins(&self.protected, |number| Value::String(number.to_owned()))
    }

    /// The data as compact JSON with sorted keys and every number as written.
    pub fn to_json(&self) -> String {
        canonical_json(&self.protected)
    }

    /// Whether some number differs in [`value`](Self::value).
    pub fn is_rounded(&self) -> bool {
        self.has_stand_ins
    }
}

/// Compares the data, however it was made.
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.protected == other.protected
    }
}

impl From<Value> for Data {
    /// A value keeps everything that it holds.
    fn from(value: Value) -> Self {
        Self { protected: value, has_stand_ins: false, value: OnceLock::new() }
    }
}

fn has_stand_ins(value: &Value) -> bool {
    match value {
        // Including those that masking has changed.
        Value::String(text) => exact::without_prefix(text).len() != text.len(),
        Value::Array(items) => items.iter().any(has_stand_ins),
        Value::Object(members) => members.values().any(has_stand_ins),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn without_stand_ins(value: &Value, replace: impl Fn(&str) -> Value + Copy) -> Value {
    match value {
        Value::String(text) => match exact::number(text) {
            Some(number) => replace(number),
            None => Value::from(exact::without_prefix(text)),
        },
        Value::Array(items) => items.iter().map(|item| without_stand_ins(item, replace)).collect(),
        Value::Object(members) => {
            let member = |(name, member): (&String, &Value)| {
                (name.clone(), without_stand_ins(member, replace))
            };
            members.iter().map(member).collect::<Map<_, _>>().into()
        }
        scalar => scalar.clone(),
    }
}

fn nearest_double(number: &str) -> Value {
    let double = number.parse().ok().and_then(Number::from_f64);
    // A stand-in is always within the range of a double.
    double.map_or_else(|| Value::from(number), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_keeps_its_numbers_and_converts_to_a_value() {
        let text = r#"{"a":[123456789012345678901,0.1000000000000000055,1],"b":"x"}"#;
        let data = Data::from_json(text).unwrap();
        assert!(data.is_rounded());
        assert_eq!(data.to_json(), text);
        assert_eq!(data.value(), &serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(
            data.to_shown(),
            json!({"a": ["123456789012345678901", "0.1000000000000000055", 1], "b": "x"})
        );
        assert_eq!(data, Data::from_json(text).unwrap());
    }

    #[test]
    fn ordinary_data_is_its_value() {
        let data = Data::from_json(r#"{"b":1E5,"a":-0.0}"#).unwrap();
        assert!(!data.is_rounded());
        assert_eq!(data, Data::from(json!({"a": -0.0, "b": 100_000.0})));
        assert!(Data::from_json("1e400").is_err());
    }
}
