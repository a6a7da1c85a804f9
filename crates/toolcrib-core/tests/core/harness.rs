//! Small registries of closures.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{
    Executor, ExecutorConfig, Registration, Registry, RegistryBuilder, Turn, TurnOptions,
};
use toolcrib_tool::{
    Layer, Source, Tool, ToolCall, ToolDefinition, ToolDefinitionBuilder, ToolEntry, ToolResult,
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
    Executor::new(registry(entries), ExecutorConfig::default())
}

pub(crate) fn turn(entries: impl IntoIterator<Item = ToolEntry>) -> Turn {
    executor(entries).turn(TurnOptions::default())
}

pub(crate) async fn call(turn: &Turn, name: &str, arguments: Value) -> ToolResult {
    turn.call(ToolCall::new("call_1", name, arguments)).await
}
