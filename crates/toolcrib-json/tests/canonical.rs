//! Canonical JSON: one text for a value, whatever way it is written.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its texts fails")]

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};
use toolcrib_json::{Numbers, canonical_json, exact, parse, write_canonical};

fn written(text: &str, numbers: Numbers) -> String {
    let mut out = String::new();
    write_canonical(parse(text).unwrap().root(), numbers, &mut out);
    out
}

fn canonical(text: &str) -> String {
    written(text, Numbers::ByValue)
}

/// Digests of these texts are stored: of values in locks and in fingerprints of definitions, of arguments in
/// approvals and waiting calls.
#[test]
fn stored_spellings_do_not_change() {
    let values = [
        (
            json!({"é": [0.5, 1.0, 1e20, -0.0, 5e-324], "A": {"b": null, "a": true}}),
            r#"{"A":{"a":true,"b":null},"é":[0.5,1.0,1e+20,-0.0,5e-324]}"#,
        ),
        (json!("a/\u{7f}\u{1}\n\"\\"), "\"a/\u{7f}\\u0001\\n\\\"\\\\\""),
        (json!([u64::MAX, i64::MIN, [], {}]), "[18446744073709551615,-9223372036854775808,[],{}]"),
    ];
    for (value, text) in values {
        assert_eq!(canonical_json(&value), text);
    }
    let arguments = r#"{"b": [1, 1.50, 2e1, -0, 123456789012345678901], "a": "\/\u00e9\u0001"}"#;
    assert_eq!(
        written(arguments, Numbers::ByValue),
        "{\"a\":\"/é\\u0001\",\"b\":[1,15e-1,2e1,0,123456789012345678901]}"
    );
    assert_eq!(
        written(arguments, Numbers::AsWritten),
        "{\"a\":\"/é\\u0001\",\"b\":[1,1.50,2e1,-0,123456789012345678901]}"
    );
}

#[test]
fn a_stand_in_is_written_as_its_number() {
    let protected = exact::protect("[123456789012345678901, 0.1000000000000000055]");
    let value: Value = serde_json::from_str(&protected).unwrap();
    assert_eq!(canonical_json(&value), "[123456789012345678901,0.1000000000000000055]");
    let changed: Value = serde_json::from_str(&protected.replacen("2345", "[masked]", 1)).unwrap();
    assert_eq!(canonical_json(&changed), r#"["1[masked]6789012345678901",0.1000000000000000055]"#);
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
