//! Canonical JSON: one text per value, independent of how it was written and of the build.
//!
//! Keys are sorted by their bytes at every level, strings are escaped only where they must be, and there
//! is no white space. Digests that are stored (locks, approvals, waiting calls) are digests of these
//! texts, so neither spelling of numbers may ever change.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::{Cursor, Kind, exact};

/// How canonical JSON spells numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// As they are written: `100`, `100.0` and `1e2` stay apart.
    AsWritten,
    /// By their exact values, for texts that are compared and not read: `100`, `100.0` and `1e2` are all
    /// `1e2`. Nothing is rounded to a double.
    ByValue,
}

/// The canonical JSON of a value, with its numbers as `serde_json` writes them. Stand-ins for numbers
/// ([`exact`]) are written as the numbers.
///
/// ```
/// use serde_json::json;
/// use toolcrib_json::canonical_json;
///
/// assert_eq!(canonical_json(&json!({"b": [1, null], "a": "x"})), r#"{"a":"x","b":[1,null]}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    let mut out = String::new();
    CanonicalWriter { numbers: Numbers::AsWritten, out: &mut out }.value(value);
    out
}

/// Appends the canonical JSON of a place in a tape.
///
/// ```
/// use toolcrib_json::{Numbers, parse, write_canonical};
///
/// let text = |json: &str, numbers| {
///     let mut out = String::new();
///     write_canonical(parse(json).unwrap().root(), numbers, &mut out);
///     out
/// };
/// assert_eq!(text(r#"{"b": 1.50, "a": 2e1}"#, Numbers::AsWritten), r#"{"a":2e1,"b":1.50}"#);
/// assert_eq!(text(r#"{"b": 1.50, "a": 2e1}"#, Numbers::ByValue), r#"{"a":2e1,"b":15e-1}"#);
/// ```
pub fn write_canonical(value: Cursor<'_>, numbers: Numbers, out: &mut String) {
    CanonicalWriter { numbers, out }.cursor(value);
}

struct CanonicalWriter<'o> {
    numbers: Numbers,
    out: &'o mut String,
}

impl CanonicalWriter<'_> {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => self.number(&number.to_string()),
            Value::String(text) => match exact::number(text) {
                Some(number) => self.number(number),
                None => self.string(exact::without_prefix(text)),
            },
            Value::Array(items) => self.array(items.iter(), Self::value),
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| (key.as_str().into(), value));
                self.object(members.collect(), Self::value);
            }
        }
    }

    fn cursor(&mut self, value: Cursor<'_>) {
        match value.kind() {
            Kind::Null | Kind::True | Kind::False | Kind::String => {
                self.out.push_str(value.source());
            }
            Kind::EscapedString => self.string(&value.key_text()),
            Kind::Array => self.array(value.items(), Self::cursor),
            Kind::Object => {
                let members = value.members().map(|(key, value)| (key.key_text(), value));
                self.object(members.collect(), Self::cursor);
            }
            // An integer whose last digit is significant is spelled the same either way.
            Kind::Unsigned | Kind::Negative if !value.source().ends_with('0') => {
                self.out.push_str(value.source());
            }
            _ => self.number(value.source()),
        }
    }

    fn array<T>(&mut self, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.out.push('[');
        for (position, item) in items.enumerate() {
            self.separate(position);
            write(self, item);
        }
        self.out.push(']');
    }

    /// Neither a tape nor a `Value` holds a key twice, so the order is total.
    fn object<T>(
        &mut self,
        mut members: Vec<(Cow<'_, str>, T)>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        self.out.push('{');
        for (position, (key, value)) in members.into_iter().enumerate() {
            self.separate(position);
            self.string(&key);
            self.out.push(':');
            write(self, value);
        }
        self.out.push('}');
    }

    fn separate(&mut self, position: usize) {
        if position > 0 {
            self.out.push(',');
        }
    }

    fn string(&mut self, text: &str) {
        let must_be_escaped = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\');
        // The whole text is looked at, without a branch for each byte.
        if text.bytes().fold(false, |found, byte| found | must_be_escaped(byte)) {
            self.out.push_str(&Value::from(text).to_string());
        } else {
            self.out.push('"');
            self.out.push_str(text);
            self.out.push('"');
        }
    }

    fn number(&mut self, source: &str) {
        match self.numbers {
            Numbers::AsWritten => self.out.push_str(source),
            Numbers::ByValue => write_by_value(source, self.out),
        }
    }
}

/// Writes a number as its sign, its significant digits and the power of ten that they are multiplied
/// by, unless that power is 0.
fn write_by_value(source: &str, out: &mut String) {
    let (sign, unsigned) = match source.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", source),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.bytes().chain(fraction.bytes()).all(|digit| digit == b'0') {
        // Zero, however it is signed and scaled.
        out.push('0');
        return;
    }
    let power = exponent.map_or(Some(0), |exponent| exponent.parse::<i64>().ok());
    let fraction_len = i64::try_from(fraction.len()).ok();
    let Some(power) = power.zip(fraction_len).and_then(|(power, len)| power.checked_sub(len))
    else {
        // The exponent does not fit into 64 bits. Two spellings of such a number stay apart, which costs
        // a call and confuses none.
        out.push_str(source);
        return;
    };

    out.push_str(sign);
    let start = out.len();
    if whole == "0" {
        out.push_str(fraction.trim_start_matches('0'));
    } else {
        out.push_str(whole);
        out.push_str(fraction);
    }
    let significant = out[start..].trim_end_matches('0').len();
    let zeros = out.len() - start - significant;
    out.truncate(start + significant);
    // A text is at most 4 GiB long, and the power was read as an i64 near 0 or refused above.
    let power = power.saturating_add(i64::try_from(zeros).unwrap_or(i64::MAX));
    if power != 0 {
        // Writing to a String cannot fail.
        let _ = write!(out, "e{power}");
    }
}
