//! Outputs that are too long for a model, read as resources.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::spill::{MemorySpill, SpillLimits, read_output_entry};
use toolcrib_core::{Executor, Registry, RegistryBuilder, TurnOptions};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{ContextValues, Layer, Source, ToolDefinition, ToolEntry, tool_fn};

use crate::wire::Wire;

const LONG: usize = 50_000;

fn server() -> McpServer {
    let spill = Arc::new(MemorySpill::new(SpillLimits::default()));
    let definition = ToolDefinition::builder("long").description("Say much.").build().unwrap();
    let long = tool_fn(|_: Value, _| async { "é".repeat(LONG) });
    let mut registry = RegistryBuilder::new();
    for entry in [
        ToolEntry::new(definition, Arc::new(long), Source::new(Layer::Host, "test")),
        read_output_entry(spill.clone()),
    ] {
        let _ = registry.register(entry);
    }
    let executor = Executor::builder(Registry::new(registry.build())).spill(spill).build();
    McpServer::new(executor, McpOptions::default())
}

fn user(name: &str) -> TurnOptions {
    TurnOptions::default().values(ContextValues::new().with("user", name))
}

async fn read(wire: &mut Wire, uri: &str) -> Value {
    wire.request("resources/read", json!({"uri": uri})).await
}

#[tokio::test]
async fn a_truncated_output_is_linked_and_readable_whole_or_in_pages() {
    let (mut wire, hello) = Wire::initialized(server()).await;
    assert_eq!(hello["capabilities"]["resources"], json!({}));
    let answer = wire.call("long", json!({})).await;
    let content = answer["result"]["content"].as_array().unwrap();
    assert_eq!(content[1]["type"], "resource_link", "{answer}");
    let uri = content[1]["uri"].as_str().unwrap();
    let whole = read(&mut wire, uri).await["result"]["contents"][0].clone();
    assert_eq!((&whole["uri"], &whole["mimeType"]), (&json!(uri), &json!("text/plain")));
    assert_eq!(whole["text"].as_str().unwrap(), "é".repeat(LONG));
    // In pages.
    let (mut text, mut next) = (String::new(), json!(0));
    while !next.is_null() {
        let page = read(&mut wire, &format!("{uri}/{next}")).await["result"]["contents"][0].clone();
        text.push_str(page["text"].as_str().unwrap());
        assert_eq!(page["_meta"]["toolcrib/total_chars"], LONG);
        next = page["_meta"]["toolcrib/next_offset"].clone();
    }
    assert_eq!(text, "é".repeat(LONG));
    let templates = wire.request("resources/templates/list", json!({})).await;
    let templates = templates["result"]["resourceTemplates"].as_array().unwrap();
    assert_eq!(templates[1]["uriTemplate"], "toolcrib://output/{handle}/{offset}");
    // Nobody learns which exist.
    let listed = wire.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"], json!([]));
}

#[tokio::test]
async fn an_output_is_readable_only_by_the_identity_that_made_the_call() {
    let server = server();
    let (mut ada, _) = Wire::initialized(server.for_client(user("ada"))).await;
    let (mut bob, _) = Wire::initialized(server.for_client(user("bob"))).await;
    let answer = ada.call("long", json!({})).await;
    let uri = answer["result"]["content"][1]["uri"].as_str().unwrap().to_owned();
    assert!(read(&mut ada, &uri).await["result"].is_object());
    let unknown = format!("toolcrib://output/{}", "0".repeat(32));
    for uri in [&uri, &format!("{uri}/0"), &unknown, "toolcrib://output/", "toolcrib://output/x/y"]
    {
        assert_eq!(read(&mut bob, uri).await["error"]["code"], -32002, "{uri}");
    }
    // It is, on a separate connection.
    let (mut again, _) = Wire::initialized(server.for_client(user("ada"))).await;
    assert!(read(&mut again, &uri).await["result"].is_object());
}
