//! Questions of a server during a call reach the client that made the call, and no other.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::events::EventBus;
use toolcrib_core::masking::Mask;
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Executor, Registry, RegistryBuilder, TurnOptions};
use toolcrib_mcp::upstream::{MemoryPins, Upstreams};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{ContextValues, Identity};

use super::{HIDDEN, PATIENCE, Scripted, assert_hidden, until};
use crate::wire::Wire;

/// An MCP server with an upstream that asks.
pub(super) async fn served(scripted: &Scripted) -> (McpServer, Upstreams) {
    let registry = Registry::new(RegistryBuilder::new().build());
    let executor = Executor::builder(registry)
        .suspensions(Arc::new(MemorySuspensions::new()))
        .events(EventBus::new(100))
        .mask(Mask::new([HIDDEN.to_owned()]).unwrap())
        .build();
    let upstreams = Upstreams::new(executor.clone(), Arc::new(MemoryPins::default()));
    upstreams.set([scripted.upstream("my")]).await;
    assert!(upstreams.settled(PATIENCE).await);
    (McpServer::new(executor, McpOptions::default().linked(upstreams.linked())), upstreams)
}

/// A client of this user, with these capabilities.
async fn client(server: &McpServer, user: &str, capabilities: Value) -> Wire {
    let values = ContextValues::new().with_identity(&Identity::user(user));
    let own = server.for_client(TurnOptions::default().values(values));
    Wire::initialized_with(own, &capabilities).await.0
}

/// Two clients, ada and bob, that can be asked.
async fn asked_by_two(scripted: &Scripted) -> ([Wire; 2], Upstreams) {
    let (server, upstreams) = served(scripted).await;
    let ada = client(&server, "ada", forms()).await;
    let bob = client(&server, "bob", forms()).await;
    ([ada, bob], upstreams)
}

fn call(id: u64, name: &str) -> Value {
    call_with(id, name, &json!({}))
}

fn call_with(id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn forms() -> Value {
    json!({"elicitation": {}})
}

#[tokio::test]
async fn secrets_in_a_question_are_masked_before_it_is_escaped_or_cut() {
    let scripted = Scripted::new(&["ask"]);
    let (server, upstreams) = served(&scripted).await;
    let mut ada = client(&server, "ada", forms()).await;
    for padding in [0, 1_990] {
        let message = format!("{}{HIDDEN}", "x".repeat(padding));
        let params = json!({"name": "my_ask", "arguments": {"message": message}});
        let call =
            json!({"jsonrpc": "2.0", "id": padding, "method": "tools/call", "params": params});
        ada.send(&call).await;
        let asked = ada.receive().await;
        assert_hidden(&asked["params"]["message"].to_string());
        let answer = json!({"action": "accept", "content": {"town": "Bern"}});
        ada.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).await;
        ada.receive().await;
    }
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_question_reaches_the_client_that_called_and_the_answer_the_server() {
    let scripted = Scripted::new(&["ask"]);
    let (server, upstreams) = served(&scripted).await;
    assert_eq!(
        scripted.heard("initialize")[0]["params"]["capabilities"]["elicitation"],
        json!({"form": {}})
    );
    let mut ada = client(&server, "ada", forms()).await;
    ada.send(&call(7, "my_ask")).await;
    let asked = ada.receive().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["message"], "The MCP server `my` asks: Which town?");
    assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["town"]));
    let answer = json!({"action": "accept", "content": {"town": "Bern"}});
    ada.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).await;
    let result = ada.receive().await;
    assert_eq!(result["id"], 7, "{result}");
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("Bern"), "{result}");
    assert_eq!(scripted.answers(), [answer]);
    assert_eq!(scripted.heard("tools/call").len(), 1, "the call was made once");
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_server_whose_question_is_declined_or_cannot_be_asked_is_told_so() {
    for (capabilities, answer) in [
        (forms(), Some(json!({"action": "decline"}))),
        (forms(), Some(json!({"action": "cancel"}))),
        (json!({}), None),
    ] {
        let scripted = Scripted::new(&["ask"]);
        let (server, upstreams) = served(&scripted).await;
        let mut ada = client(&server, "ada", capabilities).await;
        ada.send(&call(7, "my_ask")).await;
        let mut message = ada.receive().await;
        if let Some(answer) = answer {
            assert_eq!(message["method"], "elicitation/create", "{message}");
            ada.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer})).await;
            message = ada.receive().await;
            assert_eq!(message["result"]["isError"], true, "{message}");
        } else {
            assert!(message["error"].is_object(), "{message}");
        }
        assert_eq!(message["id"], 7);
        until("the server is told", || !scripted.answers().is_empty()).await;
        assert_eq!(scripted.answers()[0]["action"], "decline");
        upstreams.shutdown().await;
    }
}

#[tokio::test]
async fn a_question_that_could_be_another_clients_is_cancelled_and_nobody_is_asked() {
    let scripted = Scripted::new(&["ask", "hang"]);
    let ([mut ada, mut bob], upstreams) = asked_by_two(&scripted).await;
    // A call of another client runs.
    bob.send(&call(7, "my_hang")).await;
    until("it is called", || scripted.heard("tools/call").len() == 1).await;
    ada.send(&call(7, "my_ask")).await;
    let result = ada.receive().await;
    assert_eq!(result["id"], 7, "{result}");
    assert!(result.to_string().contains("cancel"), "{result}");
    // That call is cancelled: the server may still be about to ask.
    let cancel = json!({"requestId": 7});
    bob.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}))
        .await;
    until("it is given up", || !scripted.heard("notifications/cancelled").is_empty()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    ada.send(&call(8, "my_ask")).await;
    let result = ada.receive().await;
    assert!(result["id"] == 8 && result.to_string().contains("cancel"), "{result}");
    assert!(scripted.answers().iter().all(|answer| answer["action"] == "cancel"));
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_question_that_refers_to_no_running_call_is_cancelled_and_nobody_is_asked() {
    let scripted = Scripted::new(&["plain", "ask"]);
    let ([mut ada, mut bob], upstreams) = asked_by_two(&scripted).await;
    ada.send(&call(7, "my_plain")).await;
    assert_eq!(ada.receive().await["id"], 7);
    let ended = scripted.heard("tools/call")[0]["params"]["_meta"]["progressToken"].clone();
    assert!(!ended.is_null());
    let task = json!({"taskId": "1"});
    for (n, refers) in (8..).zip([
        json!({"progressToken": ended}),
        json!({"progressToken": "nobody's"}),
        json!({"progressToken": {"of": "another kind"}}),
        json!({"io.modelcontextprotocol/related-task": task}),
    ]) {
        bob.send(&call_with(n, "my_ask", &json!({"refers": refers}))).await;
        let result = bob.receive().await;
        assert!(result["id"] == n && result.to_string().contains("cancel"), "{refers}: {result}");
    }
    let answers = scripted.answers();
    assert_eq!(answers.len(), 4);
    assert!(answers.iter().all(|answer| answer["action"] == "cancel"), "{answers:?}");
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_question_without_a_token_reaches_nobody_once_another_client_has_used_the_connection() {
    for used_by in ["a call", "a read", "a prompt"] {
        let scripted = Scripted::new(&["get", "ask", "links"]);
        scripted.says(&json!({
            "tools": [super::tool("get"), super::tool("ask"), super::tool("links")],
            "capabilities": {"prompts": {}},
            "prompts": [{"name": "review"}],
        }));
        let (server, upstreams) = served(&scripted).await;
        upstreams.set([scripted.upstream("my").prompts(["*"], [""])]).await;
        until("the prompts are listed", || !scripted.heard("prompts/list").is_empty()).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut ada = client(&server, "ada", forms()).await;
        let mut again = client(&server, "ada", forms()).await;
        let mut bob = client(&server, "bob", forms()).await;
        // Two connections of one client: the question can be nobody else's.
        assert!(ada.call("my_get", json!({})).await["result"].is_object());
        again.send(&call(1, "my_ask")).await;
        let asked = again.receive().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let answer = json!({"action": "accept", "content": {"town": "Bern"}});
        again.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).await;
        assert!(again.receive().await.to_string().contains("Bern"));
        // The server may still ask about what it has answered.
        let used = match used_by {
            "a call" => bob.call("my_get", json!({})).await,
            "a read" => {
                let uris = json!({"uris": ["note://1"]});
                let mut other = client(&server, "ada", forms()).await;
                let linked = other.call("my_links", uris).await;
                assert!(linked["result"].is_object(), "{linked}");
                other.request("resources/read", json!({"uri": "note://1"})).await
            }
            _ => bob.request_past_notices("prompts/get", json!({"name": "my_review"})).await,
        };
        assert!(used["result"].is_object(), "{used_by}: {used}");
        ada.send(&call(2, "my_ask")).await;
        let result = ada.receive().await;
        if used_by == "a read" {
            // It was this client's own.
            assert_eq!(result["method"], "elicitation/create", "{result}");
            upstreams.shutdown().await;
            continue;
        }
        assert!(result["id"] == 2 && result.to_string().contains("cancel"), "{used_by}: {result}");
        ada.send(&call_with(3, "my_ask", &json!({"refers": "own"}))).await;
        let asked = ada.receive().await;
        assert_eq!(asked["method"], "elicitation/create", "with a token: {asked}");
        upstreams.shutdown().await;
    }
}

#[tokio::test]
async fn questions_that_flood_a_call_are_cancelled_and_long_ones_declined() {
    let scripted = Scripted::new(&["pester", "get"]);
    let (server, upstreams) = served(&scripted).await;
    let mut ada = client(&server, "ada", forms()).await;
    ada.send(&call(7, "my_pester")).await;
    assert_eq!(ada.receive().await["method"], "elicitation/create");
    // Nine wait at most: the one that is asked, and eight behind it.
    until("the others are answered", || scripted.answers().len() >= 291).await;
    let answers = scripted.answers();
    let declined = answers.iter().filter(|answer| answer["action"] == "decline").count();
    assert_eq!(declined, 100);
    assert!(answers.iter().all(|answer| answer["action"] != "accept"));
    let cancel = json!({"requestId": 7});
    ada.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}))
        .await;
    until("all are answered", || scripted.answers().len() == 300).await;
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_question_with_the_token_of_its_call_reaches_its_client_while_others_call() {
    let scripted = Scripted::new(&["ask", "hang"]);
    let ([mut ada, mut bob], upstreams) = asked_by_two(&scripted).await;
    bob.send(&call(7, "my_hang")).await;
    until("it is called", || scripted.heard("tools/call").len() == 1).await;
    for id in 1..20 {
        ada.send(&call_with(id, "my_ask", &json!({"refers": "own"}))).await;
        let asked = ada.receive().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let answer = json!({"action": "accept", "content": {"town": "Bern"}});
        ada.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).await;
        let result = ada.receive().await;
        assert!(result["id"] == id && result.to_string().contains("Bern"), "{result}");
    }
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_question_that_could_belong_to_another_clients_read_is_cancelled() {
    let scripted = Scripted::new(&["ask", "links"]);
    let ([mut ada, mut bob], upstreams) = asked_by_two(&scripted).await;
    ada.send(&call_with(7, "my_links", &json!({"uris": ["hang://1"]}))).await;
    assert_eq!(ada.receive().await["id"], 7);
    let params = json!({"uri": "hang://1"});
    ada.send(&json!({"jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": params}))
        .await;
    until("it reads", || !scripted.heard("resources/read").is_empty()).await;
    let token = scripted.heard("resources/read")[0]["params"]["_meta"]["progressToken"].clone();
    for (n, refers) in (9..).zip([json!({}), json!({"progressToken": token})]) {
        bob.send(&call_with(n, "my_ask", &json!({"refers": refers}))).await;
        let result = bob.receive().await;
        assert!(result["id"] == n && result.to_string().contains("cancel"), "{refers}: {result}");
    }
    upstreams.shutdown().await;
}
