//! Which texts are refused, why, and where; and what the tape of the others says.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test that finds nothing fails")]

use proptest::prelude::*;
use serde_json::Value;
use toolcrib_json::{Cursor, Kind, MAX_DEPTH, Number, parse, parse_owned};

fn problem(text: &str) -> String {
    parse(text).expect_err("refused").problem
}

#[test]
fn duplicate_keys_are_refused_however_they_are_spelt() {
    assert_eq!(problem(r#"{"a":1,"a":2}"#), "the key `a` is given twice");
    assert_eq!(problem(r#"{"a":1,"\u0061":2}"#), "the key `a` is given twice");
    assert_eq!(problem(r#"{"\u0061":1,"a":2}"#), "the key `a` is given twice");
    assert_eq!(problem(r#"{"a":1,"":1,"":2}"#), "the key `` is given twice");
    // The first eight bytes and the length are the same.
    assert!(parse(r#"{"parameter_a":1,"parameter_b":2}"#).is_ok());
    assert!(parse(r#"{"parameter":1,"paramete":2,"parameter_":{}}"#).is_ok());
    assert_eq!(
        problem(r#"{"a":{},"long_key_1":[{}],"b":[1],"long_key_1":2}"#),
        "the key `long_key_1` is given twice"
    );
    assert!(parse(r#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
}

#[test]
fn duplicate_keys_are_refused_wherever_they_stand_in_objects_of_any_size() {
    for len in [2, 3, 15, 16, 17, 18, 40] {
        for (first, second) in [(0, 1), (0, len - 1), (len / 2 - 1, len / 2), (len - 2, len - 1)] {
            let members: Vec<String> = (0..len)
                .map(|n| {
                    let n = if n == second { first } else { n };
                    format!("\"key number {n}\":[{n},{{\"key number 0\":null}}]")
                })
                .collect();
            let text = format!("{{{}}}", members.join(", "));
            let error = parse(&text).expect_err("a duplicate");
            assert_eq!(error.problem, format!("the key `key number {first}` is given twice"));
            let name = format!("key number {first}\":[");
            assert_eq!(error.offset, text.rfind(&name).unwrap(), "{text}");
        }
    }
}

#[test]
fn a_hundred_thousand_keys_are_no_burden() {
    // All have the same first eight bytes.
    let members: Vec<String> = (0..100_000).map(|n| format!("\"the same {n:07}\":0")).collect();
    let start = std::time::Instant::now();
    let text = format!("{{{}}}", members.join(","));
    assert_eq!(parse(&text).unwrap().root().len(), 100_000);
    // Compared pair by pair it would take minutes.
    assert!(start.elapsed().as_secs() < 10);
}

#[test]
fn a_large_tape_takes_no_more_memory_than_its_nodes_need() {
    const NODE: usize = 16;
    let texts = [
        format!("[{}1]", "1,".repeat(1 << 20)),
        format!(r#"{{"{}":[{}1]}}"#, "x".repeat(1 << 20), "1,".repeat(1 << 18)),
        format!("[{}1]", r#"{"a":[true]},"#.repeat(1 << 16)),
    ];
    for text in texts {
        let tape = parse(&text).unwrap();
        // A few more than needed are no harm: a list that doubles its room has up to twice as many.
        assert!(tape.size() <= text.len() + (tape.places() + 8) * NODE);
    }
    // What only looks like the separators of many values keeps no room.
    let text = format!(r#"[{}"{}"]"#, "1,".repeat(1 << 17), ",".repeat(8 << 20));
    let tape = parse(&text).unwrap();
    assert!(tape.size() <= text.len() + (tape.places() + 8) * NODE);
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert!(problem(&nested(MAX_DEPTH + 1)).contains("128 levels"));
    assert!(problem(&"{\"a\":".repeat(1_000_000)).contains("128 levels"));
}

#[test]
fn lone_surrogates_are_refused() {
    for text in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0041""#, r#""\ud800x""#] {
        assert!(problem(text).contains("surrogate"), "{text}");
    }
    assert!(parse(r#""\ud83d\ude00""#).is_ok());
}

#[test]
fn numbers_beyond_a_double_are_refused() {
    let digits = "9".repeat(400);
    for text in ["1e999", "-1e999", digits.as_str()] {
        let error = parse(&format!("[{text}]")).expect_err(text);
        assert_eq!((error.problem.as_str(), error.offset), ("the number is too large", 1));
    }
    assert!(parse("123456789012345678901234567890").is_ok());
}

#[test]
fn numbers_are_what_their_kind_says() {
    let float = Number::Float;
    for (text, kind, number) in [
        ("0", Kind::Unsigned, Number::Unsigned(0)),
        ("18446744073709551615", Kind::Unsigned, Number::Unsigned(u64::MAX)),
        ("18446744073709551616", Kind::WideInteger, float(18_446_744_073_709_551_616.0)),
        ("-1", Kind::Negative, Number::Negative(-1)),
        ("-9223372036854775808", Kind::Negative, Number::Negative(i64::MIN)),
        ("-9223372036854775809", Kind::WideInteger, float(-9_223_372_036_854_775_809.0)),
        ("-0", Kind::WideInteger, float(-0.0)),
        ("5.0", Kind::IntegralFloat, float(5.0)),
        ("-25e-1", Kind::Float, float(-2.5)),
        ("1e16", Kind::Float, float(1e16)),
        ("9007199254740992.0", Kind::IntegralFloat, float(9_007_199_254_740_992.0)),
        ("9007199254740994.0", Kind::Float, float(9_007_199_254_740_994.0)),
    ] {
        let tape = parse(text).unwrap();
        assert_eq!((tape.root().kind(), tape.root().number()), (kind, Some(number)), "{text}");
        assert_eq!(tape.has_integral_float(), kind == Kind::IntegralFloat, "{text}");
    }
}

#[test]
fn errors_say_what_was_expected_and_found() {
    for (text, problem, offset) in [
        ("{\"a\" 1}", "expected `:`, found `1`", 5),
        ("[1 2]", "expected `,` or `]`, found `2`", 3),
        ("[\"é\", x]", "expected a JSON value, found `x`", 7),
        ("{\"a\":1 \"b\"}", "expected `,` or `}`, found `\\\"`", 7),
        ("{a:1}", "expected a key in double quotes, found `a`", 1),
        ("{\"a\":1,}", "expected a key in double quotes, found `}`", 7),
        ("[1,]", "expected a JSON value, found `]`", 3),
        ("[1", "the text ends where `,` or `]` should stand", 2),
        ("", "the text ends where a JSON value should stand", 0),
        (" \u{0}", "expected a JSON value, found `\\0`", 1),
        ("1 2", "text follows the JSON value", 2),
        ("1\u{0}", "text follows the JSON value", 1),
        ("tru", "expected a JSON value, found `t`", 0),
        ("-", "the text ends where a digit should stand", 1),
        ("01", "a number cannot begin with 0", 1),
        ("-01", "a number cannot begin with 0", 2),
        ("1.e1", "expected a digit, found `e`", 2),
        ("\"ab", "the text ends where the end of a string (`\"`) should stand", 3),
        ("\"a\nb\"", "a control character in a string must be escaped", 2),
        (
            "\"twelve bytes\n after which it goes on\"",
            "a control character in a string must be escaped",
            13,
        ),
        (r#""\x""#, "expected an escape (one of `\" \\ / b f n r t u`), found `x`", 2),
        (r#""\u12g4 and more text""#, "expected four hexadecimal digits, found `g`", 5),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!((error.problem.as_str(), error.offset), (problem, offset), "{text:?}");
    }
}

#[test]
fn a_refused_text_is_handed_back() {
    let (_, text) = parse_owned("[1, ".to_owned()).expect_err("refused");
    assert_eq!(text, "[1, ");
    assert_eq!(parse_owned("[1] ".to_owned()).unwrap().into_text(), "[1] ");
}

#[test]
fn strings_of_every_length_end_where_they_end() {
    for len in 0..40 {
        for behind in ["", "          ", ",1,2,3,4,5"] {
            for character in ["a", "é", "\u{7f}", "😀"] {
                let string = character.repeat(len);
                let text = format!("[\"{string}\"{behind}]");
                let tape = parse(&text).unwrap();
                let first = tape.root().items().next().unwrap();
                assert_eq!(first.as_str().unwrap(), string);
                assert_eq!(first.source(), format!("\"{string}\""));
                let text = format!("[\"{string}\\n{string}\"{behind}]");
                let tape = parse(&text).unwrap();
                let first = tape.root().items().next().unwrap();
                assert_eq!(first.as_str().unwrap(), format!("{string}\n{string}"));
            }
        }
    }
}

/// JSON and nearly JSON.
fn jsonish() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}")),
        "[0-9eE.+-]{1,8}",
        "-?[0-9]{17,22}",
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        "\"[a-z\\\\u0-9d/\"]{0,8}\"",
        "\"(\\\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\[\"bfnrt/\\\\]|[ -!é]){0,5}\"",
    ];
    leaf.prop_recursive(4, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5)
                .prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec(("[a-c]{1,2}", inner), 0..5).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn value_of(cursor: Cursor<'_>) -> Value {
    match cursor.kind() {
        Kind::Null => Value::Null,
        Kind::True => true.into(),
        Kind::False => false.into(),
        Kind::String | Kind::EscapedString => cursor.as_str().unwrap().into(),
        Kind::Array => cursor.items().map(value_of).collect(),
        Kind::Object => cursor
            .members()
            .map(|(name, value)| (name.as_str().unwrap().into_owned(), value_of(value)))
            .collect(),
        _ => match cursor.number().unwrap() {
            Number::Unsigned(value) => value.into(),
            Number::Negative(value) => value.into(),
            Number::Float(value) => value.into(),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_serde_json_reads_is_read_the_same_unless_it_is_ambiguous(
        text in prop_oneof![jsonish(), any::<String>()],
    ) {
        let theirs = serde_json::from_str::<Value>(&text);
        match parse(&text) {
            Ok(tape) => {
                let root = tape.root();
                prop_assert_eq!(root.source(), text.trim_matches([' ', '\n', '\t', '\r']));
                prop_assert!(theirs.is_ok(), "we accept {text:?}, serde_json says {theirs:?}");
                prop_assert_eq!(value_of(root), theirs.unwrap());
            }
            Err(error) => {
                let ambiguous = ["twice", "surrogate", "too large"]
                    .iter()
                    .any(|word| error.problem.contains(word));
                prop_assert!(
                    theirs.is_err() || ambiguous,
                    "serde_json accepts {text:?}, we say {error}"
                );
                prop_assert!(error.offset <= text.len());
            }
        }
    }
}
