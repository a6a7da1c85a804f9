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
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::{Map, Number, Value};
    use toolcrib_json::parse;

    fn canonical(text: &str) -> String {
        let tape = parse(text).unwrap();
        let mut out = Vec::new();
        super::write(tape.root(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn defined(text: &str) -> String {
        let mut out = String::new();
        super::definition::write(parse(text).unwrap().root(), &mut out);
        out
    }

    #[test]
    fn numbers_are_written_by_value() {
        for (same, spelling) in [
            (&["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000E+0", "0.01e+02"][..], "1"),
            (&["100", "1e2", "1E+2", "100.00", "1000e-1"], "1e2"),
            (&["0", "-0", "0.0", "-0e5", "0e99999999999999999999"], "0"),
            (&["-1.5", "-15e-1", "-0.15e1"], "-15e-1"),
            (&["10203", "10203.0", "1.0203e4"], "10203"),
        ] {
            for text in same {
                assert_eq!(canonical(text), spelling, "{text}");
            }
        }
    }

    #[test]
    fn numbers_that_share_a_double_stay_apart() {
        assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
        assert_ne!(canonical("0.1"), canonical("0.1000000000000000055511151231257827"));
        assert_ne!(canonical("1e-99999999999999999999"), canonical("1e-99999999999999999998"));
        // Beside the bounds of the power, where it is kept as written or still counted.
        assert_ne!(canonical("1e-9223372036854775808"), canonical("1e-9223372036854775807"));
        assert_ne!(canonical("0.1e-9223372036854775808"), canonical("1e-9223372036854775808"));
    }

    #[test]
    fn strings_and_what_they_spell_stay_apart() {
        for (one, other) in
            [("\"1\"", "1"), ("\"null\"", "null"), (r#"["a,b"]"#, r#"["a","b"]"#), ("[]", "{}")]
        {
            assert_ne!(canonical(one), canonical(other));
        }
        assert_eq!(canonical(r#""\u0061\/\n\ud83d\ude00""#), canonical("\"a/\\u000a😀\""));
    }

    #[test]
    fn keys_are_sorted_as_they_are_meant_and_not_as_they_are_written() {
        let sorted = canonical(r#"{"a":1,"b":{"x":[{"m":1,"n":2}],"y":2}}"#);
        assert_eq!(canonical(r#"{"b":{"y":2,"x":[{"n":2,"m":1}]}, "\u0061":1.0}"#), sorted);
        assert_eq!(canonical(r#"{"\u0062":{"y":2,"x":[{"n":2,"m":1}]}, "a":1}"#), sorted);
        assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
    }

    /// A value that knows how it may be spelt: numbers are a whole number and a power of ten.
    #[derive(Debug, Clone, PartialEq)]
    enum Model {
        Null,
        Bool(bool),
        Number(i32, i8),
        String(String),
        Array(Vec<Model>),
        Object(Vec<(String, Model)>),
    }

    fn model() -> impl Strategy<Value = Model> {
        // Few and strange characters, so that equal and nearly equal values do come up.
        let string = || "[ab\"\\\\/\n\u{7f}é😀,:]{0,3}";
        let leaf = prop_oneof![
            Just(Model::Null),
            any::<bool>().prop_map(Model::Bool),
            (-12..12_i32, -3..3_i8).prop_map(|(digits, power)| Model::Number(digits, power)),
            (any::<i32>(), -30..30_i8).prop_map(|(digits, power)| Model::Number(digits, power)),
            string().prop_map(Model::String),
        ];
        leaf.prop_recursive(3, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Model::Array),
                prop::collection::btree_map(string(), inner, 0..4)
                    .prop_map(|members| Model::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Spells a value as the numbers in `dice` say.
    fn spell(value: &Model, dice: &mut impl FnMut(usize) -> usize, out: &mut String) {
        let blank = |dice: &mut dyn FnMut(usize) -> usize| ["", " ", "\n\t"][dice(3)];
        match value {
            Model::Null => out.push_str("null"),
            Model::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Model::Number(digits, power) => {
                let (digits, power) = (i64::from(*digits), i64::from(*power));
                let spelling = match dice(4) {
                    0 => format!("{digits}e{power}"),
                    1 => format!("{digits}.000E{power:+}"),
                    2 => format!("{digits}00e{:+03}", power - 2),
                    _ if power == 0 => format!("{digits}"),
                    _ => format!(
                        "{}{}.{}e{}",
                        if digits < 0 { "-" } else { "" },
                        digits.abs() / 10,
                        digits.abs() % 10,
                        power + 1
                    ),
                };
                // `000` is no JSON.
                out.push_str(if spelling.starts_with("000") { "0.0e7" } else { &spelling });
            }
            Model::String(string) => spell_string(string, dice, out),
            Model::Array(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    separate(position, out);
                    out.push_str(blank(dice));
                    spell(item, dice, out);
                }
                out.push(']');
            }
            Model::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for last in (1..members.len()).rev() {
                    members.swap(last, dice(last + 1));
                }
                out.push('{');
                for (position, (name, value)) in members.into_iter().enumerate() {
                    separate(position, out);
                    spell_string(name, dice, out);
                    out.push_str(blank(dice));
                    out.push(':');
                    spell(value, dice, out);
                }
                out.push('}');
            }
        }
    }

    fn separate(position: usize, out: &mut String) {
        if position > 0 {
            out.push(',');
        }
    }

    fn spell_string(string: &str, dice: &mut impl FnMut(usize) -> usize, out: &mut String) {
        out.push('"');
        for character in string.chars() {
            let plain = Value::from(character.to_string()).to_string();
            match dice(3) {
                0 => {
                    let mut units = [0; 2];
                    for unit in character.encode_utf16(&mut units) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                1 if character == '/' => out.push_str("\\/"),
                _ => out.push_str(&plain[1..plain.len() - 1]),
            }
        }
        out.push('"');
    }

    fn spelt(value: &Model, dice: &[usize]) -> String {
        let mut dice = dice.iter().cycle();
        let mut out = String::new();
        let mut next = |sides: usize| dice.next().copied().unwrap_or_default() % sides;
        spell(value, &mut next, &mut out);
        out
    }

    /// The value itself, with numbers as the digits and power that are in lowest terms.
    fn meant(value: &Model) -> Model {
        match value {
            Model::Number(0, _) => Model::Number(0, 0),
            Model::Number(digits, power) if digits % 10 == 0 => {
                meant(&Model::Number(digits / 10, power + 1))
            }
            Model::Array(items) => Model::Array(items.iter().map(meant).collect()),
            Model::Object(members) => Model::Object(
                members.iter().map(|(name, value)| (name.clone(), meant(value))).collect(),
            ),
            other => other.clone(),
        }
    }

    /// A value beside the given one: something small is different.
    fn nudged(value: &Model, dice: usize) -> Model {
        match value {
            Model::Null => Model::Bool(false),
            Model::Bool(value) => Model::Bool(!value),
            Model::Number(digits, power) => Model::Number(digits ^ 1, *power),
            Model::String(string) => Model::String(format!("{string}a")),
            Model::Array(items) if items.is_empty() => Model::Object(Vec::new()),
            Model::Array(items) => {
                let mut items = items.clone();
                let at = dice % items.len();
                items[at] = nudged(&items[at], dice / 7);
                Model::Array(items)
            }
            Model::Object(members) if members.is_empty() => Model::Array(Vec::new()),
            Model::Object(members) => {
                let mut members = members.clone();
                let at = dice % members.len();
                members[at].1 = nudged(&members[at].1, dice / 7);
                Model::Object(members)
            }
        }
    }

    fn dice() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(0..5040_usize, 1..40)
    }

    fn blank() -> impl Strategy<Value = String> {
        prop_oneof![4 => Just(String::new()), 1 => "[ \n\t]{1,2}"]
    }

    /// JSON as it may come: compact or not, with numbers, escapes and sizes of every kind.
    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "null|true|false",
            "-?(0|[1-9][0-9]{0,3}0{0,20}|[1-9][0-9]{0,22})",
            "-?(0|[1-9][0-9]{0,2}0{0,2})(\\.[0-9]{1,4}0{0,3})?([eE]([+]?[0-9]{1,2}|-[0-9]{1,20}))?",
            r#""([a-zé😀/,:{}\[\] ]|\\["\\/bfnrt]|\\u00[0-7][0-9a-fA-F]){0,12}""#,
            "\"[a-z]{20,70}\"",
        ];
        let key = "[a-c]{0,1}[a-z é\"\\\\!]{0,2}";
        leaf.prop_recursive(3, 48, 20, move |inner| {
            let member = (any::<bool>(), blank(), blank(), inner.clone(), blank());
            let object = prop::collection::hash_map(key, member, 0..20);
            prop_oneof![
                prop::collection::vec((blank(), inner, blank()), 0..6).prop_map(|items| {
                    let items: Vec<_> = items.into_iter().map(|(a, b, c)| a + &b + &c).collect();
                    format!("[{}]", items.join(","))
                }),
                // In the order of the map, which is any.
                (object, blank()).prop_map(|(members, inside)| {
                    let members: Vec<_> = members
                        .into_iter()
                        .map(|(key, (escaped, before, after, value, end))| {
                            let key = if escaped && key.is_ascii() {
                                let units = key.bytes().map(|unit| format!("\\u{unit:04X}"));
                                format!("\"{}\"", units.collect::<String>())
                            } else {
                                Value::from(key).to_string()
                            };
                            format!("{key}{before}:{after}{value}{end}")
                        })
                        .collect();
                    format!("{{{inside}{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_text_is_the_one_that_is_defined(text in json()) {
            prop_assert_eq!(canonical(&text), defined(&text), "{}", text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_value_has_one_spelling(value in model(), one in dice(), other in dice()) {
            let (one, other) = (spelt(&value, &one), spelt(&value, &other));
            prop_assert_eq!(canonical(&one), canonical(&other), "{} and {}", one, other);
        }

        #[test]
        fn different_values_are_spelt_differently(a in model(), b in model(), one in dice()) {
            let same = canonical(&spelt(&a, &one)) == canonical(&spelt(&b, &one));
            prop_assert_eq!(same, meant(&a) == meant(&b));
            let beside = nudged(&a, one[0]);
            prop_assert_ne!(canonical(&spelt(&a, &one)), canonical(&spelt(&beside, &one)));
        }

        #[test]
        fn the_spelling_is_json_of_the_same_value_and_is_its_own(value in model(), one in dice()) {
            let text = spelt(&value, &one);
            let canonical_text = canonical(&text);
            prop_assert_eq!(canonical(&canonical_text), canonical_text.clone());
            let read = |text: &str| doubles(serde_json::from_str(text).unwrap());
            prop_assert_eq!(read(&canonical_text), read(&text));
        }
    }

    /// All numbers as doubles, so that 1 and 1.0 compare equal.
    fn doubles(value: Value) -> Value {
        match value {
            Value::Number(number) => {
                // Adding 0 makes -0 the zero it equals.
                let double = number.as_f64().unwrap_or_default() + 0.0;
                Number::from_f64(double).map_or(Value::Null, Value::Number)
            }
            Value::Array(items) => items.into_iter().map(doubles).collect(),
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name, doubles(value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other,
        }
    }
}
