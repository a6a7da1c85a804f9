use jsonschema::{PatternOptions, Validator};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib_json::parse;

use super::Shape;
use crate::arguments::json_view::{TapeJson, View};

fn validator(schema: &Value, assert_formats: bool) -> Option<Validator<TapeJson>> {
    jsonschema::options_for::<TapeJson>()
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(assert_formats)
        .offline()
        .build(schema)
        .ok()
}

fn fits(schema: &Value, value: &str) -> bool {
    Shape::of(schema, false).fits(parse(value).expect("the value parses").root())
}

#[track_caller]
fn assert_fits(schema: &Value, values: &[&str]) {
    for value in values {
        assert!(fits(schema, value), "{value} fits {schema}");
    }
}

#[track_caller]
fn assert_left_to_the_validator(schema: &Value, values: &[&str]) {
    for value in values {
        assert!(!fits(schema, value), "{value} is not plainly fit for {schema}");
    }
}

#[test]
fn more_alternatives_than_sixteen_bits_count_let_nothing_pass() {
    let any_of = |kind: &str| json!({"anyOf": vec![json!({"type": kind}); 40_000]});
    let schema = json!({"properties": {"a": any_of("string"), "b": any_of("integer")}});
    let fits = |value| fits(&schema, value);
    assert!(fits(r#"{"a":"x","b":1}"#));
    assert!(!fits(r#"{"a":1}"#) && !fits(r#"{"b":"x"}"#));
}

#[test]
fn an_ordinary_schema_is_understood_whole() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "title": "Search",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 8},
            "limit": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100, "default": 5},
            "mode": {"oneOf": [
                {"const": "fast", "description": "Look once."},
                {"const": "slow", "description": "Look twice."},
            ]},
            "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "filter": {"$ref": "#/$defs/Filter"},
        },
        "required": ["path", "filter"],
        "additionalProperties": false,
        "$defs": {
            "Filter": {
                "type": "object",
                "properties": {
                    "words": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                    "not": {"$ref": "#/$defs/Filter"},
                },
            },
            "Unused": {"type": "boolean"},
        },
    });
    assert!(Shape::of(&schema, false).is_whole());
    assert_fits(
        &schema,
        &[
            r#"{"path":"a","filter":{}}"#,
            r#"{"filter":{"words":["x","y"],"not":{"not":{"words":[]}}},"path":"ääääääää"}"#,
            r#"{"path":"a","limit":99,"mode":"slow","since":null,"filter":{"more":1}}"#,
        ],
    );
    assert_left_to_the_validator(
        &schema,
        &[
            r#"{"path":"a"}"#,
            r#"{"path":"","filter":{}}"#,
            r#"{"path":"äääääääää","filter":{}}"#,
            r#"{"path":"a","filter":{},"limit":0}"#,
            r#"{"path":"a","filter":{},"limit":100}"#,
            r#"{"path":"a","filter":{},"mode":"other"}"#,
            r#"{"path":"a","filter":{},"since":1}"#,
            r#"{"path":"a","filter":{},"other":1}"#,
            r#"{"path":"a","filter":{"not":{"words":[1]}}}"#,
            r#"{"path":"a","filter":{"words":["x","y","z"]}}"#,
            "[]",
        ],
    );
}

#[test]
fn what_is_not_understood_is_uncertain_only_where_it_stands() {
    let schema = json!({"properties": {
        "id": {"pattern": "^[a-z]+$"},
        "name": {"type": "string"},
    }});
    assert!(!Shape::of(&schema, false).is_whole());
    assert_fits(&schema, &[r#"{"name":"x"}"#, r#"{"other":1}"#]);
    assert_left_to_the_validator(&schema, &[r#"{"id":"x"}"#]);
}

#[test]
fn what_may_be_no_schema_is_not_understood_whole() {
    let faulty = [
        json!({"type": "text"}),
        json!({"type": []}),
        json!({"minLength": -1}),
        json!({"required": ["a", "a"]}),
        json!({"required": "a"}),
        json!({"properties": []}),
        json!({"title": 1}),
        json!({"enum": "a"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$defs": {"a": {"type": 1}}}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
        json!({"items": [{"type": "string"}]}),
        json!([]),
    ];
    for schema in faulty {
        assert!(!Shape::of(&schema, false).is_whole(), "{schema}");
    }
}

#[test]
fn a_reference_to_itself_is_uncertain_and_ends() {
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert_left_to_the_validator(&schema, &["1"]);
    let schema = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    assert_left_to_the_validator(&schema, &["1", "{}"]);
}

#[test]
fn alternatives_that_multiply_are_given_up() {
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
        {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 2},
        {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 1},
        {"const": "end"},
    ]}}});
    assert_fits(&schema, &[r#"[["end"]]"#]);
    let deep = format!("{}{}{}", "[".repeat(100), "1", "]".repeat(100));
    assert_left_to_the_validator(&schema, &[&deep]);
}

/// Names, words and values that meet each other often.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("ä"), Just(""), Just("abc"), Just("x-y"), Just("q\"")]
        .prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3_i64..4).prop_map(Value::from),
        prop_oneof![Just(-1.5), Just(0.5), Just(2.5), Just(1e300)].prop_map(Value::from),
        prop_oneof![Just(u64::MAX), Just(1 << 53), Just((1 << 53) + 1)].prop_map(Value::from),
        Just(json!(i64::MIN)),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        word().prop_map(Value::from),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn type_name() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("null"),
        Just("boolean"),
        Just("integer"),
        Just("number"),
        Just("string"),
        Just("array"),
        Just("object"),
        Just("sort"),
    ];
    prop_oneof![
        6 => name.clone().prop_map(Value::from),
        1 => prop::collection::vec(name, 0..3).prop_map(Value::from),
    ]
}

/// One keyword: mostly those that are read, some that are not, some that are malformed.
fn keyword(inner: &BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    let named = |name: &'static str| move |value: Value| (name.to_owned(), value);
    let small = || (0_u64..4).prop_map(Value::from);
    let schemas = || prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from);
    let words = || prop::collection::vec(scalar(), 0..4).prop_map(Value::from);
    let properties = || {
        prop::collection::btree_map(word(), inner.clone(), 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    };
    prop_oneof![
        8 => type_name().prop_map(named("type")),
        4 => properties().prop_map(named("properties")),
        2 => prop::collection::vec(word(), 0..3).prop_map(Value::from).prop_map(named("required")),
        2 => inner.clone().prop_map(named("additionalProperties")),
        3 => inner.clone().prop_map(named("items")),
        2 => words().prop_map(named("enum")),
        1 => scalar().prop_map(named("const")),
        2 => schemas().prop_map(named("anyOf")),
        1 => schemas().prop_map(named("oneOf")),
        1 => prop::collection::btree_set(word(), 1..3).prop_map(|words| {
            ("oneOf".to_owned(), words.iter().map(|word| json!({"const": word})).collect())
        }),
        1 => small().prop_map(named("minLength")),
        1 => small().prop_map(named("maxLength")),
        1 => small().prop_map(named("minItems")),
        1 => small().prop_map(named("maxItems")),
        1 => any::<bool>().prop_map(Value::from).prop_map(named("uniqueItems")),
        1 => number().prop_map(named("minimum")),
        1 => number().prop_map(named("maximum")),
        1 => number().prop_map(named("exclusiveMinimum")),
        1 => number().prop_map(named("exclusiveMaximum")),
        1 => prop_oneof![Just("#/$defs/a"), Just("#/$defs/b"), Just("#"), Just("#/$defs/none")]
            .prop_map(Value::from).prop_map(named("$ref")),
        1 => scalar().prop_map(named("title")),
        1 => Just(json!("date")).prop_map(named("format")),
        1 => inner.clone().prop_map(named("not")),
        1 => small().prop_map(named("minProperties")),
        1 => Just(json!("^a")).prop_map(named("pattern")),
        1 => properties().prop_map(named("patternProperties")),
        1 => inner.clone().prop_map(named("unevaluatedProperties")),
        1 => schemas().prop_map(named("prefixItems")),
        1 => schemas().prop_map(named("allOf")),
    ]
    .boxed()
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        9 => type_name().prop_map(|name| json!({"type": name})),
    ];
    let nested = leaf.prop_recursive(4, 32, 4, |inner| {
        prop::collection::vec(keyword(&inner.boxed()), 0..4)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
            .boxed()
    });
    let draft = prop_oneof![
        6 => Just(None),
        1 => Just(Some("http://json-schema.org/draft-07/schema#")),
        1 => Just(Some("https://json-schema.org/draft/2019-09/schema")),
        1 => Just(Some("http://json-schema.org/draft-04/schema#")),
    ];
    (nested.clone(), prop::option::of((nested.clone(), nested)), draft).prop_map(
        |(mut root, definitions, draft)| {
            if let Value::Object(keywords) = &mut root {
                if let Some((a, b)) = definitions {
                    let both = Map::from_iter([("a".to_owned(), a), ("b".to_owned(), b)]);
                    keywords.insert("$defs".to_owned(), Value::Object(both));
                }
                if let Some(draft) = draft {
                    keywords.insert("$schema".to_owned(), draft.into());
                }
            }
            root
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn what_fits_is_valid_and_what_is_whole_is_a_schema(
        schema in schema(),
        values in prop::collection::vec(instance(), 1..12),
        assert_formats in any::<bool>(),
    ) {
        let shape = Shape::of(&schema, assert_formats);
        let validator = validator(&schema, assert_formats);
        prop_assert!(validator.is_some() || !shape.is_whole(), "no schema: {schema}");
        let Some(validator) = validator else { return Ok(()) };
        for value in values {
            let text = value.to_string();
            let tape = parse(&text).expect("what is written parses");
            if shape.fits(tape.root()) {
                prop_assert!(validator.is_valid(View::At(tape.root())), "{text} for {schema}");
            }
        }
    }
}
