//! Tools of the host that are made from typed closures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
use toolcrib_tool::{DefinitionError, ErrorKind, Json, NoArguments, ToolEntry};

use crate::harness::{call, turn};

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    total: i64,
}

#[tokio::test]
async fn the_schemas_of_a_typed_closure_are_those_of_its_types() {
    let add = |args: Add, _| async move { Json(Sum { total: args.a + args.b }) };
    let entry = ToolEntry::from_fn("add", "Add.", add).expect("it is right");
    let input = entry.definition.input_schema();
    assert_eq!(input["properties"]["a"]["description"], "The first number.");
    assert_eq!(
        (&input["required"], &input["additionalProperties"]),
        (&json!(["a", "b"]), &json!(false))
    );
    let output = entry.definition.output_schema().expect("its type says it");
    assert_eq!(output["required"], json!(["total"]));

    let turn = turn([entry]);
    let sum = call(&turn, "add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.data(), Some(&json!({"total": 3})));
    let misfit = call(&turn, "add", json!({"a": 1, "c": 2})).await;
    assert_eq!(misfit.error_kind(), Some(ErrorKind::InvalidArgs));
}

#[tokio::test]
async fn a_registry_takes_typed_closures_one_after_another() {
    let mut builder = RegistryBuilder::new();
    builder
        .tool("add", "Add.", |args: Add, _| async move { (args.a + args.b).to_string() })
        .and_then(|both| both.tool("ping", "Answer.", |_: NoArguments, _| async { "pong" }))
        .expect("they are right");
    let registry = Registry::new(builder.build());
    let turn = Executor::new(registry, ExecutorConfig::default()).turn(TurnOptions::default());
    assert_eq!(call(&turn, "add", json!({"a": 2, "b": 2})).await.text(), "4");
    assert_eq!(call(&turn, "ping", json!({})).await.text(), "pong");
    let misfit = call(&turn, "ping", json!({"a": 1})).await;
    assert_eq!(misfit.error_kind(), Some(ErrorKind::InvalidArgs));
}

#[test]
fn a_closure_that_cannot_be_a_tool_is_refused_with_the_reason() {
    let refused = |name: &str, description: &str| {
        let entry = ToolEntry::from_fn(name, description, |_: NoArguments, _| async { "" });
        entry.expect_err("it is refused").to_string()
    };
    assert!(refused("has space", "A tool.").contains("has space"));
    assert!(refused("ping", "").contains("it has no description"));

    let text = ToolEntry::from_fn("echo", "Echo.", |text: String, _| async move { text });
    let Err(DefinitionError::Field { problem, .. }) = text else { panic!("it takes a text") };
    assert!(problem.contains("is not an object schema"));
}

#[tokio::test]
async fn a_closure_over_a_json_value_takes_any_object() {
    let echo = ToolEntry::from_fn("echo", "Echo.", |any: Value, _| async move { any });
    let turn = turn([echo.expect("it is right")]);
    assert_eq!(call(&turn, "echo", json!({"a": [1]})).await.data(), Some(&json!({"a": [1]})));
    assert!(!call(&turn, "echo", json!(["a"])).await.is_success());
}
