//! JSON text out: the same bytes on every run and in every build.

use serde_json::Value;
use toolcrib_json::exact;

/// Compact JSON with object keys in byte order, whatever map the graph's `serde_json` uses. Stand-ins for
/// numbers ([`toolcrib_json::exact`]) are written as the numbers.
///
/// ```
/// use serde_json::json;
/// use toolcrib_tool::canonical_json;
///
/// assert_eq!(canonical_json(&json!({"b": [1, null], "a": "x"})), r#"{"a":"x","b":[1,null]}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (index, (key, item)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(item, out);
            }
            out.push('}');
        }
        Value::String(text) => match exact::number(text) {
            Some(number) => out.push_str(number),
            None => out.push_str(&Value::from(exact::without_prefix(text)).to_string()),
        },
        scalar => out.push_str(&scalar.to_string()),
    }
}
