//! Small registries of tools made from closures.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{
    Executor, ExecutorConfig, Registration, Registry, RegistryBuilder, Turn, TurnOptions,
};
use toolcrib_tool::{
    IntoOutcome, Layer, Source, Tool, ToolCall, ToolDefinition, ToolDefinitionBuilder, ToolEntry,
    ToolResult, tool_fn,
};

pub(crate) fn define(name: &str) -> ToolDefinitionBuilder {
    ToolDefinition::builder(name).description("A tool for a test.")
}

pub(crate) fn source() -> Source {
    Source::new(Layer::Host, "test")
}

pub(crate) fn entry(definition: ToolDefinitionBuilder, body: impl Tool) -> ToolEntry {
    let definition = definition.build().expect("valid definition");
    ToolEntry::new(definition, Arc::new(body), source())
}

pub(crate) fn registry(entries: impl IntoIterator<Item = ToolEntry>) -> Registry {
    let mut builder = RegistryBuilder::new();
    for entry in entries {
        assert_eq!(builder.register(entry), Registration::Registered);
    }
    Registry::new(builder.build())
}

pub(crate) fn executor(entries: impl IntoIterator<Item = ToolEntry>) -> Executor {
    configured(entries, ExecutorConfig::default())
}

/// An executor with other settings.
pub(crate) fn configured(
    entries: impl IntoIterator<Item = ToolEntry>,
    config: ExecutorConfig,
) -> Executor {
    Executor::new(registry(entries), config)
}

pub(crate) fn turn(entries: impl IntoIterator<Item = ToolEntry>) -> Turn {
    executor(entries).turn(TurnOptions::default())
}

pub(crate) async fn call(turn: &Turn, name: &str, arguments: Value) -> ToolResult {
    turn.call(ToolCall::new("call_1", name, arguments)).await
}

/// A tool that answers with its arguments.
pub(crate) fn echo(definition: ToolDefinitionBuilder) -> ToolEntry {
    entry(definition, tool_fn(|args: Value, _| async move { args }))
}

/// A tool that always returns this answer.
pub(crate) fn says<R: IntoOutcome + Clone + Send + Sync + 'static>(
    name: &str,
    result: R,
) -> ToolEntry {
    entry(define(name), tool_fn(move |_: Value, _| std::future::ready(result.clone())))
}
