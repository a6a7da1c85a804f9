//! Arguments: what is refused, what is changed, and that nothing else is.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::arguments::parse::{MAX_DEPTH, parse};
use toolcrib_core::arguments::prepare::Preparation;
use toolcrib_tool::{Injection, ToolDefinition};

fn problem(text: &str) -> String {
    parse(text).map(|_| ()).expect_err("refused").problem
}

fn rewritten(definition: &ToolDefinition, text: &str) -> Option<Value> {
    let tape = parse(text).expect("parses");
    let text = Preparation::of(definition).rewrite(&tape)?;
    parse(&text).expect("a rewritten text parses");
    Some(serde_json::from_str(&text).expect("JSON"))
}

fn definition(schema: Value) -> ToolDefinition {
    ToolDefinition::builder("t").description("A tool.").input_schema(schema).build().expect("valid")
}

#[test]
fn duplicate_keys_are_refused_however_they_are_spelt() {
    assert_eq!(problem(r#"{"a":1,"a":2}"#), "the key `a` is given twice");
    assert_eq!(problem(r#"{"a":1,"\u0061":2}"#), "the key `a` is given twice");
    let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":0", n % 39)).collect();
    assert_eq!(problem(&format!("{{{}}}", many.join(","))), "the key `k0` is given twice");
    assert!(parse(r#"{"a":{"a":1},"b":{"a":1}}"#).is_ok());
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert!(problem(&nested(MAX_DEPTH + 1)).contains("128 levels"));
}

#[test]
fn lone_surrogates_are_refused() {
    assert!(problem(r#""\ud800""#).contains("surrogate"));
    assert!(problem(r#""\udc00""#).contains("surrogate"));
    assert!(problem(r#""\ud800\u0041""#).contains("surrogate"));
    assert!(parse(r#""\ud83d\ude00""#).is_ok());
}

#[test]
fn numbers_beyond_a_double_are_refused() {
    assert!(problem("1e999").contains("too large"));
    assert!(parse("123456789012345678901234567890").is_ok());
}

#[test]
fn errors_say_what_was_expected_and_found() {
    assert_eq!(problem("{\"a\" 1}"), "expected `:`, found `1`");
    assert_eq!(problem("[1 2]"), "expected `,` or `]`, found `2`");
    assert_eq!(problem("{a:1}"), "expected a key in double quotes, found `a`");
    assert_eq!(problem("[1"), "the text ends where `,` or `]` should stand");
    assert_eq!(problem("01"), "a number cannot begin with 0");
    assert_eq!(problem("1 2"), "text follows the JSON value");
    assert_eq!(parse("[\"é\", x]").map(|_| ()).expect_err("refused").offset, 7);
}

#[test]
fn whole_numbers_written_as_floats_are_respelt() {
    let definition = definition(json!({"properties": {"n": {}}}));
    assert_eq!(
        rewritten(&definition, r#"{"n":[5.0,1e3,-0.0,2.5]}"#),
        Some(json!({"n": [5, 1000, 0, 2.5]}))
    );
    assert_eq!(rewritten(&definition, r#"{"n":[5,2.5,1e300]}"#), None);
}

#[test]
fn defaults_fill_what_is_absent_and_nothing_else() {
    let definition = definition(json!({"properties": {
        "lines": {"type": "integer", "default": 200},
        "mode": {"type": "string", "default": "tail"},
        "filter": {"type": "object", "properties": {"level": {"default": "warn"}}},
    }}));
    assert_eq!(rewritten(&definition, "{}"), Some(json!({"lines": 200, "mode": "tail"})));
    assert_eq!(
        rewritten(&definition, r#"{"lines":null,"filter":{}}"#),
        Some(json!({"lines": null, "mode": "tail", "filter": {"level": "warn"}}))
    );
    assert_eq!(rewritten(&definition, r#"{"lines":1,"mode":"head"}"#), None);
}

#[test]
fn a_default_is_completed_and_spelt_like_an_argument() {
    let definition = definition(json!({"properties": {
        "n": {"type": "integer", "default": 5.0},
        "f": {"default": {}, "properties": {"level": {"default": "warn"}}},
    }}));
    assert_eq!(rewritten(&definition, "{}"), Some(json!({"n": 5, "f": {"level": "warn"}})));
}

#[test]
fn what_a_model_may_not_set_is_taken_out() {
    let definition = ToolDefinition::builder("t")
        .description("A tool.")
        .input_schema(json!({"properties": {"path": {}, "_own": {}, "project_id": {}}, "required": ["project_id"]}))
        .injections(vec![Injection::new("project_id", "project_id")])
        .build()
        .expect("valid");
    assert!(definition.input_schema()["properties"].get("project_id").is_none());
    assert_eq!(definition.input_schema()["required"], json!([]));
    let hostile = r#"{"path":"a","project\u005fid":"other","_meta":1,"_own":2,"\u005fx":3}"#;
    assert_eq!(rewritten(&definition, hostile), Some(json!({"path": "a", "_own": 2})));
}

#[test]
fn an_empty_string_can_mean_absent() {
    let definition = ToolDefinition::builder("t")
        .description("A tool.")
        .input_schema(json!({"properties": {"a": {"default": "x"}, "b": {}}}))
        .empty_as_absent(vec!["a".to_owned()])
        .build()
        .expect("valid");
    assert_eq!(rewritten(&definition, r#"{"a":"","b":""}"#), Some(json!({"a": "x", "b": ""})));
}

/// Text that is often JSON and often nearly.
fn jsonish() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}")),
        "[0-9eE.+-]{1,8}",
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        "\"[a-z\\\\u0-9d/\"]{0,8}\"",
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

proptest! {
    #[test]
    fn the_parser_accepts_exactly_what_serde_json_does_minus_what_is_ambiguous(text in prop_oneof![jsonish(), any::<String>()]) {
        let theirs = serde_json::from_str::<Value>(&text);
        match parse(&text) {
            Ok(tape) => {
                prop_assert!(theirs.is_ok(), "we accept {text:?}, serde_json says {theirs:?}");
                prop_assert_eq!(tape.root().source(), text.trim_matches([' ', '\n', '\t', '\r']));
            }
            Err(error) => {
                let ambiguous = ["twice", "surrogate", "too large"].iter().any(|word| error.problem.contains(word));
                prop_assert!(theirs.is_err() || ambiguous, "serde_json accepts {text:?}, we say {error}");
                prop_assert!(error.offset <= text.len());
            }
        }
    }

    #[test]
    fn rewriting_twice_changes_nothing_more(text in jsonish()) {
        let definition = definition(json!({"properties": {
            "a": {"default": 1}, "b": {"properties": {"c": {"default": [1.5]}}}, "_p": {},
        }}));
        let preparation = Preparation::of(&definition);
        if let Ok(tape) = parse(&text)
            && let Some(once) = preparation.rewrite(&tape)
        {
            let tape = parse(&once).expect("a rewritten text parses");
            prop_assert_eq!(preparation.rewrite(&tape), None);
        }
    }
}
