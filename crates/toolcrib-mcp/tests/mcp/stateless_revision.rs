//! Revision 2026-07-28: no handshake; every request contains its client and its revision.

use serde_json::{Value, json};

use crate::fixture;
use crate::handshake_revision::output_schema;
use crate::wire::Wire;

fn with_meta(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[tokio::test]
async fn the_server_can_be_discovered() {
    let mut wire = Wire::connect(fixture::server());
    let answer = wire.request("server/discover", with_meta(json!({}))).await;
    let result = &answer["result"];
    let capabilities = json!({
        "logging": {},
        "tools": {"listChanged": true},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    assert_eq!(result["capabilities"], capabilities);
    assert_eq!(result["instructions"], "Add before you multiply.");
    let versions = result["supportedVersions"].as_array().unwrap();
    for version in ["2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&version.into()), "{versions:?}");
    }
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "fixture");
}

#[tokio::test]
async fn a_list_states_its_cache_lifetime_and_scope() {
    let mut wire = Wire::connect(fixture::server());
    let answer = wire.request("tools/list", with_meta(json!({}))).await;
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), fixture::TOOLS);
    assert_eq!(answer["result"]["ttlMs"], 0);
    assert_eq!(answer["result"]["cacheScope"], "private");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn structured_content_may_be_of_any_type() {
    let mut wire = Wire::connect(fixture::server());
    let list = wire.request("tools/list", with_meta(json!({}))).await;
    assert_eq!(output_schema(&list, "words")["type"], "array");
    let call = with_meta(json!({"name": "words", "arguments": {}}));
    let answer = wire.request("tools/call", call).await;
    assert_eq!(answer["result"]["structuredContent"], json!(["b", "a"]));
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn failures_read_as_in_any_revision() {
    let mut wire = Wire::connect(fixture::server());
    let bad = with_meta(json!({"name": "add", "arguments": {"a": "x", "b": 1}}));
    let answer = wire.request("tools/call", bad).await;
    assert_eq!(answer["result"]["isError"], true);
    let unknown = with_meta(json!({"name": "ad", "arguments": {}}));
    let answer = wire.request("tools/call", unknown).await;
    assert_eq!(answer["error"]["code"], -32602);
    let answer = wire.request("prompts/list", with_meta(json!({}))).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test]
async fn a_request_without_meta_is_refused_and_the_next_one_is_served() {
    let mut wire = Wire::connect(fixture::server());
    let answer = wire.request("tools/list", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = wire.request("tools/list", with_meta(json!({}))).await;
    assert!(answer["result"]["tools"].is_array(), "{answer}");
}
