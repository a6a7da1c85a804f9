//! Arguments in one spelling: the same text for equal values and for no others.
//!
//! Keys are sorted by their bytes at every level, numbers are written by value, strings are
//! escaped only where they must be, and there are no blanks. The text is compared and never read
//! again, so that it need not be pretty: `100`, `100.0` and `1e2` are all `1e2`.
//!
//! Most of what models write is spelt like that already. The writer therefore copies the longest
//! runs of the source it can, and spells anew only what lies between them.

use std::borrow::Cow;
use std::io::Write as _;
use std::ops::Range;

use serde_json::Value;
use toolcrib_json::{Cursor, Kind};

#[cfg(test)]
mod definition;

/// Members of an object that are sorted without an allocation.
const FEW: usize = 16;

/// Appends the value's one spelling, which is UTF-8.
pub(crate) fn write(value: Cursor<'_>, out: &mut Vec<u8>) {
    let mut writer = Writer { text: value.text().as_bytes(), run: 0..0, out };
    writer.value(value);
    writer.flush();
}

/// What has been written is `out` and then the `run` of the text: bytes which are canonical as
/// they stand and are copied when the run ends.
struct Writer<'a, 'o> {
    text: &'a [u8],
    run: Range<usize>,
    out: &'o mut Vec<u8>,
}

/// A member whose key has no escapes.
#[derive(Clone, Copy)]
struct Member<'a> {
    key: &'a [u8],
    /// Where the key's first quote stands.
    start: usize,
    value: Cursor<'a>,
}

impl<'a> Writer<'a, '_> {
    #[inline]
    fn value(&mut self, value: Cursor<'a>) {
        match value.kind() {
            Kind::Null | Kind::True | Kind::False | Kind::String => self.copy(value.span()),
            Kind::Unsigned | Kind::Negative if value.raw_bytes().last() != Some(&b'0') => {
                self.copy(value.span());
            }
            _ => self.not_as_it_stands(value),
        }
    }

    /// A value that may have to be spelt anew, or has parts.
    #[inline(never)]
    fn not_as_it_stands(&mut self, value: Cursor<'a>) {
        match value.kind() {
            Kind::Object => self.object(value),
            Kind::Array => self.array(value),
            Kind::EscapedString => self.escaped(value),
            Kind::Unsigned | Kind::Negative => self.integer(value.span()),
            _ => self.number(value),
        }
    }

    fn array(&mut self, array: Cursor<'a>) {
        let Range { start, end } = array.span();
        self.copy(start..start + 1);
        for (position, item) in array.items().enumerate() {
            if position > 0 {
                self.byte(b',');
            }
            self.value(item);
        }
        self.close(b']', end);
    }

    /// The parser has refused duplicate keys, so that the order is total.
    fn object(&mut self, object: Cursor<'a>) {
        let Range { start, end } = object.span();
        self.copy(start..start + 1);
        // Filled up with what is never looked at.
        let mut members = [Member { key: &[], start, value: object }; FEW];
        if let Some(members) = sorted(object, &mut members) {
            for (position, member) in members.iter().enumerate() {
                if position > 0 {
                    self.byte(b',');
                }
                self.copy(member.start..member.start + member.key.len() + 2);
                self.byte(b':');
                self.value(member.value);
            }
        } else {
            self.many_members(object);
        }
        self.close(b'}', end);
    }

    /// The members of an object that has many, or keys with escapes.
    #[cold]
    fn many_members(&mut self, object: Cursor<'a>) {
        // Unescaped once each, however often they are compared.
        let mut members: Vec<_> =
            object.members().map(|(name, value)| (name.key_text(), name, value)).collect();
        members.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        for (position, (_, name, value)) in members.into_iter().enumerate() {
            if position > 0 {
                self.byte(b',');
            }
            self.value(name);
            self.byte(b':');
            self.value(value);
        }
    }

    fn number(&mut self, number: Cursor<'a>) {
        self.flush();
        write_number(number.source(), self.out);
        self.go_on_at(number.span().end);
    }

    /// An integer that fits into 64 bits: its digits up to the last one that is not 0.
    fn integer(&mut self, Range { start, end }: Range<usize>) {
        let digits = &self.text[start..end];
        if digits == b"0" {
            self.copy(start..end);
            return;
        }
        let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
        self.copy(start..end - zeros);
        self.flush();
        match u8::try_from(zeros) {
            Ok(power @ 1..=9) => self.out.extend_from_slice(&[b'e', b'0' + power]),
            _ => write_power(zeros, self.out),
        }
        self.go_on_at(end);
    }

    fn escaped(&mut self, string: Cursor<'a>) {
        if is_escaped_canonically(string.raw_bytes()) {
            self.copy(string.span());
        } else {
            self.flush();
            let text: Cow<'_, str> = string.key_text();
            self.out.extend_from_slice(Value::from(text).to_string().as_bytes());
            self.go_on_at(string.span().end);
        }
    }

    /// Writes a part of the text as it is.
    #[inline]
    fn copy(&mut self, part: Range<usize>) {
        if part.start != self.run.end {
            self.flush();
            self.run.start = part.start;
        }
        self.run.end = part.end;
    }

    /// Writes a byte, which mostly is the next of the text.
    #[inline]
    fn byte(&mut self, byte: u8) {
        if self.text.get(self.run.end) == Some(&byte) {
            self.run.end += 1;
        } else {
            self.flush();
            self.out.push(byte);
        }
    }

    /// Writes the bracket that closes a container, which stands before `end`.
    #[inline]
    fn close(&mut self, bracket: u8, end: usize) {
        if self.run.end + 1 == end {
            self.run.end = end;
        } else {
            self.flush();
            self.out.push(bracket);
            self.go_on_at(end);
        }
    }

    /// Begins an empty run; the last one has been flushed.
    #[inline]
    fn go_on_at(&mut self, place: usize) {
        self.run = place..place;
    }

    /// Copies the run.
    #[inline(never)]
    fn flush(&mut self) {
        /// What is copied in one piece, even if it is more than is wanted: cheaper than to find
        /// out how to copy just a few bytes.
        const BLOCK: usize = 32;

        let Range { start, end } = self.run;
        self.run.start = end;
        let len = end - start;
        match self.text.get(start..start + BLOCK) {
            Some(block) if len <= BLOCK => {
                let wanted = self.out.len() + len;
                self.out.extend_from_slice(block);
                self.out.truncate(wanted);
            }
            _ => self.out.extend_from_slice(&self.text[start..end]),
        }
    }
}

/// The members in order; `None` if there are too many, or if there is a key with escapes.
#[inline]
fn sorted<'m, 'a>(
    object: Cursor<'a>,
    members: &'m mut [Member<'a>; FEW],
) -> Option<&'m [Member<'a>]> {
    let len = object.len();
    if len > FEW {
        return None;
    }
    for (place, (name, value)) in object.members().enumerate() {
        if name.kind() != Kind::String {
            return None;
        }
        let member = Member { key: name.raw_bytes(), start: name.span().start, value };
        let mut at = place;
        // Not once for keys that come in order.
        while at > 0 && precedes(member.key, members[at - 1].key) {
            members[at] = members[at - 1];
            at -= 1;
        }
        members[at] = member;
    }
    Some(&members[..len])
}

/// Whether a key without escapes is sorted before another: mostly their first bytes tell.
#[inline]
fn precedes(one: &[u8], other: &[u8]) -> bool {
    match one.first().cmp(&other.first()) {
        std::cmp::Ordering::Equal => one < other,
        order => order.is_lt(),
    }
}

/// Whether the inside of a string is escaped only where it must be and in the shortest way, by
/// what stands after its backslashes. `false` for what takes a closer look.
fn is_escaped_canonically(mut raw: &[u8]) -> bool {
    while let Some(backslash) = raw.iter().position(|&byte| byte == b'\\') {
        match raw.get(backslash + 1..) {
            Some([b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..]) => raw = rest,
            _ => return false,
        }
    }
    true
}

/// Writes the power of ten, which is not 0, that the digits before it are multiplied by.
fn write_power(power: impl std::fmt::Display, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "e{power}");
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
        write_power(power, out);
    }
}

#[cfg(test)]
mod tests;
