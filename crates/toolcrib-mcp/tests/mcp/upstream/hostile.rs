//! Servers that offer or report more than they should, and servers and clients that go away meanwhile.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_core::{Executor, Registry, RegistryBuilder};
use toolcrib_mcp::upstream::UpstreamState;
use toolcrib_mcp::{McpOptions, McpServer};

use super::links::served;
use super::{Scripted, tool, until};
use crate::wire::Wire;

/// A server with these prompts, and a tool that announces changes.
fn with_prompts(prompts: &Value) -> Scripted {
    let scripted = Scripted::new(&[]);
    scripted.says(&json!({
        "tools": [tool("storm")], "capabilities": {"prompts": {}}, "prompts": prompts,
    }));
    scripted
}

async fn prompts(wire: &mut Wire) -> Vec<Value> {
    let answer = wire.request_past_notices("prompts/list", json!({})).await;
    answer["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

#[tokio::test]
async fn prompts_with_hostile_names_are_left_out_and_long_texts_cut() {
    let long = "x".repeat(1 << 19);
    let scripted = with_prompts(&json!([
        {"name": "plain", "title": long, "description": long, "arguments": [
            {"name": "language", "title": long, "description": long}, {"name": long},
        ]},
        {"name": "\u{1b}[31mred"}, {"name": "two\nlines"}, {"name": "no\u{200b}thing"},
        {"name": "over\u{202e}ride"}, {"name": "hunter2-secret"}, {"name": ""},
        {"name": "described", "description": "Hidden\u{200b}."},
        {"name": "large", "description": long.repeat(4)}, {"name": "behind"},
    ]));
    let (server, upstreams) = served([scripted.upstream("my").prompts(["*"], ["-"])]).await;
    let (mut wire, _) = Wire::initialized(server).await;
    let shown = prompts(&mut wire).await;
    // What comes after 4 MiB is left out, too.
    assert_eq!(shown.len(), 1, "{:?}", shown.iter().map(|one| &one["name"]).collect::<Vec<_>>());
    assert_eq!(shown[0]["name"], "my_plain");
    assert_eq!(shown[0]["arguments"].as_array().unwrap().len(), 1);
    assert!(shown[0].to_string().len() < 5_000, "{}", shown[0].to_string().len());
    upstreams.shutdown().await;
}

#[tokio::test]
async fn hostile_arguments_of_a_prompt_are_data_for_the_server_and_visible_in_its_answer() {
    let scripted = with_prompts(&json!([{"name": "plain", "arguments": [{"name": "language"}]}]));
    let (server, upstreams) = served([scripted.upstream("my").prompts(["*"], ["-"])]).await;
    let (mut wire, _) = Wire::initialized(server).await;
    for value in ["\u{1b}[2J\r\n{\"jsonrpc\": 1}\0\u{202e}", &"y".repeat(1 << 20)] {
        let params = json!({"name": "my_plain", "arguments": {"language": value}});
        let answer = wire.request_past_notices("prompts/get", params).await;
        let text = answer["result"]["messages"][0]["content"]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        let is_shown = |letter: char| !letter.is_control() || letter == '\n';
        assert!(text.chars().all(|letter| is_shown(letter) && letter != '\u{202e}'));
        let asked = scripted.heard("prompts/get");
        assert_eq!(asked.last().unwrap()["params"]["arguments"]["language"], value);
    }
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_while_it_is_asked_for_a_prompt_is_an_error_and_comes_back() {
    let scripted = with_prompts(&json!([{"name": "plain", "arguments": [{"name": "language"}]}]));
    let (server, upstreams) = served([scripted.upstream("my").prompts(["*"], ["-"])]).await;
    let (mut wire, _) = Wire::initialized(server).await;
    let params = |how: &str| json!({"name": "my_plain", "arguments": {"language": how}});
    let started = Instant::now();
    let answer = wire.request_past_notices("prompts/get", params("crash")).await;
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(message.contains("the connection to the MCP server `my` was lost"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    until("it is back", || scripted.heard("prompts/list").len() >= 2).await;
    until("it is connected", || upstreams.status()[0].state == UpstreamState::Connected).await;
    let answer = wire.request_past_notices("prompts/get", params("Rust")).await;
    assert!(answer["result"].is_object(), "{answer}");
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_client_that_cancels_a_prompt_or_a_read_has_it_cancelled_at_the_server() {
    let scripted = Scripted::new(&[]);
    scripted.says(&json!({
        "tools": [],
        "capabilities": {"prompts": {}, "resources": {}},
        "prompts": [{"name": "plain", "arguments": [{"name": "language"}]}],
        "resources": [{"uri": "hang://1", "name": "n"}],
    }));
    let upstream = scripted.upstream("my").prompts(["*"], ["-"]).resources(["*"], ["-"]);
    let (server, upstreams) = served([upstream]).await;
    let (mut wire, _) = Wire::initialized(server).await;
    let get = |how: &str| json!({"name": "my_plain", "arguments": {"language": how}});
    for (id, method, params) in
        [(71, "prompts/get", get("hang")), (72, "resources/read", json!({"uri": "hang://1"}))]
    {
        wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        until("it is asked", || !scripted.heard(method).is_empty()).await;
        let cancel = json!({"requestId": id});
        wire.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel,
        }))
        .await;
        let told = scripted.heard(method)[0]["id"].clone();
        let is_told = || {
            let cancelled = scripted.heard("notifications/cancelled");
            cancelled.iter().any(|one| one["params"]["requestId"] == told)
        };
        until("the server is told", is_told).await;
    }
    let answer = wire.request_past_notices("prompts/get", get("Rust")).await;
    assert!(answer["result"].is_object(), "{answer}");
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_server_that_changes_its_lists_all_the_time_is_reported_at_intervals() {
    let scripted = Scripted::new(&[]);
    scripted.says(&json!({
        "tools": [tool("storm")], "capabilities": {"prompts": {}}, "churns": true,
    }));
    let (server, upstreams) = served([scripted.upstream("my").prompts(["*"], ["-"])]).await;
    let (mut wire, _) = Wire::initialized(server).await;
    wire.request_past_notices("tools/call", json!({"name": "my_storm", "arguments": {}})).await;
    let (started, mut told) = (Instant::now(), 0_u32);
    // The server announces some 3,000 changes in two seconds.
    while let Ok(message) = tokio::time::timeout(Duration::from_secs(1), wire.receive()).await {
        assert_eq!(message["method"], "notifications/prompts/list_changed", "{message}");
        told += 1;
    }
    let intervals = started.elapsed().as_millis() / 250 + 2;
    assert!(told >= 2 && u128::from(told) <= intervals, "{told} in {:?}", started.elapsed());
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_subscription_without_a_catalog_reports_the_lists_of_upstreams() {
    let scripted = Scripted::new(&[]);
    scripted.says(&json!({
        "tools": [tool("announce")], "capabilities": {"prompts": {}}, "churns": true,
    }));
    let (server, upstreams) = served([scripted.upstream("my").prompts(["*"], ["-"])]).await;
    let mut wire = Wire::connect(server.clone());
    let params = json!({
        "notifications": {"promptsListChanged": true, "resourcesListChanged": true},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let listen = json!({
        "jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": params,
    });
    wire.send(&listen).await;
    let acknowledged = wire.receive().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let (mut other, _) = Wire::initialized(server).await;
    other.request_past_notices("tools/call", json!({"name": "my_announce", "arguments": {}})).await;
    assert_eq!(wire.receive().await["method"], "notifications/prompts/list_changed");
    upstreams.shutdown().await;
    // Without upstreams, nothing is promised.
    let executor = Executor::builder(Registry::new(RegistryBuilder::new().build())).build();
    let mut wire = Wire::connect(McpServer::new(executor, McpOptions::default()));
    wire.send(&listen).await;
    let acknowledged = wire.receive().await;
    assert!(!acknowledged.to_string().contains("promptsListChanged"), "{acknowledged}");
}
