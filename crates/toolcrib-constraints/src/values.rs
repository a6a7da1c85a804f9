//! JSON as rules see it.

use std::collections::HashMap;

use cel::Value as Cel;
use serde_json::Value;

/// A value for a rule. Whole numbers are `int`, or `uint` where they are too large for that.
pub(crate) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(whole)) => Cel::UInt(whole),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::from(text.as_str()),
        Value::Array(items) => Cel::from(items.iter().map(to_cel).collect::<Vec<_>>()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.clone(), to_cel(member)));
            Cel::from(members.collect::<HashMap<String, Cel>>())
        }
    }
}

/// As [`to_cel`]; a whole number is a `double`, because its schema says `number`: whoever writes
/// `args.ratio * 2.0` does not think of 1 as another type than 1.5.
pub(crate) fn to_number(value: &Value) -> Cel {
    match value.as_f64() {
        Some(number) => Cel::Float(number),
        None => to_cel(value),
    }
}
