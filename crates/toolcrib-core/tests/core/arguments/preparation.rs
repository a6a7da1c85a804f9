//! Arguments: which are refused, which are changed, and that all others stay unchanged.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::arguments::prepare::Preparation;
use toolcrib_json::parse;
use toolcrib_tool::{Injection, ToolDefinition};

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

/// Text that is often JSON or almost JSON.
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
