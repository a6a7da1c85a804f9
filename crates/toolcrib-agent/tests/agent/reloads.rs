//! Definitions that change while a run goes on.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use toolcrib_agent::Agent;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_core::{Executor, Registry};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};

/// The tool `level` in a version that needs another argument than the others.
fn level(version: &str) -> ToolEntry {
    let definition = ToolDefinition::builder("level")
        .description(format!("Version {version}."))
        .input_schema(json!({
            "type": "object",
            "properties": {version: {"type": "integer"}},
            "required": [version],
            "additionalProperties": false,
        }))
        .build()
        .unwrap();
    let told = format!("level of {version}");
    let body = tool_fn(move |_: Value, _| {
        let told = told.clone();
        async move { told }
    });
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"))
}

/// A run whose first call replaces `level`, beside a call of it; returns the conversation and how often the second request
/// names each version.
async fn reloaded_between_rounds(pins: bool) -> (String, [bool; 2]) {
    let executor: Arc<OnceLock<Executor>> = Arc::default();
    let own = Arc::clone(&executor);
    let registry = Registry::scratch()
        .tool("reload", move |_, _| {
            let own = Arc::clone(&own);
            async move {
                let registry = own.get().unwrap().registry();
                registry.unregister(&Source::new(Layer::Host, "test"), "level").unwrap();
                registry.register(level("new")).unwrap();
                "reloaded"
            }
        })
        .entry(level("old"))
        .build()
        .unwrap();
    let executor = executor.get_or_init(|| Executor::builder(registry).build()).clone();
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("reload", json!({})).and_call("level", json!({"old": 1})),
        ScriptedTurn::call("level", json!({"old": 2})).and_call("level", json!({"new": 2})),
        ScriptedTurn::text("Done."),
    ]));
    let agent = Agent::builder(executor, model.clone()).pin_tools(pins).build();
    let report = agent.run("Go.").await.unwrap();
    assert_eq!(report.text(), "Done.");
    let second = model.requests()[1]["tools"].to_string();
    let is_shown = ["Version old.", "Version new."].map(|version| second.contains(version));
    (crate::fixture::transcript(&report).join("\n"), is_shown)
}

#[tokio::test]
async fn the_next_round_has_the_new_definitions_and_checks_calls_against_them() {
    let (said, is_shown) = reloaded_between_rounds(false).await;
    assert_eq!(is_shown, [false, true], "{said}");
    assert!(said.contains("call_1_1: level of old"), "a round keeps its definitions: {said}");
    assert!(said.contains("call_2_0: Error") && said.contains("call_2_1: level of new"), "{said}");
}

#[tokio::test]
async fn a_run_with_pinned_tools_shows_the_first_definitions_and_calls_the_tools_there_are() {
    let (said, is_shown) = reloaded_between_rounds(true).await;
    assert_eq!(is_shown, [true, false], "{said}");
    assert!(said.contains("call_2_0: Error") && said.contains("call_2_1: level of new"), "{said}");
}
