//! The meaning of exported schemas, case by case.

use serde_json::{Value, json};
use toolcrib_wire::{Export, Reason, Target, export, from_gemini, from_strict};

fn exported(schema: &Value, target: Target) -> Export {
    export([("t", "d", schema)], target)
}

fn parameters(schema: &Value, target: Target) -> Value {
    let export = exported(schema, target);
    assert!(export.refused.is_empty(), "{}", export.refused[0]);
    match target {
        Target::OpenAiChat | Target::OpenAiStrict => {
            export.tools[0]["function"]["parameters"].clone()
        }
        Target::Anthropic => export.tools[0]["input_schema"].clone(),
        _ => export.tools[0]["parameters"].clone(),
    }
}

fn reason(schema: &Value, target: Target) -> Reason {
    exported(schema, target).refused[0].reason.clone()
}

#[test]
fn strict_mode_makes_optional_properties_nullable() {
    let schema = json!({
        "type": "object",
        "properties": {
            "plain": {"type": "string", "minLength": 2},
            "choice": {"type": "string", "enum": ["a", "b"]},
            "fixed": {"const": 1, "description": "One."},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "nullable": {"type": ["integer", "null"]},
            "shared": {"$ref": "#/$defs/S"},
        },
        "$defs": {"S": {"type": "string"}, "Unused": {"patternProperties": {}}},
    });
    assert_eq!(
        parameters(&schema, Target::OpenAiStrict),
        json!({
            "type": "object",
            "properties": {
                "plain": {"type": ["string", "null"], "description": "(minLength: 2)"},
                "choice": {"type": ["string", "null"], "enum": ["a", "b", null]},
                "fixed": {
                    "description": "One.",
                    "anyOf": [{"type": "integer", "const": 1}, {"type": "null"}],
                },
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
                "nullable": {"type": ["integer", "null"]},
                "shared": {"anyOf": [{"$ref": "#/$defs/S"}, {"type": "null"}]},
            },
            "required": ["choice", "either", "fixed", "nullable", "plain", "shared"],
            "additionalProperties": false,
            "$defs": {"S": {"type": "string"}},
        })
    );
}

#[test]
fn strict_mode_refuses_what_it_cannot_express() {
    let property = |schema: Value| json!({"type": "object", "properties": {"p": schema}});
    let refused = |schema: Value| reason(&property(schema), Target::OpenAiStrict);
    assert_eq!(refused(json!({"type": "object"})), Reason::OpenObject);
    assert_eq!(
        refused(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        Reason::OpenObject
    );
    assert_eq!(refused(json!({})), Reason::AnyValue);
    assert_eq!(refused(json!({"type": "array"})), Reason::AnyValue);
    assert_eq!(
        refused(json!({"type": "object", "patternProperties": {"a": true}})),
        Reason::Keyword("patternProperties")
    );
    assert_eq!(refused(json!({"type": "string", "not": {"const": "a"}})), Reason::Keyword("not"));
    assert_eq!(refused(json!({"type": "string", "if": {"const": "a"}})), Reason::Keyword("if"));
    let choice = json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {}}]});
    assert_eq!(reason(&choice, Target::OpenAiStrict), Reason::Keyword("anyOf"));
    let ghost = json!({"type": "object", "properties": {}, "required": ["ghost"]});
    assert_eq!(reason(&ghost, Target::OpenAiStrict), Reason::UnknownRequired("ghost".to_owned()));
}

#[test]
fn a_refusal_says_where() {
    let schema = json!({"type": "object", "properties": {"a/b": {"type": "array", "items": {}}}});
    let refusal = &exported(&schema, Target::OpenAiStrict).refused[0];
    assert_eq!(refusal.at, "/properties/a~1b/items");
    assert_eq!(
        refusal.to_string(),
        "tool \"t\" cannot be exported: any value fits, and the provider needs a type (at \
         /properties/a~1b/items of its input schema)"
    );
}

#[test]
fn references_that_multiply_are_stopped() {
    // Thirty definitions, each of which contains the next one twice.
    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1), "description": "x"});
        definitions.insert(
            format!("d{level}"),
            json!({"type": "object", "properties": {"a": next, "b": next}}),
        );
    }
    definitions.insert("d30".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    for target in [Target::Gemini, Target::OpenAiStrict] {
        assert!(matches!(reason(&schema, target), Reason::Limit { .. }), "{target}");
    }
}

#[test]
fn unions_that_multiply_are_stopped_on_the_way_back() {
    // Reading this without a limit would take 2^64 steps.
    let twice = json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]});
    let parts = json!({"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}]});
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}},
        "$defs": {"A": twice, "B": parts},
    });
    let sent = json!({"a": {"x": null}, "b": null});
    assert_eq!(from_strict(sent.clone(), &schema)["a"], sent["a"]);
    assert_eq!(from_gemini(sent.clone(), &schema), sent);
    for &target in Target::ALL {
        let export = exported(&schema, target);
        assert_eq!(export.tools.len() + export.refused.len(), 1);
    }
}

#[test]
fn strict_mode_gives_recursive_places_a_name() {
    let schema = json!({
        "type": "object",
        "properties": {"node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/properties/node"}, "name": {"type": "string"}},
            "required": ["name"],
        }},
        "required": ["node"],
    });
    let strict = parameters(&schema, Target::OpenAiStrict);
    let name = "properties_node";
    let next = json!({"anyOf": [{"$ref": format!("#/$defs/{name}")}, {"type": "null"}]});
    assert_eq!(strict["$defs"][name]["properties"]["next"], next);
    let sent = json!({"node": {"name": "a", "next": {"name": "b", "next": null}}});
    let restored = from_strict(sent, &schema);
    assert_eq!(restored, json!({"node": {"name": "a", "next": {"name": "b"}}}));
}

#[test]
fn strict_mode_takes_five_thousand_properties_and_no_more() {
    let many = |count: usize| {
        let named: serde_json::Map<String, Value> =
            (0..count).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": named})
    };
    assert_eq!(exported(&many(5000), Target::OpenAiStrict).tools.len(), 1);
    assert_eq!(
        reason(&many(5001), Target::OpenAiStrict),
        Reason::Limit { what: "properties", limit: 5000 }
    );
}

#[test]
fn gemini_gets_a_description_for_missing_keywords() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": {"const": "m"},
            "floor": {"enum": [1, 2]},
            "exact": {"type": "integer", "const": 7},
            "maybe": {"type": ["number", "null"], "exclusiveMinimum": 0},
            "either": {"description": "Who.", "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "when": {"type": "string", "format": "date"},
            "place": {"$ref": "#/$defs/Place", "description": "Where."},
        },
        "required": ["unit"],
        "additionalProperties": false,
        "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number", "format": "double"}}}},
    });
    assert_eq!(
        parameters(&schema, Target::Gemini),
        json!({
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["m"]},
                "floor": {"type": "integer", "description": "One of: 1, 2."},
                "exact": {"type": "integer", "minimum": 7, "maximum": 7},
                "maybe": {"type": "number", "nullable": true, "description": "(exclusiveMinimum: 0)"},
                "either": {"anyOf": [
                    {"type": "string", "nullable": true, "description": "Who."},
                    {"type": "integer", "nullable": true, "description": "Who."},
                ]},
                "when": {"type": "string", "description": "(format: \"date\")"},
                "place": {
                    "type": "object",
                    "description": "Where.",
                    "properties": {"lat": {"type": "number", "format": "double"}},
                },
            },
            "required": ["unit"],
        })
    );
}

#[test]
fn a_tool_without_parameters_has_none_for_gemini() {
    let schema = json!({"type": "object", "properties": {}});
    assert!(exported(&schema, Target::Gemini).tools[0].get("parameters").is_none());
}

#[test]
fn forced_nulls_are_removed_wherever_they_are() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": ["string", "null"]}}},
            "list": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "by": {"anyOf": [
                {"type": "object", "properties": {"kind": {"const": "id"}, "v": {"type": "integer"}}, "required": ["kind"]},
                {"type": "object", "properties": {"kind": {"const": "no"}, "v": {"type": "null"}}, "required": ["kind", "v"]},
            ]},
        },
        "$defs": {"Item": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    });
    let sent = json!({
        "a": {"b": null, "c": null},
        "list": [{"x": null}, {"x": 1}],
        "by": {"kind": "no", "v": null},
    });
    assert_eq!(
        from_strict(sent, &schema),
        json!({"a": {"c": null}, "list": [{}, {"x": 1}], "by": {"kind": "no", "v": null}})
    );
    let sent = json!({"a": null, "list": null, "by": {"kind": "id", "v": null}});
    assert_eq!(from_strict(sent, &schema), json!({"by": {"kind": "id"}}));
}

#[test]
fn json_text_is_parsed_only_where_it_was_requested() {
    let schema = json!({
        "type": "object",
        "properties": {
            "free": {"type": "object"},
            "text": {"type": "string"},
            "lists": {"type": "array", "items": {"type": "object", "additionalProperties": true}},
        },
    });
    let object = "{\"a\":1}";
    let sent = json!({"free": object, "text": object, "lists": [object, "no json", {"b": 2}]});
    assert_eq!(
        from_gemini(sent, &schema),
        json!({"free": {"a": 1}, "text": object, "lists": [{"a": 1}, "no json", {"b": 2}]})
    );
}

#[test]
fn anthropic_gets_the_schema_unchanged() {
    let schema = json!({
        "type": "object",
        "properties": {"m": {"type": "object", "patternProperties": {"^x": {"type": "string"}}}},
        "required": ["m"],
    });
    let export = exported(&schema, Target::Anthropic);
    assert_eq!(export.tools[0]["input_schema"], schema);
    assert!(export.notes.is_empty());
}

#[test]
fn one_of_two_tools_with_one_name_is_refused() {
    let (a, b) = (json!({"type": "object"}), json!({"type": "object", "properties": {}}));
    let there = export([("t", "first", &a), ("t", "second", &b)], Target::Mcp);
    let back = export([("t", "second", &b), ("t", "first", &a)], Target::Mcp);
    assert_eq!(there, back);
    assert_eq!(there.tools.len(), 1);
    assert_eq!(there.refused[0].reason, Reason::Duplicate);
    // Two equal declarations are one tool.
    assert!(export([("t", "d", &a), ("t", "d", &a)], Target::Mcp).refused.is_empty());
}

#[test]
fn a_long_description_is_cut_for_openai_only() {
    let schema = json!({"type": "object"});
    let long = "One sentence. ".repeat(200);
    let declaration = [("t", long.as_str(), &schema)];
    let chat = export(declaration, Target::OpenAiChat);
    let text = chat.tools[0]["function"]["description"].as_str().unwrap();
    assert!(text.chars().count() <= 1024 && text.ends_with("sentence. …"), "{text}");
    assert_eq!(chat.notes[0].text, "the description is cut to 1024 characters");
    let claude = export(declaration, Target::Anthropic);
    assert_eq!(claude.tools[0]["description"], long.as_str());
}

#[test]
fn an_empty_text_is_in_no_enum_for_gemini() {
    let schema = json!({
        "type": "object",
        "properties": {
            "only": {"const": "", "description": "Nothing."},
            "with_others": {"type": "string", "enum": ["", "a", "b"]},
            "feed": {
                "anyOf": [{"const": ""}, {"type": "string", "enum": ["world"]}, {"type": "integer"}],
                "description": "Which.",
                "default": "",
            },
        },
    });
    assert_eq!(
        parameters(&schema, Target::Gemini)["properties"],
        json!({
            "only": {"type": "string", "description": "Nothing. (An empty text.)"},
            "with_others": {
                "type": "string",
                "description": "(One of: \"a\", \"b\", or an empty text.)",
            },
            "feed": {"anyOf": [
                {"type": "string", "description": "Which. (An empty text.) (default: \"\")"},
                {"type": "string", "enum": ["world"], "description": "Which."},
                {"type": "integer", "description": "Which."},
            ]},
        })
    );
    let notes = exported(&schema, Target::Gemini).notes;
    assert!(notes.iter().any(|note| note.at == "/properties/only" && note.restated), "{notes:?}");
}

#[test]
fn an_optional_parameter_that_no_value_fits_is_left_out_with_a_note() {
    let never = json!({"type": "boolean", "enum": ["True", "False", "dontcare"]});
    let inside = json!({"type": "object", "properties": {"b": never}, "required": ["b"]});
    let schema = json!({
        "type": "object",
        "properties": {"a": never, "kept": {"type": "string"}, "object": inside},
        "required": ["kept"],
    });
    for target in [Target::Gemini, Target::OpenAiStrict] {
        let export = exported(&schema, target);
        let known = parameters(&schema, target)["properties"].clone();
        let names: Vec<&String> = known.as_object().unwrap().keys().collect();
        assert_eq!(names, ["kept"], "{target}");
        let left_out: Vec<&str> = export
            .notes
            .iter()
            .filter(|note| note.text.contains("left out") && !note.restated)
            .map(|note| note.at.as_str())
            .collect();
        assert!(left_out.contains(&"/properties/a"), "{target}: {left_out:?}");
        assert!(left_out.contains(&"/properties/object"), "{target}: {left_out:?}");
    }
    // A tool cannot be called without a required one.
    let required = json!({"type": "object", "properties": {"a": never}, "required": ["a"]});
    for target in [Target::Gemini, Target::OpenAiStrict] {
        assert_eq!(reason(&required, target), Reason::AdmitsNothing, "{target}");
    }
    // Gemini has no objects without properties.
    let hollow = json!({"type": "object", "properties": {"b": never}});
    let schema = json!({"type": "object", "properties": {"o": hollow, "c": {"type": "string"}}});
    let known = parameters(&schema, Target::Gemini);
    assert_eq!(known["properties"], json!({"c": {"type": "string"}}));
}
