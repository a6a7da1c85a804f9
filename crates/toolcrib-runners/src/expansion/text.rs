//! Converts JSON values to text for programs, and finds forbidden characters in it.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_json::{Cursor, Kind, Number, Numbers, write_canonical};
use toolcrib_tool::canonical_json;

/// An argument as text: strings unchanged, numbers as written, lists and objects as compact JSON. No number passes
/// through a type that could round it.
pub(crate) fn text_of(value: Cursor<'_>) -> Cow<'_, str> {
    match (value.kind(), value.number()) {
        (Kind::String | Kind::EscapedString, _) => value.key_text(),
        // `2.0` and `2` are the same number in JSON Schema; programs want `2`. Adding 0 turns -0 into 0.
        (Kind::IntegralFloat, Some(Number::Float(whole))) => {
            Cow::Owned(format!("{:.0}", whole + 0.0))
        }
        (Kind::WideInteger, _) if value.source() == "-0" => Cow::Borrowed("0"),
        _ => Cow::Owned(json_of(value)),
    }
}

/// An argument as compact JSON with sorted keys and numbers as they were written.
pub(crate) fn json_of(value: Cursor<'_>) -> String {
    let mut out = String::with_capacity(value.source().len());
    write_canonical(value, Numbers::AsWritten, &mut out);
    out
}

/// A context value as text, by the same rules.
pub(crate) fn context_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => Cow::Owned(number_text(number)),
        other => Cow::Owned(canonical_json(other)),
    }
}

fn number_text(number: &serde_json::Number) -> String {
    let text = number.to_string();
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// The destination of a text, which decides what it may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// An argument or a variable: one line of visible characters.
    Line,
    /// Standard input: lines.
    Stream,
}

/// The first forbidden character. NUL is always forbidden; other control characters are allowed if `allow_control` says
/// so, and line ends and tabs also in a stream.
pub(crate) fn forbidden(text: &str, destination: Destination, allow_control: bool) -> Option<char> {
    text.chars().find(|character| match character {
        '\0' => true,
        '\n' | '\r' | '\t' if destination == Destination::Stream => false,
        control => control.is_control() && !allow_control,
    })
}

/// The name of a control character for messages.
pub(crate) fn name_of(control: char) -> String {
    match control {
        '\0' => "a NUL character".to_owned(),
        '\n' => "a newline".to_owned(),
        '\t' => "a tab".to_owned(),
        '\u{1b}' => "an escape character".to_owned(),
        other => format!("the control character U+{:04X}", u32::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_become_the_text_a_program_expects() {
        for (value, text) in [
            (json!("a b"), "a b"),
            (json!(""), ""),
            (json!(true), "true"),
            (json!(false), "false"),
            (json!(200), "200"),
            (json!(-7), "-7"),
            (json!(2.0), "2"),
            (json!(-0.0), "0"),
            (json!(0.1), "0.1"),
            (json!(18_446_744_073_709_551_615_u64), "18446744073709551615"),
            (json!([1, "x", null]), r#"[1,"x",null]"#),
            (json!({"b": 1, "a": [true]}), r#"{"a":[true],"b":1}"#),
        ] {
            assert_eq!(context_text(&value), text);
            let written = toolcrib_json::parse_owned(value.to_string()).unwrap();
            assert_eq!(text_of(written.root()), text);
        }
    }

    #[test]
    fn numbers_of_arguments_stay_as_they_were_written() {
        for (written, text) in [
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("-123456789012345678901", "-123456789012345678901"),
            ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
            ("1.50", "1.50"),
            ("-0", "0"),
            (
                r#"{"b": [12345678901234567890123], "a": 2.0}"#,
                r#"{"a":2.0,"b":[12345678901234567890123]}"#,
            ),
        ] {
            assert_eq!(text_of(toolcrib_json::parse(written).unwrap().root()), text);
        }
    }
}
