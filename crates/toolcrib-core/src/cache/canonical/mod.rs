//! Arguments in one spelling: the same text for equal values and for no others.
//!
//! Keys are sorted by their bytes at every level, numbers are written by value, strings are
//! escaped only where they must be, and there are no blanks. The text is compared and hashed, and
//! never read again, so it need not be pretty: `100`, `100.0` and `1e2` are all `1e2`.

use std::borrow::Cow;
use std::io::Write as _;

use toolcrib_json::{Cursor, Kind};

/// Appends the value's one spelling, which is UTF-8.
pub(crate) fn write(value: Cursor<'_>, out: &mut Vec<u8>) {
    match value.kind() {
        Kind::Null | Kind::True | Kind::False | Kind::String => {
            out.extend_from_slice(value.source().as_bytes());
        }
        Kind::EscapedString => write_string(&value.key_text(), out),
        Kind::Array => {
            out.push(b'[');
            for (position, item) in value.items().enumerate() {
                separate(position, out);
                write(item, out);
            }
            out.push(b']');
        }
        Kind::Object => write_object(value, out),
        _ => write_number(value.source(), out),
    }
}

fn separate(position: usize, out: &mut Vec<u8>) {
    if position > 0 {
        out.push(b',');
    }
}

/// The parser has refused duplicate keys, so that the order is total.
fn write_object(object: Cursor<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut members: Vec<(Cow<'_, str>, _)> =
        object.members().map(|(name, value)| (name.key_text(), value)).collect();
    members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (position, (name, value)) in members.into_iter().enumerate() {
        separate(position, out);
        write_string(&name, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing a text to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Writes a number as its sign, its significant digits and the power of ten they are multiplied
/// by, where that is not 0. Exact: nothing is rounded to a double.
fn write_number(source: &str, out: &mut Vec<u8>) {
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
        out.push(b'0');
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
        out.extend_from_slice(source.as_bytes());
        return;
    };

    if negative {
        out.push(b'-');
    }
    let start = out.len();
    if whole == "0" {
        out.extend_from_slice(fraction.trim_start_matches('0').as_bytes());
    } else {
        out.extend_from_slice(whole.as_bytes());
        out.extend_from_slice(fraction.as_bytes());
    }
    let zeros = out[start..].iter().rev().take_while(|&&digit| digit == b'0').count();
    out.truncate(out.len() - zeros);
    // A text is at most 4 GiB long, and the power was read as an i64 near 0 or refused above.
    let power = power.saturating_add(i64::try_from(zeros).unwrap_or(i64::MAX));
    if power != 0 {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "e{power}");
    }
}

#[cfg(test)]
mod tests;
