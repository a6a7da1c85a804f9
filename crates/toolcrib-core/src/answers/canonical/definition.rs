//! The canonical text as plainly as it can be said, for the tests of the one that is fast.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_json::{Cursor, Kind};

/// Appends the value's one spelling.
pub(super) fn write(value: Cursor<'_>, out: &mut String) {
    match value.kind() {
        Kind::Null | Kind::True | Kind::False => out.push_str(value.source()),
        Kind::String | Kind::EscapedString => write_string(value, out),
        Kind::Array => {
            out.push('[');
            for (position, item) in value.items().enumerate() {
                separate(position, out);
                write(item, out);
            }
            out.push(']');
        }
        Kind::Object => write_object(value, out),
        _ => write_number(value.source(), out),
    }
}

fn separate(position: usize, out: &mut String) {
    if position > 0 {
        out.push(',');
    }
}

/// The parser has refused duplicate keys, so that the order is total.
fn write_object(object: Cursor<'_>, out: &mut String) {
    out.push('{');
    let mut members: Vec<_> =
        object.members().map(|(name, value)| (text(name), name, value)).collect();
    members.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    for (position, (_, name, value)) in members.into_iter().enumerate() {
        separate(position, out);
        write_string(name, out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

fn text(name: Cursor<'_>) -> Cow<'_, str> {
    name.as_str().unwrap_or_default()
}

fn write_string(string: Cursor<'_>, out: &mut String) {
    out.push_str(&Value::from(text(string)).to_string());
}

/// Writes a number as its sign, its significant digits and the power of ten they are multiplied
/// by, where that is not 0. Exact: nothing is rounded to a double.
fn write_number(source: &str, out: &mut String) {
    let (negative, unsigned) = match source.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, source),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.bytes().chain(fraction.bytes()).all(|digit| digit == b'0') {
        // However it is signed and scaled.
        out.push('0');
        return;
    }
    let power = match exponent {
        None => Some(0),
        Some(exponent) => exponent.parse::<i64>().ok(),
    };
    let fraction_len = i64::try_from(fraction.len()).ok();
    let Some(power) = power.zip(fraction_len).and_then(|(power, len)| power.checked_sub(len))
    else {
        // A scale beyond all reason: spelt differently it is another key, which costs a call and
        // confuses none.
        out.push_str(source);
        return;
    };

    if negative {
        out.push('-');
    }
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
        out.push('e');
        out.push_str(&power.to_string());
    }
}
