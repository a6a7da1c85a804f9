//! Lists in pages.

use serde_json::{Value, json};
use toolcrib_core::{Change, Executor, Mock, Registry, SourceUnit};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{Layer, ToolDefinition};

use crate::wire::Wire;

fn declare(executor: &Executor, names: &[&str]) {
    let unit = SourceUnit::new(Layer::Host, "host");
    let tool = |name: &&str| {
        let definition = ToolDefinition::builder(*name).description("Answer.").build().unwrap();
        Mock::tool(definition).answers("pong").entry_of(&unit)
    };
    let entries = names.iter().map(tool).collect();
    executor.registry().apply([Change::Replace { unit: unit.clone(), entries }]).unwrap();
}

async fn page(wire: &mut Wire, cursor: &Value) -> (Vec<String>, Value) {
    let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
    // A change of the list is reported in between.
    let answer = wire.request_past_notices("tools/list", params).await;
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    (names, answer["result"]["nextCursor"].clone())
}

#[tokio::test]
async fn paging_continues_across_reloads() {
    let registry: Registry = Registry::scratch().build().unwrap();
    let executor = Executor::builder(registry).build();
    declare(&executor, &["a", "b", "c", "d"]);
    let server = McpServer::new(executor.clone(), McpOptions::default().page_size(2));
    let (mut wire, _) = Wire::initialized(server).await;
    let (first, cursor) = page(&mut wire, &Value::Null).await;
    assert_eq!(first, ["a", "b"]);
    // The last entry of the page was removed, and one was added before it.
    declare(&executor, &["a", "aa", "c", "d", "e"]);
    let (second, cursor) = page(&mut wire, &cursor).await;
    assert_eq!(second, ["c", "d"]);
    let (last, cursor) = page(&mut wire, &cursor).await;
    assert_eq!((last, cursor), (vec!["e".to_owned()], Value::Null));
}
