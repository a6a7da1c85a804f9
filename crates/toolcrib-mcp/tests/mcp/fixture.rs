//! A server with a few tools, one for each kind of result.

use std::future::pending;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcrib_core::{Executor, ExecutorConfig, Registry, RegistryBuilder};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{
    Content, ContextValues, ErrorKind, Layer, Link, Source, Tool, ToolDefinition,
    ToolDefinitionBuilder, ToolEntry, ToolError, ToolOutput, schema_for, tool_fn,
};

/// How many tools clients see.
pub(crate) const TOOLS: usize = 10;

/// What the tool `wait` reports to the test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Started,
    Dropped,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// Reports when the call that holds it was dropped.
struct DropWitness(UnboundedSender<Event>);

impl Drop for DropWitness {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Dropped);
    }
}

pub(crate) fn server() -> McpServer {
    server_and_events().0
}

pub(crate) fn server_and_events() -> (McpServer, UnboundedReceiver<Event>) {
    let (events, seen) = unbounded_channel();
    let mut registry = RegistryBuilder::new();
    for entry in entries(events) {
        let _ = registry.register(entry);
    }
    let executor = Executor::new(Registry::new(registry.build()), ExecutorConfig::default());
    let options = McpOptions::default()
        .name("fixture")
        .title("A fixture")
        .version("1.2.3")
        .instructions("Add before you multiply.")
        .values(ContextValues::new().with("tenant", "acme"));
    (McpServer::new(executor, options), seen)
}

fn entries(events: UnboundedSender<Event>) -> Vec<ToolEntry> {
    let object = json!({"type": "object", "properties": {"total": {"type": "integer"}}});
    let define = |name: &str| ToolDefinition::builder(name).description(format!("Does {name}."));
    vec![
        entry(
            define("add")
                .title("Add numbers")
                .input_schema(schema_for::<Add>())
                .read_only(true)
                .idempotent(true)
                .open_world(false),
            tool_fn(|args: Add, _| async move { (args.a + args.b).to_string() }),
        ),
        entry(
            define("stats").output_schema(object.clone()),
            tool_fn(|_: Value, _| async { ToolOutput::from(json!({"total": 3})) }),
        ),
        entry(
            define("words").output_schema(json!({"type": "array", "items": {"type": "string"}})),
            tool_fn(|_: Value, _| async { ToolOutput::from(json!(["b", "a"])) }),
        ),
        entry(define("parts"), tool_fn(|_: Value, _| async { parts() })),
        entry(
            define("fail"),
            tool_fn(|_: Value, _| async {
                let error = ToolError::execution("the disk is full").with_hint("Free some space.");
                Err::<String, _>(error.with_partial(json!({"written": 7})))
            }),
        ),
        entry(
            define("fail_promised").output_schema(object),
            tool_fn(|_: Value, _| async {
                Err::<ToolOutput, _>(ToolError::execution("no").with_partial(json!({"total": 1})))
            }),
        ),
        entry(
            define("lookup"),
            tool_fn(|_: Value, _| async {
                Err::<String, _>(ToolError::new(ErrorKind::NotFound, "no such record"))
            }),
        ),
        entry(
            define("regional").input_schema(json!({
                "type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            })),
            tool_fn(|args: Value, _| async move { args["region"].to_string() }),
        ),
        entry(
            define("tenant"),
            tool_fn(|_: Value, cx: toolcrib_tool::CallContext| async move {
                cx.value("tenant").cloned().unwrap_or_default().to_string()
            }),
        ),
        entry(
            define("wait"),
            tool_fn(move |_: Value, _| {
                let events = events.clone();
                async move {
                    let _ = events.send(Event::Started);
                    let _witness = DropWitness(events);
                    pending::<String>().await
                }
            }),
        ),
        entry(define("missing"), tool_fn(|_: Value, _| async { "never" }))
            .unavailable("needs the program `frobnicate`, which is not on PATH"),
    ]
}

fn entry(definition: ToolDefinitionBuilder, body: impl Tool) -> ToolEntry {
    let definition = definition.build().unwrap();
    ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "fixture"))
}

fn parts() -> ToolOutput {
    ToolOutput::new()
        .with_content("a text")
        .with_content(Content::Image { data: vec![1, 2, 3], mime_type: "image/png".into() })
        .with_content(Content::Audio { data: vec![4], mime_type: "audio/wav".into() })
        .with_content(Link::new("file:///a.txt", "a.txt").mime_type("text/plain"))
        .with_content(Content::Blob {
            uri: "mem://b".into(),
            data: vec![5],
            mime_type: "application/zip".into(),
        })
        .with_meta("engine", "fast")
}
