//! Properties of arbitrary tools.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolcrib_wire::{Target, export, from_strict};

use crate::rules::check;
use crate::sample::{Row, sample};

/// Schemas with all keywords of strict mode; `references` adds `#/$defs/D`.
fn schema(references: bool) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": ["integer", "boolean"]})),
        Just(json!({"type": "string", "enum": ["a", "b"]})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": "k"})),
        (-5i64..5, 0i64..5).prop_map(
            |(least, span)| json!({"type": "integer", "minimum": least, "maximum": least + span})
        ),
        Just(if references { json!({"$ref": "#/$defs/D"}) } else { json!({"type": "number"}) }),
        Just(if references {
            json!({"$ref": "#/$defs/D", "description": "d"})
        } else {
            json!({"type": "number", "exclusiveMinimum": 0})
        }),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            object(inner.clone()),
            (inner.clone(), 0u64..2).prop_map(|(items, least)| {
                json!({"type": "array", "items": items, "minItems": least})
            }),
            vec(inner.clone(), 1..4).prop_map(|branches| json!({"anyOf": branches})),
            inner.clone().prop_map(|part| json!({"allOf": [part], "description": "d"})),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (btree_map("[a-d]", (inner, any::<bool>()), 1..4), any::<bool>()).prop_map(
        |(properties, closed)| {
            let required: Vec<&String> =
                properties.iter().filter(|(_, (_, must))| *must).map(|(name, _)| name).collect();
            let mut schema = json!({"type": "object", "required": required});
            if closed {
                schema["additionalProperties"] = false.into();
            }
            let named: Map<String, Value> =
                properties.iter().map(|(name, (one, _))| (name.clone(), one.clone())).collect();
            schema["properties"] = Value::Object(named);
            schema
        },
    )
}

fn root() -> impl Strategy<Value = Value> {
    (object(schema(true)), schema(false)).prop_map(|(mut root, definition)| {
        root["$defs"] = json!({"D": definition});
        root
    })
}

/// Arbitrary JSON that resembles a schema.
fn nonsense() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z#/$]{0,6}".prop_map(Value::from),
        prop_oneof![Just("object"), Just("string"), Just("#"), Just("#/$defs/a")]
            .prop_map(Value::from),
    ];
    let keyword = prop_oneof![
        Just("type"),
        Just("properties"),
        Just("items"),
        Just("anyOf"),
        Just("allOf"),
        Just("oneOf"),
        Just("$ref"),
        Just("$defs"),
        Just("required"),
        Just("enum"),
        Just("a"),
        Just("additionalProperties"),
        Just("const"),
        Just("description"),
        Just("minimum"),
        Just("not"),
        Just("if"),
        Just("dependencies"),
        Just("nullable"),
        Just("default"),
    ];
    leaf.prop_recursive(5, 64, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((keyword.clone(), inner), 0..6).prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

/// Numbers from a seed that choose the value for a schema.
struct Choice(u64);

impl Choice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

/// A value that a strict model could send.
fn value_of(schema: &Value, root: &Value, choice: &mut Choice) -> Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return value_of(root.pointer(&reference[1..]).unwrap(), root, choice);
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        return value_of(&branches[choice.below(branches.len())], root, choice);
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options[choice.below(options.len())].clone();
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => vec![kind.as_str().unwrap()],
    };
    match kinds[choice.below(kinds.len())] {
        "null" => Value::Null,
        "boolean" => (choice.below(2) == 0).into(),
        "string" => ["", "x", "k"][choice.below(3)].into(),
        "integer" => {
            let least = schema.get("minimum").and_then(Value::as_i64).unwrap_or(-3);
            let most = schema.get("maximum").and_then(Value::as_i64).unwrap_or(3);
            let span = usize::try_from(most - least + 1).unwrap();
            (least + i64::try_from(choice.below(span)).unwrap()).into()
        }
        "number" => [0.5, 1.0, 2.25][choice.below(3)].into(),
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let length = usize::try_from(least).unwrap() + choice.below(2);
            (0..length).map(|_| value_of(&schema["items"], root, choice)).collect()
        }
        "object" => schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, property)| (name.clone(), value_of(property, root, choice)))
            .collect(),
        other => panic!("no value of type {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn converted_strict_arguments_fit_the_tools_own_schema(
        schema in root(),
        seed in any::<u64>(),
    ) {
        let export = export([("t", "d", &schema)], Target::OpenAiStrict);
        // A random `allOf` over a random union may be refused; other tests cover that.
        prop_assume!(export.refused.is_empty());
        check(&export.tools[0], Target::OpenAiStrict);
        let strict = &export.tools[0]["function"]["parameters"];
        let own = jsonschema::draft202012::new(&schema).unwrap();
        let theirs = jsonschema::draft202012::new(strict).unwrap();
        let mut choice = Choice(seed);
        for _ in 0..8 {
            let sent = value_of(strict, strict, &mut choice);
            prop_assert!(theirs.is_valid(&sent), "{sent} does not fit {strict}");
            let restored = from_strict(sent.clone(), &schema);
            prop_assert!(own.is_valid(&restored), "{sent} became {restored}; {schema}");
        }
    }

    #[test]
    fn every_target_takes_or_refuses_random_schemas(schema in root()) {
        for &target in Target::ALL {
            let export = export([("t", "d", &schema)], target);
            prop_assert_eq!(export.tools.len() + export.refused.len(), 1);
            if let [tool] = export.tools.as_slice() {
                check(tool, target);
            }
        }
    }

    #[test]
    fn nonsense_is_exported_by_the_rules_or_refused(schema in nonsense(), arguments in nonsense()) {
        for &target in Target::ALL {
            if let [tool] = export([("t", "d", &schema)], target).tools.as_slice() {
                check(tool, target);
            }
        }
        let _ = from_strict(arguments, &schema);
    }

    #[test]
    fn names_are_mapped_one_to_one_and_back(
        names in btree_set(prop_oneof!["[a_ .]{0,3}", "[a-c_/]{60,70}", "\\PC{0,5}"], 0..20),
        reverse in any::<bool>(),
    ) {
        let schema = json!({"type": "object"});
        for &target in Target::ALL {
            let mut declarations: Vec<_> =
                names.iter().map(|name| (name.as_str(), "d", &schema)).collect();
            let sorted = export(declarations.clone(), target);
            if reverse {
                declarations.reverse();
            }
            prop_assert_eq!(&export(declarations, target).names, &sorted.names);
            prop_assert_eq!(sorted.names.iter().count(), names.len());
            let mut theirs = std::collections::BTreeSet::new();
            for name in &names {
                let mapped = sorted.names.to_provider(name).unwrap();
                prop_assert!(theirs.insert(mapped.to_owned()), "{mapped:?} twice");
                prop_assert_eq!(sorted.names.from_provider(mapped), Some(name.as_str()));
            }
            for tool in &sorted.tools {
                check(tool, target);
            }
        }
    }
}

proptest! {
    // Each case exports the whole sample to every target.
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_tools_does_not_matter(seed in any::<u64>()) {
        let rows = sample();
        let mut shuffled: Vec<&Row> = rows.iter().collect();
        let mut choice = Choice(seed);
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, choice.below(at + 1));
        }
        for &target in Target::ALL {
            let sorted = export(rows.iter().map(Row::declaration), target);
            let other = export(shuffled.iter().map(|row| row.declaration()), target);
            prop_assert_eq!(sorted.to_json(), other.to_json());
            prop_assert_eq!(sorted, other);
        }
    }
}
