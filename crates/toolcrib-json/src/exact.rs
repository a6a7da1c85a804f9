//! Passing exact numbers through types that would round them.
//!
//! `serde_json::Value`, and every type that is built on it, holds 64-bit integers and doubles. A wider
//! integer, or a decimal with more digits than a double has, comes out of it as another number. Where
//! JSON has to pass through such a type, [`protect`] puts a stand-in in the place of each of these
//! numbers before the text is read, and [`restore`] puts the numbers back once the text is written. All
//! other text stays as it is.
//!
//! A stand-in is a string: a prefix that nobody outside this process knows, and the number as it was
//! written. It must not leave the process.
//!
//! ```
//! use toolcrib_json::exact;
//!
//! let text = r#"{"id": 123456789012345678901, "count": 3}"#;
//! let value: serde_json::Value = serde_json::from_str(&exact::protect(text)).unwrap();
//! assert_eq!(value["count"], 3);
//! let id = value["id"].as_str().and_then(exact::number);
//! assert_eq!(id, Some("123456789012345678901"));
//! assert!(exact::restore(&value.to_string()).contains(r#""id":123456789012345678901"#));
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;

/// So many significant digits survive the way through a double.
const SAFE_DIGITS: usize = 15;
/// Between these powers of ten, a number of [`SAFE_DIGITS`] digits is a normal double.
const SAFE_POWER: i64 = 290;
/// The first of the 2^12 private characters that the prefix is made of: no pattern that looks for words,
/// digits or keys finds any.
const FIRST_PRIVATE: u32 = 0xE000;

/// 132 random bits.
static PREFIX: LazyLock<String> = LazyLock::new(|| {
    let random = |salt: u64| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(salt);
        hasher.finish()
    };
    let words = [random(0), random(1), random(2)];
    let of_word = |word: u64| (0..4).map(move |part| (word >> (part * 12)) & 0xFFF);
    let bits = words.into_iter().flat_map(of_word);
    bits.filter_map(|bits| char::from_u32(FIRST_PRIVATE + u32::try_from(bits).ok()?)).collect()
});

/// Whether a number, written as JSON, is the same after a way through a 64-bit integer or a double: it
/// has the same value, and a whole number stays one. What is no JSON number is not.
pub fn is_kept(number: &str) -> bool {
    let Some(parts) = NumberParts::of(number) else { return false };
    if parts.is_integer() {
        return parts.whole.len() <= SAFE_DIGITS
            || number.parse::<i64>().is_ok()
            || number.parse::<u64>().is_ok();
    }
    let Some((digits, power)) = parts.value() else { return false };
    if digits.len() <= SAFE_DIGITS && power.abs() <= SAFE_POWER {
        return true;
    }
    let Ok(double) = number.parse::<f64>() else { return false };
    let shortest = format!("{:e}", double.abs());
    double.is_finite()
        && NumberParts::of(&shortest).and_then(|kept| kept.value()) == Some((digits, power))
}

/// The JSON text with a stand-in for every number that is not [kept](is_kept). A number beyond the
/// range of a double stays unchanged, so that readers refuse it instead of getting a string.
pub fn protect(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(bytes, at);
                let number = &text[at..end];
                if needs_protection(number) {
                    out.push_str(&text[copied..at]);
                    out.push('"');
                    out.push_str(&PREFIX);
                    out.push_str(number);
                    out.push('"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The JSON text with every stand-in replaced by its number. A stand-in that was changed, as masking does
/// to secrets, becomes a string without the prefix.
pub fn restore(text: &str) -> Cow<'_, str> {
    let prefix = PREFIX.as_str();
    let Some(first) = text.find(prefix) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut found) = (0, Some(first));
    while let Some(start) = found {
        let begins = start + prefix.len();
        let end = end_of_number(text.as_bytes(), begins);
        let is_number = text[..start].ends_with('"')
            && text[end..].starts_with('"')
            && NumberParts::of(&text[begins..end]).is_some();
        if is_number {
            out.push_str(&text[copied..start - 1]);
            out.push_str(&text[begins..end]);
            copied = end + 1;
        } else {
            out.push_str(&text[copied..start]);
            copied = begins;
        }
        found = text[copied..].find(prefix).map(|next| copied + next);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The number that a string stands for; `None` for every other string.
pub fn number(string: &str) -> Option<&str> {
    string.strip_prefix(PREFIX.as_str()).filter(|number| NumberParts::of(number).is_some())
}

/// What is left of a stand-in that was changed; every other string as it is.
pub fn without_prefix(string: &str) -> &str {
    string.strip_prefix(PREFIX.as_str()).unwrap_or(string)
}

/// The string that stands for a number which is written in JSON, where one is needed.
pub fn stand_in(number: &str) -> Option<String> {
    needs_protection(number).then(|| format!("{}{number}", *PREFIX))
}

/// Which of two numbers, written as JSON, is the greater, by their exact values; `None` if one is no
/// JSON number. Takes time in proportion to the texts, whatever their exponents.
///
/// ```
/// use std::cmp::Ordering;
/// use toolcrib_json::exact::compare;
///
/// assert_eq!(compare("100.00000000000000001", "1e2"), Some(Ordering::Greater));
/// assert_eq!(compare("-0.0", "0"), Some(Ordering::Equal));
/// ```
pub fn compare(one: &str, other: &str) -> Option<Ordering> {
    let (one_parts, other_parts) = (NumberParts::of(one)?, NumberParts::of(other)?);
    let (one_size, other_size) = (one_parts.magnitude(), other_parts.magnitude());
    let sign = |text: &str, (digits, _): &(String, i64)| match (digits.is_empty(), text) {
        (true, _) => 0,
        (false, text) if text.starts_with('-') => -1,
        (false, _) => 1,
    };
    let (one_sign, other_sign) = (sign(one, &one_size), sign(other, &other_size));
    if one_sign != other_sign || one_sign == 0 {
        return Some(one_sign.cmp(&other_sign));
    }
    // The power of the first digit decides, then digit by digit: the last one is not 0.
    let ((one_digits, one_power), (other_digits, other_power)) = (&one_size, &other_size);
    let order = one_power.cmp(other_power).then_with(|| one_digits.cmp(other_digits));
    Some(if one_sign < 0 { order.reverse() } else { order })
}

/// Whether a number that is written in JSON is a whole number, however it is written.
pub fn is_whole(number: &str) -> bool {
    let value = NumberParts::of(number).and_then(|parts| parts.value());
    value.is_some_and(|(_, power)| power >= 0)
}

fn needs_protection(number: &str) -> bool {
    // Most numbers are short: the first look is enough.
    (number.len() > SAFE_DIGITS || number.contains(['e', 'E']))
        && NumberParts::of(number).is_some()
        && !is_kept(number)
        && number.parse::<f64>().is_ok_and(f64::is_finite)
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => return at + 1,
            // The escaped byte is passed over; it may be the last one.
            Some(b'\\') => at = (at + 2).min(bytes.len()),
            Some(_) => at += 1,
        }
    }
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    start + bytes[start..].iter().take_while(is_part).count()
}

/// A number as it is written in JSON, without its sign.
struct NumberParts<'a> {
    whole: &'a str,
    fraction: Option<&'a str>,
    exponent: Option<&'a str>,
}

impl<'a> NumberParts<'a> {
    /// `None` for what is not a JSON number.
    fn of(number: &'a str) -> Option<Self> {
        let unsigned = number.strip_prefix('-').unwrap_or(number);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let power = |text: &str| digits(text.strip_prefix(['+', '-']).unwrap_or(text));
        let is_number = digits(whole)
            && (whole == "0" || !whole.starts_with('0'))
            && fraction.is_none_or(digits)
            && exponent.is_none_or(power);
        is_number.then_some(Self { whole, fraction, exponent })
    }

    /// The significant digits, and the power of ten just above the first one; no digits for zero. An
    /// exponent that does not fit counts as the largest one.
    fn magnitude(&self) -> (String, i64) {
        let fraction = self.fraction.unwrap_or_default();
        let all = format!("{}{fraction}", self.whole);
        let digits = all.trim_start_matches('0');
        let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let leading = length(all.len() - digits.len());
        let exponent = self.exponent.map_or(0, |exponent| {
            let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
            exponent.parse().unwrap_or(beyond)
        });
        let places = length(self.whole.len()).saturating_sub(leading);
        (digits.trim_end_matches('0').to_owned(), exponent.saturating_add(places))
    }

    fn is_integer(&self) -> bool {
        self.fraction.is_none() && self.exponent.is_none()
    }

    /// The significant digits and the power of ten of the last one; no digits for zero. `None` for an
    /// exponent beyond all reason.
    fn value(&self) -> Option<(String, i64)> {
        let fraction = self.fraction.unwrap_or_default();
        let all = format!("{}{fraction}", self.whole);
        let digits = all.trim_start_matches('0').trim_end_matches('0');
        if digits.is_empty() {
            return Some((String::new(), 0));
        }
        let zeros = all.len() - all.trim_end_matches('0').len();
        let exponent: i64 = self.exponent.map_or(Some(0), |exponent| exponent.parse().ok())?;
        let fraction = i64::try_from(fraction.len()).ok()?;
        let power = exponent.checked_sub(fraction)?.checked_add(i64::try_from(zeros).ok()?)?;
        Some((digits.to_owned(), power))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn numbers_that_a_value_keeps_are_known() {
        for kept in [
            "0",
            "-0",
            "-0.0",
            "7",
            "1E5",
            "1e5",
            "100.50",
            "0.1",
            "5e-324",
            "1e308",
            "0.3333333333333333",
            "18446744073709551615",
            "-9223372036854775808",
            "9223372036854775808",
            "1.0000000000000000",
            "0e999999999999999999999",
            "0.30000000000000004",
        ] {
            assert!(is_kept(kept), "{kept}");
        }
        for changed in [
            "18446744073709551616",
            "-9223372036854775809",
            "0.1000000000000000055",
            "123456789012345678901234567890",
            "4.9e-324",
            "1e-400",
            "1e400",
            "0.80000000000000004",
            "100000000000000000000",
            "01",
            "1.",
            "+1",
            "1e",
            "",
            "-",
            ".5",
            "1e99999999999999999999",
        ] {
            assert!(!is_kept(changed), "{changed}");
        }
    }

    #[test]
    fn numbers_are_compared_by_their_exact_values() {
        let ascending = [
            "-1e99999999999999999999",
            "-18446744073709551616",
            "-100.00000000000000001",
            "-100",
            "-1e-400",
            "0",
            "1e-99999999999999999999",
            "1e-400",
            "0.00999",
            "0.1",
            "0.10000000000000000000001",
            "5",
            "5.00000000000000000001",
            "99.9999999999999999999",
            "100",
            "9007199254740992.9",
            "9007199254740993",
            "123456789012345678901",
            "1.3e20",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(compare(one, other), Some(at.cmp(&other_at)), "{one} and {other}");
            }
        }
        for (one, other) in [("100", "1.00e2"), ("-0", "0e9"), ("0.5", "5E-1"), ("-12e1", "-120.0")]
        {
            assert_eq!(compare(one, other), Some(Ordering::Equal), "{one} and {other}");
        }
        assert_eq!(compare("1", "x"), None);
    }

    #[test]
    fn only_numbers_outside_of_strings_get_a_stand_in() {
        let text = r#"{"18446744073709551616":["\"18446744073709551616",18446744073709551616]}"#;
        let protected = protect(text);
        assert_eq!(protected.matches(PREFIX.as_str()).count(), 1);
        assert_eq!(restore(&protected), text);
        for same in
            [r#"{"a":[1,2.5,"18446744073709551616"]}"#, "1e400", "\"18446744073709551616", "\"\\"]
        {
            assert!(matches!(protect(same), Cow::Borrowed(_)), "{same}");
        }
    }

    #[test]
    fn what_is_not_json_stays_what_it_is() {
        for text in
            ["0123456789012345678901", "12345678901234567890.1.2", "1-12345678901234567890123"]
        {
            assert_eq!(protect(text), text);
        }
    }

    #[test]
    fn a_stand_in_that_was_changed_is_a_string() {
        let masked = protect("[123456789012345678901]").replace("234567890123", "[masked]");
        assert_eq!(restore(&masked), r#"["1[masked]45678901"]"#);
        assert_eq!(restore(&format!("a {} b", *PREFIX)), "a  b");
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?",
            "-?[1-9][0-9]{15,22}"
        ]
    }

    proptest! {
        #[test]
        fn a_number_means_the_same_behind_a_value(numbers in proptest::collection::vec(number(), 1..5)) {
            let text = format!("[{}]", numbers.join(","));
            let Ok(value) = serde_json::from_str::<Value>(&protect(&text)) else {
                // Beyond the range of a double, which no reader takes.
                return Ok(());
            };
            let written = restore(&value.to_string()).into_owned();
            let means = |text: &str| -> Vec<_> {
                let inside = text.trim_matches(['[', ']']);
                inside.split(',').map(|number| NumberParts::of(number).unwrap().value()).collect()
            };
            prop_assert_eq!(means(&written), means(&text));
        }

        #[test]
        fn restoring_takes_back_what_protecting_did(text in ".{0,60}") {
            let protected = protect(&text);
            prop_assert_eq!(restore(&protected), text.as_str());
        }
    }
}
