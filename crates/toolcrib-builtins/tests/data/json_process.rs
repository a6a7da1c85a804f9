//! `json_process` without queries: nothing of a text is lost, and errors are located.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_tool::ErrorKind;

use crate::harness::{call, data, fails, text};

fn args(operation: &str, json: &str) -> Value {
    json!({"operation": operation, "json_string": json})
}

fn keys_at(json: &str, pointer: &str) -> Value {
    json!({"operation": "keys", "json_string": json, "pointer": pointer})
}

#[test]
fn formatting_keeps_order_numbers_and_escapes() {
    let input = r#" {"b" : 1.0e+2, "a":[ ],"c":{},"d":["\u00e9\n",{"x":12345678901234567890}] , "b2":null}"#;
    let pretty = "{\n  \"b\": 1.0e+2,\n  \"a\": [],\n  \"c\": {},\n  \"d\": [\n    \"\\u00e9\\n\",\n    {\n      \"x\": 12345678901234567890\n    }\n  ],\n  \"b2\": null\n}";
    let compact =
        r#"{"b":1.0e+2,"a":[],"c":{},"d":["\u00e9\n",{"x":12345678901234567890}],"b2":null}"#;
    assert_eq!(text("json_process", &args("format", input)), pretty);
    assert_eq!(text("json_process", &args("minify", input)), compact);
    assert_eq!(text("json_process", &args("minify", pretty)), compact);
    assert_eq!(text("json_process", &args("format", " 7 ")), "7");
}

#[test]
fn parsing_gives_data() {
    let parsed = data("json_process", &args("parse", r#"{"a":[1,true,null,"é"]}"#));
    assert_eq!(parsed, json!({"a": [1, true, null, "é"]}));
}

#[test]
fn parsing_keeps_the_order_of_keys_and_wide_numbers_in_the_text() {
    let input = r#"{"z": 1, "a": [12345678901234567890123, 1.50]}"#;
    let parsed = r#"{"z":1,"a":[12345678901234567890123,1.50]}"#;
    assert_eq!(text("json_process", &args("parse", input)), parsed);
}

#[test]
fn keys_are_listed_in_order_at_any_pointer() {
    let input = r#"{"z":1,"a":[{"k/1":{"deep":0,"er":1}}],"":{"empty":1},"z":2}"#;
    assert_eq!(
        data("json_process", &args("keys", input)),
        json!({"keys": ["z", "a", ""], "count": 3})
    );
    assert_eq!(data("json_process", &keys_at(input, "/a/0/k~11"))["keys"], json!(["deep", "er"]));
    assert_eq!(data("json_process", &keys_at(input, "/"))["keys"], json!(["empty"]));
    fails("json_process", &keys_at(input, "/a"), ErrorKind::InvalidArgs, "array of 1 items");
    fails("json_process", &keys_at(input, "/z"), ErrorKind::InvalidArgs, "is a number");
    fails("json_process", &keys_at(input, "/a/3/x"), ErrorKind::InvalidArgs, "nothing at /a/3");
    fails("json_process", &keys_at(input, "a"), ErrorKind::InvalidArgs, "not a JSON pointer");
}

#[test]
fn validation_reports_the_first_error_with_its_position() {
    let table = [
        ("{\"a\": 1,\n}", 2, 1, "trailing comma"),
        ("{\"a\" 1}", 1, 6, "expected `:`"),
        ("[1, 2", 1, 5, "EOF while parsing a list"),
        ("", 1, 0, "EOF while parsing a value"),
        ("{} x", 1, 4, "trailing characters"),
        ("{'a': 1}", 1, 2, "key must be a string"),
        ("[\n  \"\\ud800\"]", 2, 3, "hex escape"),
    ];
    for (input, line, column, reason) in table {
        let found = data("json_process", &args("validate", input));
        assert_eq!(found["valid"], false, "{input}");
        assert_eq!(
            (&found["line"], &found["column"]),
            (&json!(line), &json!(column)),
            "{input} {found}"
        );
        assert!(found["reason"].as_str().unwrap().contains(reason), "{input}: {found}");
        fails("json_process", &args("format", input), ErrorKind::InvalidArgs, "is not JSON");
    }
}

#[test]
fn nesting_is_bounded_for_every_operation() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    for operation in ["parse", "format", "minify"] {
        assert!(call("json_process", &args(operation, &nested(120))).is_ok(), "{operation}");
        for depth in [121, 1 << 20] {
            let too_deep = args(operation, &nested(depth));
            fails("json_process", &too_deep, ErrorKind::InvalidArgs, "nested more than 120 deep");
        }
    }
    let queried = crate::harness::jq(&nested(120), "., tojson, (tojson | fromjson | flatten)");
    assert_eq!(text("json_process", &queried).lines().count(), 3);
    let found = data("json_process", &args("validate", &nested(121)));
    assert_eq!((&found["valid"], &found["column"]), (&json!(false), &json!(121)));
}

#[test]
fn repeated_keys_are_flagged() {
    let found =
        data("json_process", &args("validate", r#"{"a":[0,{"x/y":1,"x\/y":2}],"a":3,"b":"a"}"#));
    assert_eq!(
        found,
        json!({"valid": true, "kind": "object", "duplicate_keys": ["/a/1/x~1y", "/a"]})
    );
    let clean = data("json_process", &args("validate", r#"[{"a":1},{"a":1}]"#));
    assert_eq!(clean["duplicate_keys"], json!([]));
}

#[test]
fn parameters_of_other_operations_are_refused() {
    let query = json!({"operation": "format", "json_string": "1", "query": "."});
    fails("json_process", &query, ErrorKind::InvalidArgs, "`query` belongs to");
    let pointer = json!({"operation": "parse", "json_string": "1", "pointer": "/a"});
    fails("json_process", &pointer, ErrorKind::InvalidArgs, "`pointer` belongs to");
    fails("json_process", &args("query", "1"), ErrorKind::InvalidArgs, "needs `query`");
}

#[test]
fn sizes_are_capped() {
    let large = format!("[{}0]", "0,".repeat(2 << 20));
    fails("json_process", &args("parse", &large), ErrorKind::InvalidArgs, "the limit is 4194304");
    let indented = "[".repeat(100) + &"0,".repeat(1 << 20) + "0" + &"]".repeat(100);
    fails(
        "json_process",
        &args("format", &indented),
        ErrorKind::Execution,
        "more than 16777216 bytes",
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        r#"[a-z"\\/\n é]{0,6}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(r#"[a-c"\\/]{0,3}"#, inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn formatting_and_minifying_are_inverse(value in any_json()) {
        let compact = value.to_string();
        let pretty = text("json_process", &args("format", &compact));
        prop_assert_eq!(&serde_json::from_str::<Value>(&pretty).unwrap(), &value);
        prop_assert_eq!(text("json_process", &args("minify", &pretty)), compact);
    }

    #[test]
    fn the_identity_query_changes_nothing(value in any_json()) {
        let found = data("json_process", &crate::harness::jq(&value.to_string(), "."));
        prop_assert_eq!(&found["results"][0], &value);
    }

    #[test]
    fn no_text_makes_it_panic(input in r#"[\[\]{}":,0-9a-z\\ \n.-]{0,24}|\PC{0,16}"#, at in 0_usize..5) {
        let operation = ["parse", "format", "minify", "keys", "validate"][at];
        let outcome = call("json_process", &args(operation, &input));
        let valid = serde_json::from_str::<Value>(&input).is_ok();
        prop_assert!(valid || operation == "validate" || outcome.is_err());
    }
}
