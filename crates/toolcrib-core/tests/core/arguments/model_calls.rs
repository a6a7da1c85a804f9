//! Calls as models make them: the verdict before coercion agrees with the recorded one, and coerced
//! values are right.
//!
//! `TOOLCRIB_MODEL_CALLS` names a larger file of the same form: one JSON object per line with
//! `tool.parameters`, `call.arguments`, `valid` and, if coercion should succeed, `rescued`.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};
use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};

#[tokio::test]
async fn verdicts_agree_and_rescues_are_right() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/core/arguments/model_calls.jsonl");
    let path = std::env::var("TOOLCRIB_MODEL_CALLS").unwrap_or_else(|_| sample.to_owned());
    let text = std::fs::read_to_string(&path).expect("the calls");
    let mut rows = 0;
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a row");
        rows += 1;
        let definition = ToolDefinition::builder("called")
            .description("A tool a model called.")
            .input_schema(row["tool"]["parameters"].clone())
            .build()
            .expect("a definition");
        let echo = tool_fn(|args: Value, _| async move { json!({"args": args}) });
        let mut builder = RegistryBuilder::new();
        let source = Source::new(Layer::Host, "test");
        let _ = builder.register(ToolEntry::new(definition, Arc::new(echo), source));
        let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
        let turn = executor.turn(TurnOptions::default());
        let result = turn.call(ToolCall::new("1", "called", &row["call"]["arguments"])).await;

        let coerced = result.output().is_some_and(|output| output.meta().contains_key("coerced"));
        assert_eq!(
            result.is_success() && !coerced,
            row["valid"] == true,
            "{}: {}",
            row["id"],
            result.text()
        );
        if coerced {
            println!("rescued {}: {}", row["id"], result.text());
        }
        if let Some(expected) = row.get("rescued") {
            assert_eq!(result.data().map(|data| &data["args"]), Some(expected), "{}", row["id"]);
        }
    }
    assert!(rows >= 10, "only {rows} calls");
}
