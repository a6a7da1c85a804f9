//! The providers' rules, checked independently of the crate's code.

use serde_json::{Map, Value};
use toolcrib_wire::Target;

/// Panics with the rule that an exported tool breaks.
pub(crate) fn check(tool: &Value, target: Target) {
    let (function, schema) = match target {
        Target::OpenAiChat | Target::OpenAiStrict => {
            assert_eq!(tool["type"], "function");
            (&tool["function"], tool["function"].get("parameters"))
        }
        Target::Responses | Target::ResponsesStrict => {
            assert_eq!(tool["type"], "function");
            assert!(tool["strict"].is_boolean());
            (tool, tool.get("parameters"))
        }
        Target::Anthropic => (tool, tool.get("input_schema")),
        Target::Gemini => (tool, tool.get("parameters")),
        Target::Mcp => (tool, tool.get("inputSchema")),
        other => panic!("no rules for {other}"),
    };
    check_name(function["name"].as_str().unwrap(), target);
    check_description(function.get("description"), target);
    let Some(schema) = schema else {
        assert_eq!(target, Target::Gemini, "only Gemini may be told of no parameters");
        return;
    };
    assert_eq!(schema["type"], "object", "the root is an object");
    assert!(jsonschema::draft202012::meta::is_valid(schema), "a draft 2020-12 schema: {schema}");
    if let Err(error) = jsonschema::draft202012::new(schema) {
        panic!("{schema} does not compile: {error}");
    }
    match target {
        Target::OpenAiStrict | Target::ResponsesStrict => {
            assert!(schema.get("anyOf").is_none(), "no choice at the root");
            strict(schema, 0);
            for definition in schema.get("$defs").and_then(Value::as_object).into_iter().flatten() {
                strict(definition.1, 0);
            }
        }
        Target::Gemini => gemini(schema),
        Target::Mcp => {}
        _ => plain(schema, target),
    }
}

fn check_name(name: &str, target: Target) {
    let longest = if target == Target::Mcp { 128 } else { 64 };
    assert!((1..=longest).contains(&name.len()), "{target}: the length of {name:?}");
    let dots = matches!(target, Target::Gemini | Target::Mcp);
    assert!(
        name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c) || (dots && c == '.')),
        "{target}: the characters of {name:?}"
    );
    if target == Target::Gemini {
        let first = name.chars().next().unwrap();
        assert!(first.is_ascii_alphabetic() || first == '_', "the start of {name:?}");
    }
}

fn check_description(description: Option<&Value>, target: Target) {
    let text = description.map(|text| text.as_str().unwrap());
    match target {
        Target::Gemini => assert!(!text.unwrap().is_empty(), "Gemini wants a description"),
        Target::Anthropic | Target::Mcp => {}
        _ => assert!(text.unwrap_or_default().chars().count() <= 1024),
    }
}

fn object(schema: &Value) -> &Map<String, Value> {
    schema.as_object().unwrap_or_else(|| panic!("{schema} is no object"))
}

fn has_type(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

fn strict(schema: &Value, depth: usize) {
    const KNOWN: [&str; 21] = [
        "type",
        "title",
        "description",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ];
    let keywords = object(schema);
    for keyword in keywords.keys() {
        assert!(KNOWN.contains(&keyword.as_str()), "strict mode has no `{keyword}`: {schema}");
    }
    if let Some(reference) = keywords.get("$ref") {
        assert_eq!(keywords.len(), 1, "nothing stands beside $ref: {schema}");
        assert!(reference == "#" || reference.as_str().unwrap().starts_with("#/$defs/"));
        return;
    }
    let branches = keywords.get("anyOf");
    assert!(keywords.contains_key("type") != branches.is_some(), "a type or a choice: {schema}");
    for branch in branches.and_then(Value::as_array).into_iter().flatten() {
        strict(branch, depth);
    }
    let depth = depth + usize::from(has_type(schema, "object") || has_type(schema, "array"));
    assert!(depth <= 10, "ten levels");
    if has_type(schema, "object") {
        assert_eq!(schema["additionalProperties"], false, "closed: {schema}");
        let mut names: Vec<&str> =
            object(&schema["properties"]).keys().map(String::as_str).collect();
        let mut required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        names.sort_unstable();
        required.sort_unstable();
        assert_eq!(names, required, "every property is required");
        for property in object(&schema["properties"]).values() {
            strict(property, depth);
        }
    }
    if has_type(schema, "array") {
        strict(&schema["items"], depth);
    }
}

fn gemini(schema: &Value) {
    const KNOWN: [&str; 19] = [
        "type",
        "description",
        "enum",
        "nullable",
        "anyOf",
        "properties",
        "required",
        "items",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "title",
    ];
    let keywords = object(schema);
    for keyword in keywords.keys() {
        assert!(KNOWN.contains(&keyword.as_str()), "Gemini has no `{keyword}`: {schema}");
    }
    if let Some(branches) = keywords.get("anyOf") {
        assert_eq!(keywords.len(), 1, "nothing stands beside anyOf: {schema}");
        branches.as_array().unwrap().iter().for_each(gemini);
        return;
    }
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("one type: {schema}"));
    if let Some(options) = keywords.get("enum") {
        assert_eq!(kind, "string", "enums are of strings: {schema}");
        let options = options.as_array().unwrap();
        assert!(options.iter().all(|option| option.as_str().is_some_and(|text| !text.is_empty())));
    }
    if let Some(format) = keywords.get("format") {
        let known = ["date-time", "int32", "int64", "float", "double"];
        assert!(known.iter().any(|known| format == known), "Gemini has no format {format}");
    }
    match kind {
        "object" => {
            let properties = object(&schema["properties"]);
            assert!(!properties.is_empty(), "objects have properties: {schema}");
            for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten() {
                assert!(properties.contains_key(name.as_str().unwrap()), "{name} is a property");
            }
            properties.values().for_each(gemini);
        }
        "array" => gemini(&schema["items"]),
        "string" | "integer" | "number" | "boolean" | "null" => {}
        other => panic!("Gemini has no type {other}"),
    }
}

fn plain(schema: &Value, target: Target) {
    for keyword in ["anyOf", "oneOf", "allOf", "not", "enum", "$ref"] {
        assert!(schema.get(keyword).is_none(), "no `{keyword}` at the root: {schema}");
    }
    plain_inside(schema, target);
}

fn plain_inside(schema: &Value, target: Target) {
    let Some(keywords) = schema.as_object() else { return };
    if target != Target::Anthropic && has_type(schema, "array") {
        assert!(keywords.contains_key("items"), "lists say of what: {schema}");
    }
    if let Some(properties) = keywords.get("properties") {
        for (name, property) in object(properties) {
            if target == Target::Anthropic {
                assert!((1..=64).contains(&name.len()));
                assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)));
            }
            plain_inside(property, target);
        }
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(inner) = keywords.get(keyword) {
            plain_inside(inner, target);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in keywords.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            plain_inside(branch, target);
        }
    }
}
