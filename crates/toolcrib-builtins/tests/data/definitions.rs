//! The definitions of the tools of this family.

use serde_json::json;
use toolcrib_tool::NativeTool;

use crate::harness::{call, context};

/// The tools of the family.
fn native_tools() -> Vec<&'static NativeTool> {
    let tools = toolcrib_tool::native_tools().into_iter();
    tools.filter(|tool| context(tool.name).definition().category() == "data").collect()
}

#[test]
fn the_family_is_linked_in_with_its_origin() {
    let found: Vec<_> = native_tools().iter().map(|tool| (tool.name, tool.krate)).collect();
    let expected =
        ["calculator", "json_process", "text_process"].map(|name| (name, "toolcrib-builtins"));
    assert_eq!(found, expected);
}

#[test]
fn every_tool_only_reads_and_stays_on_this_host() {
    for tool in native_tools() {
        let cx = context(tool.name);
        let definition = cx.definition();
        let hints = definition.annotations();
        assert!(hints.read_only && hints.idempotent && !hints.destructive && !hints.open_world);
        assert_eq!(definition.category(), "data");
        assert!(definition.blocking() && definition.timeout().is_some());
    }
}

#[test]
fn every_example_validates_and_runs() {
    for tool in native_tools() {
        let cx = context(tool.name);
        let schema = cx.definition().input_schema();
        let validator = jsonschema::validator_for(schema).unwrap();
        assert!(!validator.is_valid(&json!({"no_such_argument": 1})), "{}", tool.name);
        let examples = cx.definition().input_examples();
        assert!(examples.len() >= 3, "{} has too few examples", tool.name);
        for example in examples {
            assert!(validator.is_valid(example), "{}: {example}", tool.name);
            let output = call(tool.name, example).unwrap();
            if let Some(schema) = cx.definition().output_schema() {
                let data = output.data().unwrap();
                assert!(jsonschema::is_valid(schema, data), "{}: {data}", tool.name);
            }
        }
    }
}

#[test]
fn every_argument_is_described() {
    for tool in native_tools() {
        let cx = context(tool.name);
        let properties = cx.definition().input_schema()["properties"].clone();
        for (name, property) in properties.as_object().unwrap() {
            assert!(property["description"].is_string(), "{}.{name}", tool.name);
        }
    }
}
