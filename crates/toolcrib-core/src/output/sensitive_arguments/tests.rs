//! What the schema calls sensitive is shown by its key only, wherever it stands.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tool(schema: Value) -> ToolDefinition {
    ToolDefinition::builder("t").description("A tool.").input_schema(schema).build().unwrap()
}

fn redacted(schema: Value, arguments: &Value) -> Value {
    redact(&tool(schema), arguments, &Mask::default())
}

#[test]
fn sensitive_values_are_hidden_at_every_depth() {
    let secret = json!({"type": "string", "x-sensitive": true});
    let schema = json!({
        "$defs": {"log in": {"properties": {"user": {}, "password": {"writeOnly": true}}}},
        "properties": {
            "plain": {"type": "string"},
            "by_ref": {"$ref": "#/$defs/log%20in"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/log%20in"}},
            "pair": {"prefixItems": [{"type": "string"}, secret]},
            "all": {"allOf": [{"properties": {"key": secret}}, {"properties": {"key": {}, "id": {}}}]},
            "any": {"anyOf": [{"type": "integer"}, secret]},
            "headers": {"additionalProperties": secret},
        },
    });
    let login = json!({"user": "ada", "password": "hunter22"});
    let arguments = json!({
        "plain": "p", "by_ref": login, "list": [login], "pair": ["a", "b"],
        "all": {"key": "k", "id": 7}, "any": 5, "headers": {"X-Key": "k"},
    });
    let hidden = json!({"user": "ada", "password": REDACTED});
    assert_eq!(
        redacted(schema, &arguments),
        json!({
            "plain": "p", "by_ref": hidden, "list": [hidden], "pair": ["a", REDACTED],
            "all": {"key": REDACTED, "id": 7}, "any": REDACTED, "headers": {"X-Key": REDACTED},
        })
    );
}

#[test]
fn what_the_schema_does_not_know_is_hidden_beside_what_is_sensitive() {
    let schema = json!({"properties": {
        "login": {
            "type": "object",
            "properties": {"user": {"type": "string"}, "password": {"writeOnly": true}},
        },
        "note": {"type": "string"},
    }});
    let text = r#"{"user":"ada","password":"hunter22"}"#;
    for login in [json!(text), json!([{"password": "hunter22"}]), json!({"pasword": "hunter22"})] {
        let arguments = json!({"login": login, "passwd": "hunter22", "note": "n"});
        let shown = redacted(schema.clone(), &arguments);
        assert!(!shown.to_string().contains("hunter22"), "{shown}");
        assert_eq!(shown["note"], "n");
    }
    let open = redacted(json!({"properties": {}}), &json!({"any": {"thing": [1]}}));
    assert_eq!(open, json!({"any": {"thing": [1]}}));
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let schema = json!({
        "$defs": {"node": {"properties": {
            "next": {"$ref": "#/$defs/node"}, "pin": {"x-sensitive": true}, "name": {},
        }}},
        "properties": {"list": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}},
    });
    let arguments = json!({"self": {"list": {"next": {"pin": 1, "name": "n"}}}});
    let expected = json!({"self": {"list": {"next": {"pin": REDACTED, "name": "n"}}}});
    assert_eq!(redacted(schema, &arguments), expected);
}

#[test]
fn long_arguments_are_shortened_after_masking() {
    let mask = Mask::new(["S3CRET-VALUE".to_owned()]).unwrap();
    let text = format!("{}S3CRET-VALUE", "x".repeat(SHOWN_CHARS - 6));
    let shown = redact(&tool(json!({})), &json!({"t": text, "l": vec![0; 100]}), &mask);
    let shown_text = shown["t"].as_str().unwrap();
    assert!(shown_text.ends_with("[maske… (258 characters)"), "{shown_text}");
    assert_eq!(shown["l"].as_array().unwrap().len(), SHOWN_ITEMS + 1);
    assert_eq!(shown["l"][SHOWN_ITEMS], "… and 68 more");
}

#[test]
fn text_that_cannot_be_judged_is_described() {
    let mask = Mask::default();
    assert_eq!(redact_text(None, r#"{"password": "x"}"#, &mask), json!({"password": REDACTED}));
    assert_eq!(redact_text(None, "[1]", &mask), REDACTED);
    let known = tool(json!({}));
    assert_eq!(redact_text(Some(&known), "{pass: x", &mask), "[8 bytes that are not JSON]");
    assert_eq!(redact_text(Some(&known), " ", &mask), json!({}));
    assert_eq!(redact_text(Some(&known), r#"{"a":1}"#, &mask), json!({"a": 1}));
}

/// A schema with arguments that fit it; what is sensitive reads `SECRET`, the rest `plain`.
fn fitting() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        Just((json!({"type": "string"}), json!("plain"))),
        Just((json!({"type": "string", "writeOnly": true}), json!("SECRET"))),
        Just((json!({"x-sensitive": true}), json!({"any": ["SECRET"]}))),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|members| {
                let (mut schemas, mut values) = (Map::new(), Map::new());
                for (index, (schema, value)) in members.into_iter().enumerate() {
                    schemas.insert(format!("m{index}"), schema);
                    values.insert(format!("m{index}"), value);
                }
                (json!({"properties": schemas}), Value::Object(values))
            }),
            inner
                .clone()
                .prop_map(|(schema, value)| { (json!({"items": schema}), json!([value, value])) }),
            inner.clone().prop_map(|(schema, value)| (json!({"allOf": [{}, schema]}), value)),
            inner.clone().prop_map(|(schema, value)| {
                (json!({"anyOf": [{"type": "null"}, schema]}), value)
            }),
            inner.prop_map(|(schema, value)| {
                (json!({"additionalProperties": schema}), json!({"k": value}))
            }),
        ]
    })
}

fn count(value: &Value, text: &str) -> usize {
    value.to_string().matches(text).count()
}

#[test]
fn numbers_are_shown_as_the_tool_gets_them() {
    let definition = ToolDefinition::builder("pay")
        .description("Pay.")
        .input_schema(json!({"properties": {
            "pin": {"type": "integer", "x-sensitive": true}, "to": {}, "part": {}, "n": {},
        }}))
        .build()
        .unwrap();
    let text =
        r#"{"to": 123456789012345678901, "part": 0.10000000000000000001, "n": [1, 0.1, 1e3]}"#;
    assert_eq!(
        redact_text(Some(&definition), text, &Mask::default()),
        json!({"to": "123456789012345678901", "part": "0.10000000000000000001", "n": [1, 0.1, 1000.0]})
    );
    // What a plan shows of a sensitive number is found by its digits.
    let arguments = Arguments::from_validated(r#"{"pin": 123456789012345678901}"#.to_owned());
    let hidden = sensitive_texts(&definition, &exact_value(&arguments));
    assert_eq!(hidden, ["123456789012345678901"]);
}

proptest! {
    #[test]
    fn what_is_sensitive_never_shows_and_what_is_not_does((schema, value) in fitting()) {
        let shown = redacted(json!({"properties": {"a": schema}}), &json!({"a": value}));
        prop_assert_eq!(count(&shown, "SECRET"), 0, "{}", shown);
        prop_assert_eq!(count(&shown, "plain"), count(&value, "plain"), "{}", shown);
    }

    #[test]
    fn not_even_in_another_shape((schema, value) in fitting()) {
        let schema = json!({"properties": {"a": schema}});
        for other in [json!(value.to_string()), json!([value]), json!({"wrong": value})] {
            if count(&value, "SECRET") > 0 {
                let shown = redacted(schema.clone(), &json!({"a": other}));
                prop_assert_eq!(count(&shown, "SECRET"), 0, "{} by {}", shown, schema);
            }
        }
    }
}

#[test]
fn arguments_are_shown_as_written_unless_their_tool_declares_any_of_them_sensitive() {
    let hidden = |schema: Option<Value>, written| {
        let definition = schema.map(tool);
        hidden_arguments(definition.as_ref(), written, &Mask::default())
    };
    let login = json!({"properties": {"user": {}, "password": {"x-sensitive": true}}});
    for (schema, written, expected) in [
        (json!({"properties": {"user": {}}}), r#"{"user": "ada"}"#, None),
        (login.clone(), "", None),
        (login.clone(), r#"{"user": "ada"}"#, Some(r#"{"user":"ada"}"#)),
        (
            login.clone(),
            r#"{"user": "ada", "password": "hunter22"}"#,
            Some(r#"{"password":"[redacted]","user":"ada"}"#),
        ),
        (login.clone(), r#"{"pasword": "hunter22"}"#, Some(r#"{"pasword":"[redacted]"}"#)),
        (login.clone(), "{password: hunter22", Some(r#""[19 bytes that are not JSON]""#)),
    ] {
        assert_eq!(hidden(Some(schema), written).as_deref(), expected, "{written}");
    }
    assert_eq!(hidden(None, r#"{"a": "hunter22"}"#).as_deref(), Some(r#"{"a":"[redacted]"}"#));
    assert_eq!(hidden(None, "{}"), None);
}
