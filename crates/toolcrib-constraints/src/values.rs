//! Converts JSON to values of rules.

use std::collections::HashMap;

use cel::Value as Cel;
use serde_json::{Number, Value};
use toolcrib_tool::exact;

/// A value for a rule. Whole numbers become `int`, or `uint` if they are too large for that. A number that no rule can
/// represent becomes null, which compares with no number: see [`inexact`].
pub(crate) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(whole)) => Cel::UInt(whole),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) if exact::number(text).is_some() => Cel::Null,
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(items) => Cel::from(items.iter().map(to_cel).collect::<Vec<_>>()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.clone(), to_cel(member)));
            Cel::from(members.collect::<HashMap<String, Cel>>())
        }
    }
}

/// Like [`to_cel`], but whole numbers become `double`, because the schema has the type `number`: the author of
/// `args.ratio * 2.0` does not expect 1 and 1.5 to have different types.
pub(crate) fn to_number(value: &Value) -> Cel {
    match value.as_f64() {
        Some(number) => Cel::Float(number),
        None => to_cel(value),
    }
}

/// The first number in a value that a rule would see changed; `as_double`: rules see the whole numbers of the value as
/// `double`.
pub(crate) fn inexact(value: &Value, as_double: bool) -> Option<String> {
    match value {
        Value::Number(number) if as_double && !fits_double(number) => Some(number.to_string()),
        Value::String(text) => exact::number(text).map(str::to_owned),
        Value::Array(items) => items.iter().find_map(|item| inexact(item, false)),
        Value::Object(members) => members.values().find_map(|member| inexact(member, false)),
        _ => None,
    }
}

/// Whether a double represents this number exactly, if it is whole.
fn fits_double(number: &Number) -> bool {
    let digits = |magnitude: u64| {
        let zeros = magnitude.leading_zeros() + magnitude.trailing_zeros();
        u64::BITS.saturating_sub(zeros)
    };
    match (number.as_u64(), number.as_i64()) {
        (Some(whole), _) => digits(whole) <= f64::MANTISSA_DIGITS,
        (None, Some(whole)) => digits(whole.unsigned_abs()) <= f64::MANTISSA_DIGITS,
        (None, None) => true,
    }
}
