//! `text_process`: every operation, including text beyond ASCII.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_tool::ErrorKind;

use crate::harness::{call, data, fails, text, within};

fn args(operation: &str, text: &str) -> Value {
    json!({"operation": operation, "text": text})
}

fn with(mut args: Value, more: Value) -> Value {
    if let (Value::Object(args), Value::Object(more)) = (&mut args, more) {
        args.extend(more);
    }
    args
}

const FAMILY: &str = "👨‍👩‍👧";

#[test]
fn operations_do_what_they_say() {
    let table = [
        ("lines", "a\r\nb\n\nc", "a\nb\n\nc"),
        ("words", " one  two\tthree\n", "one\ntwo\nthree"),
        ("upper", "straße é", "STRASSE É"),
        ("lower", "ÀÉ ΑΣ", "àé ας"),
        ("title", "don't STOP élan", "Don't Stop Élan"),
        ("reverse", "cafe\u{301} ok", "ko e\u{301}fac"),
        ("trim", "\n  a b \t", "a b"),
        ("sort", "b\nB\na", "B\na\nb"),
        ("unique", "b\na\nb\nB", "b\na\nB"),
        ("number", "x\ny", "1: x\n2: y"),
        ("reverse", "", ""),
    ];
    for (operation, input, expected) in table {
        let found = text("text_process", &args(operation, input));
        assert_eq!(found, expected, "{operation} {input:?}");
    }
    let reversed = text("text_process", &args("reverse", &format!("a{FAMILY}🇩🇪")));
    assert_eq!(reversed, format!("🇩🇪{FAMILY}a"));
}

#[test]
fn counting_tells_code_points_from_visible_characters() {
    let counted = data("text_process", &args("count", &format!("e\u{301} {FAMILY}\nx")));
    let expected = json!({"characters": 10, "graphemes": 5, "words": 3, "lines": 2, "bytes": 24});
    assert_eq!(counted, expected);
    let said = text("text_process", &args("count", "strawberry"));
    assert_eq!(said, "characters: 10\nwords: 1\nlines: 1\nbytes: 10");
    assert_eq!(data("text_process", &args("count", ""))["lines"], 0);
}

#[test]
fn find_says_where() {
    let find = |more: Value| data("text_process", &with(args("find", "Äb ab\nx\nAB"), more));
    let found = find(json!({"pattern": "b", "ignore_case": true}));
    let place =
        |line: u32, column: u32, text: &str| json!({"line": line, "column": column, "match": text});
    let places = json!([place(1, 2, "b"), place(1, 5, "b"), place(3, 2, "B")]);
    assert_eq!(found, json!({"count": 3, "matches": places}));
    assert_eq!(find(json!({"pattern": "^a.", "regex": true}))["count"], 0);
    assert_eq!(find(json!({"pattern": "^..$", "regex": true}))["matches"][0], place(3, 1, "AB"));
    // Without `regex` nothing in the pattern is special.
    assert_eq!(find(json!({"pattern": "."}))["count"], 0);
    let said = text("text_process", &with(args("find", "a\nb\nab"), json!({"pattern": "a"})));
    assert_eq!(said, "2 matches\n1: a\n3: ab");
}

#[test]
fn replace_takes_text_or_groups() {
    let replace = |more: Value| text("text_process", &with(args("replace", "a.b a-b"), more));
    assert_eq!(replace(json!({"pattern": "a.b", "replacement": "$1"})), "$1 a-b");
    let swapped = json!({"pattern": "(a).(b)", "replacement": "$2${1}", "regex": true});
    assert_eq!(replace(swapped), "ba ba");
    assert_eq!(replace(json!({"pattern": "a", "replacement": ""})), ".b -b");
}

#[test]
fn head_and_tail_keep_n_lines() {
    let lines = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    assert_eq!(text("text_process", &with(args("head", &lines), json!({"n": 2}))), "1\n2");
    assert_eq!(text("text_process", &with(args("tail", &lines), json!({"n": 2}))), "19\n20");
    assert_eq!(text("text_process", &args("tail", &lines)).lines().count(), 10);
    assert_eq!(text("text_process", &with(args("tail", "a"), json!({"n": 5}))), "a");
}

#[test]
fn unused_parameters_are_refused_and_missing_ones_requested() {
    let table = [
        (args("find", "x"), "needs `pattern`"),
        (with(args("find", "x"), json!({"pattern": ""})), "needs `pattern`"),
        (with(args("replace", "x"), json!({"pattern": "x"})), "needs `replacement`"),
        (with(args("count", "x"), json!({"pattern": "x"})), "does not use `pattern`"),
        (with(args("upper", "x"), json!({"n": 3})), "does not use `n`"),
        (with(args("trim", "x"), json!({"ignore_case": true})), "does not use `ignore_case`"),
        (
            with(args("find", "x"), json!({"pattern": "(", "regex": true})),
            "not a regular expression",
        ),
    ];
    for (args, says) in table {
        fails("text_process", &args, ErrorKind::InvalidArgs, says);
    }
    // A default value that a model sends explicitly is accepted.
    let spelt_out = with(args("upper", "x"), json!({"regex": false, "ignore_case": false}));
    assert_eq!(text("text_process", &spelt_out), "X");
}

#[test]
fn large_texts_and_greedy_patterns_end() {
    fails(
        "text_process",
        &args("count", &"x".repeat((1 << 20) + 1)),
        ErrorKind::InvalidArgs,
        "1048576",
    );
    let long = "a".repeat(1 << 20);
    let grow = with(args("replace", &long), json!({"pattern": "a", "replacement": "b".repeat(99)}));
    fails("text_process", &grow, ErrorKind::Execution, "more than 4194304 bytes");
    let huge = with(args("find", "x"), json!({"pattern": "(\\w{500}){500}", "regex": true}));
    fails("text_process", &huge, ErrorKind::InvalidArgs, "not a regular expression");
    let quadratic =
        with(args("find", &long[..1 << 17]), json!({"pattern": ".*[^a]|a", "regex": true}));
    let _ = within(Duration::from_secs(9), "quadratic", || call("text_process", &quadratic));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_makes_it_panic(
        input in r"\PC{0,40}",
        pattern in r"\PC{1,8}",
        operation in 0_usize..15,
        regex in any::<bool>(),
    ) {
        let operations = [
            "count", "lines", "words", "upper", "lower", "title", "reverse", "trim", "sort",
            "unique", "number", "find", "replace", "head", "tail",
        ];
        let mut args = args(operations[operation], &input);
        if matches!(operations[operation], "find" | "replace") {
            args = with(args, json!({"pattern": pattern, "regex": regex}));
        }
        if operations[operation] == "replace" {
            args = with(args, json!({"replacement": "<$0>"}));
        }
        let _ = call("text_process", &args);
    }

    #[test]
    fn reversing_twice_changes_nothing(input in r"([a-zé ßж]|👨‍👩‍👧|e\u{301}){0,20}") {
        let once = text("text_process", &args("reverse", &input));
        prop_assert_eq!(text("text_process", &args("reverse", &once)), input);
    }

    #[test]
    fn a_literal_replacement_is_what_the_standard_library_does(
        input in "[ab.]{0,20}", pattern in "[ab.]{1,3}", new in "[$ab]{0,3}",
    ) {
        let more = json!({"pattern": pattern, "replacement": new});
        let found = text("text_process", &with(args("replace", &input), more));
        prop_assert_eq!(found, input.replace(&pattern, &new));
    }
}
