//! Plain YAML scalars: their values, and other possible readings.

use serde_json::Number;

use super::{Node, NodeValue, Style};
use crate::diagnostic::fix::Fix;
use crate::diagnostic::{Diagnostic, Findings};

/// The value of a plain scalar by the core schema of YAML 1.2.
///
/// Numbers that JSON cannot represent stay text; [`check_literals`] reports them.
pub(super) fn resolve(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ => number(text).map_or_else(|| NodeValue::String(text.to_owned()), NodeValue::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        let signed = text.parse::<i64>().map(Number::from);
        return signed.or_else(|_| text.parse::<u64>().map(Number::from)).ok();
    }
    if is_float(unsigned) {
        return text.parse::<f64>().ok().and_then(Number::from_f64);
    }
    None
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain { u64::from_str_radix(digits, radix).ok().map(Number::from) } else { None }
}

/// `[0-9]* . [0-9]*` with at least one digit and an optional exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}

/// The other reading of a plain scalar, as a clause; `None` if there is only one.
pub(crate) fn other_reading(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let all_digits = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "yes" | "on" | "y" => return Some("the boolean `true`".to_owned()),
        "no" | "off" | "n" => return Some("the boolean `false`".to_owned()),
        "~" => return Some("`null`".to_owned()),
        ".nan" => return Some("not-a-number, which JSON does not have".to_owned()),
        ".inf" | "+.inf" | "-.inf" => {
            return Some("infinity, which JSON does not have".to_owned());
        }
        _ => {}
    }
    if all_digits && unsigned.len() > 1 && unsigned.starts_with('0') {
        let decimal = unsigned.trim_start_matches('0');
        let decimal = if decimal.is_empty() { "0" } else { decimal };
        return Some(match u64::from_str_radix(unsigned, 8) {
            Ok(octal) => {
                format!("the number {decimal} or, in older YAML, the octal number {octal}")
            }
            Err(_) => format!("the number {decimal}"),
        });
    }
    let hex_or_octal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0o"));
    let too_big_digits = hex_or_octal
        .is_some_and(|digits| digits.len() > 15 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if (all_digits || too_big_digits) && number(text).is_none() {
        return Some("an integer too large to be represented exactly".to_owned());
    }
    let grouped = unsigned.starts_with(|first: char| first.is_ascii_digit())
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if grouped && unsigned.contains('_') {
        return Some(format!("for other readers the number {}", text.replace('_', "")));
    }
    if is_float(unsigned) && number(text).is_none() {
        return Some("a number too large for JSON".to_owned());
    }
    if is_float(unsigned) && is_rounded(text) {
        return Some("a number with more digits than can be represented exactly".to_owned());
    }
    sexagesimal(unsigned)
}

/// Whether a number changes when it is converted to a double.
pub(super) fn is_rounded(text: &str) -> bool {
    let text = text.strip_prefix('+').unwrap_or(text);
    toolcrib_tool::exact::stand_in(text).is_some()
}

/// `12:30:45`, which YAML 1.1 reads as a base-60 number.
fn sexagesimal(text: &str) -> Option<String> {
    let mut parts = text.split(':');
    let first = parts.next()?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut total: u64 = if digits(first) { first.parse().ok()? } else { return None };
    let mut count = 0;
    for part in parts {
        let small = part.len() <= 2 && digits(part);
        let value: u64 = if small { part.parse().ok()? } else { return None };
        if value >= 60 {
            return None;
        }
        total = total.checked_mul(60)?.checked_add(value)?;
        count += 1;
    }
    (count > 0).then(|| format!("in older YAML the base-60 number {total}"))
}

/// Reports every ambiguous scalar of a subtree.
///
/// Used where the type of a value matters: examples, and arguments and data of tests.
pub(crate) fn check_literals(node: &Node, findings: &mut Findings<'_>) {
    check_below(node, LiteralContext::Value, findings);
}

/// Like [`check_literals`], for a schema, whose `type` resolves the ambiguity of some literals.
pub(crate) fn check_schema_literals(schema: &Node, findings: &mut Findings<'_>) {
    check_below(schema, LiteralContext::Schema, findings);
}

/// The context of a literal.
#[derive(Clone, Copy, PartialEq)]
enum LiteralContext {
    Value,
    Schema,
    /// A place of a schema whose values are texts by that schema.
    Texts,
}

fn check_below(node: &Node, around: LiteralContext, findings: &mut Findings<'_>) {
    match &node.value {
        NodeValue::Sequence(items) => {
            for item in items {
                check_below(item, around, findings);
            }
        }
        NodeValue::Mapping(entries) => {
            let texts = around == LiteralContext::Schema
                && node.entry("type").and_then(|kind| kind.node.as_str()) == Some("string");
            for entry in entries {
                let literal = ["default", "const", "enum", "examples"];
                let said = texts && literal.contains(&entry.key.as_str());
                check_below(
                    &entry.node,
                    if said { LiteralContext::Texts } else { around },
                    findings,
                );
            }
        }
        _ if node.style == Style::Plain => {
            let raw = findings.text.get(node.span.clone()).unwrap_or_default();
            if let Some(other) = other_reading(raw) {
                let message = format!("`{raw}` without quotes can be read in two ways");
                // YAML 1.1 also lists single letters, but hardly any program implements that.
                let made = if matches!(raw, "y" | "Y" | "n" | "N") {
                    Diagnostic::warning
                } else {
                    Diagnostic::error
                };
                findings.add(
                    made("ambiguous-scalar", &node.span, message)
                        .label(format!("the text \"{raw}\", or {other}"))
                        .help(quote_help(raw))
                        .fix(
                            (around == LiteralContext::Texts)
                                .then(|| Fix::quote(&node.span, raw))
                                .flatten(),
                        ),
                );
            }
        }
        _ => {}
    }
}

fn quote_help(raw: &str) -> String {
    let other = match raw.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" => "; if you mean the boolean, write true".to_owned(),
        "no" | "off" | "n" => "; if you mean the boolean, write false".to_owned(),
        "~" => "; if you mean null, write null".to_owned(),
        _ if raw.bytes().all(|byte| byte.is_ascii_digit()) && raw.len() < 18 => {
            let decimal = raw.trim_start_matches('0');
            let decimal = if decimal.is_empty() { "0" } else { decimal };
            format!("; if you mean the number, write {decimal}")
        }
        _ => String::new(),
    };
    format!("quote it: \"{raw}\"{other}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_the_same_types_as_in_serde_yaml() {
        for text in [
            "true",
            "false",
            "null",
            "~",
            "12",
            "-7",
            "+3",
            "1.5",
            "-0.25",
            "1e3",
            "0x1F",
            "0o17",
            "no",
            "yes",
            "off",
            "1.2.3",
            "12:30:45",
            "2024-01-02",
            "text",
            "18446744073709551615",
            ".5",
        ] {
            let options = serde_yaml::options! { strict_booleans: true };
            let theirs: serde_json::Value =
                serde_yaml::from_str_with_options(text, options).unwrap();
            let ours =
                Node { value: resolve(text), span: 0..text.len(), style: Style::Plain }.to_value();
            assert_eq!(ours, theirs, "{text}");
        }
    }

    #[test]
    fn ambiguous_scalars_are_recognized_and_others_are_not() {
        for text in [
            "no",
            "Yes",
            "OFF",
            "y",
            "~",
            "012",
            "-007",
            "1234567890123456789012",
            "1e999",
            "12:30:45",
            "12:30",
            ".inf",
            ".nan",
            "00",
            "1_000",
        ] {
            assert!(other_reading(text).is_some(), "{text} should be ambiguous");
        }
        for text in
            ["12", "0", "-1", "1.5", "2024-01-02", "nothing", "one", "a:b", "12:99", "0.5", ""]
        {
            assert_eq!(other_reading(text), None, "{text} should be plain");
        }
    }
}
