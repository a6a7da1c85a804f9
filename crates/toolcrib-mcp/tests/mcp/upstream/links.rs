//! Resources to which results of upstreams link, read by the clients that got the links.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::masking::Mask;
use toolcrib_core::{Executor, Registry, RegistryBuilder, ToolFilter, Toolset, TurnOptions};
use toolcrib_mcp::upstream::{MemoryPins, Upstream, Upstreams};
use toolcrib_mcp::{McpOptions, McpServer};

use super::{HIDDEN, PATIENCE, Scripted, assert_hidden};
use crate::wire::Wire;

/// An MCP server over these upstreams, and a masked secret.
pub(super) async fn served(
    upstreams: impl IntoIterator<Item = Upstream>,
) -> (McpServer, Upstreams) {
    let registry = Registry::new(RegistryBuilder::new().build());
    let mask = Mask::new(["hunter2-secret".to_owned(), HIDDEN.to_owned()]).unwrap();
    let executor = Executor::builder(registry).mask(mask).build();
    let own = Upstreams::new(executor.clone(), Arc::new(MemoryPins::default()));
    own.set(upstreams).await;
    assert!(own.settled(PATIENCE).await);
    (McpServer::new(executor, McpOptions::default().linked(own.linked())), own)
}

pub(super) async fn read(wire: &mut Wire, uri: &str) -> Value {
    wire.request_past_notices("resources/read", json!({"uri": uri})).await
}

#[tokio::test]
async fn secrets_in_a_linked_resource_are_masked_before_control_characters_are_escaped() {
    let scripted = Scripted::new(&["links"]);
    let (server, upstreams) = served([scripted.upstream("notes")]).await;
    let (mut wire, _) = Wire::initialized(server.for_client(TurnOptions::default())).await;
    let uris = ["hidden://1", "refused://2"];
    wire.call("notes_links", json!({"uris": uris})).await;
    for uri in uris {
        assert_hidden(&read(&mut wire, uri).await.to_string());
    }
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_link_can_be_read_only_by_the_client_that_was_given_it() {
    let scripted = Scripted::new(&["links"]);
    let (server, upstreams) = served([scripted.upstream("notes")]).await;
    let (mut wire, hello) = Wire::initialized(server.for_client(TurnOptions::default())).await;
    assert!(hello["capabilities"]["resources"].is_object(), "{hello}");
    let before = read(&mut wire, "note://1").await;
    assert_eq!(before["error"]["code"], -32002, "{before}");
    let uris = ["note://1", "bytes://2", "gone://3", "closed://4", "long://5"];
    wire.call("notes_links", json!({"uris": uris})).await;

    let answer = read(&mut wire, "note://1").await;
    let [contents] = answer["result"]["contents"].as_array().unwrap().as_slice() else {
        panic!("{answer}")
    };
    assert_eq!(contents["_meta"], json!({"toolcrib/untrusted": "notes"}));
    assert_eq!(
        (&contents["uri"], &contents["mimeType"]),
        (&json!("note://1"), &json!("text/plain"))
    );
    let text = contents["text"].as_str().unwrap();
    assert!(text.starts_with("[untrusted output of the MCP server `notes`, up to "), "{text}");
    assert!(text.contains("has note://1 and [masked]\n[end "), "{text}");
    let bytes = read(&mut wire, "bytes://2").await;
    assert_eq!(bytes["result"]["contents"][0]["blob"], "AAEC", "{bytes}");

    let gone = read(&mut wire, "gone://3").await;
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
    let closed = read(&mut wire, "closed://4").await;
    let message = closed["error"]["message"].as_str().unwrap();
    assert!(message.contains("`notes` refused to read it"), "{message}");
    assert!(message.contains("\nask for [masked]\n[end "), "{message}");
    let long = read(&mut wire, "long://5").await;
    assert!(long["error"]["message"].as_str().unwrap().contains("longer than"), "{long}");

    let asked = scripted.heard("resources/read").len();
    // Another address of that server, and another client.
    assert_eq!(read(&mut wire, "note://7").await["error"]["code"], -32002);
    let (mut other, _) = Wire::initialized(server.for_client(TurnOptions::default())).await;
    assert_eq!(read(&mut other, "note://1").await["error"]["code"], -32002);
    assert_eq!(scripted.heard("resources/read").len(), asked, "the server was not even asked");

    // A missing server is reported as missing.
    upstreams.set([]).await;
    let gone = read(&mut wire, "note://1").await;
    assert!(gone["error"].is_object(), "{gone}");
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_link_is_read_from_the_server_whose_tool_gave_it_first() {
    let (one, other) = (Scripted::new(&["links"]), Scripted::new(&["links"]));
    let (server, upstreams) = served([one.upstream("one"), other.upstream("other")]).await;
    let (mut wire, _) = Wire::initialized(server).await;
    wire.call("other_links", json!({})).await;
    wire.call("one_links", json!({})).await;
    let answer = read(&mut wire, "note://1").await;
    assert_eq!(answer["result"]["contents"][0]["_meta"]["toolcrib/untrusted"], "other", "{answer}");
    assert!(one.heard("resources/read").is_empty());
    upstreams.shutdown().await;
}

#[tokio::test]
async fn a_client_that_loses_a_tool_cannot_read_its_links() {
    let scripted = Scripted::new(&["links"]);
    let (server, upstreams) = served([scripted.upstream("notes")]).await;
    let toolset = Toolset::new().exclude(ToolFilter::new().name("notes_links"));
    let narrow = server.for_client(TurnOptions::default().toolset(toolset));
    let (mut wire, _) = Wire::initialized(narrow).await;
    wire.call("notes_links", json!({})).await;
    assert_eq!(read(&mut wire, "note://1").await["error"]["code"], -32002);
    let (mut wire, _) = Wire::initialized(server).await;
    wire.call("notes_links", json!({})).await;
    // The server no longer has that tool.
    upstreams.set([scripted.upstream("notes").exclude(["links"])]).await;
    assert_eq!(wire.receive().await["method"], "notifications/tools/list_changed");
    assert_eq!(read(&mut wire, "note://1").await["error"]["code"], -32002);
    upstreams.shutdown().await;
}

#[tokio::test]
async fn resources_that_the_operator_offers_are_listed_and_read_and_no_others() {
    let scripted = Scripted::new(&["get"]);
    let resource =
        |uri: &str| json!({"uri": uri, "name": "n", "description": "has hunter2-secret"});
    scripted.says(&json!({
        "tools": [],
        "capabilities": {"resources": {}},
        "resources": [
            resource("note://1"), resource("note://2"), resource("long://5"), resource("priv://1"),
            resource("note://{day}"), resource("note://hunter2-secret"),
        ],
    }));
    let offered = scripted.upstream("notes").resources(["note://*", "long://*"], ["note://2"]);
    let (server, upstreams) = served([offered]).await;
    let (mut wire, _) = Wire::initialized(server.clone()).await;
    let listed = wire.request_past_notices("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().unwrap().clone();
    let uris: Vec<_> = listed.iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["long://5", "note://1"], "nothing with a secret, and no template");
    assert_eq!(listed[1]["description"], "From the MCP server `notes`: has [masked]");

    let answer = read(&mut wire, "note://1").await;
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["_meta"], json!({"toolcrib/untrusted": "notes"}), "{answer}");
    assert!(
        contents["text"].as_str().unwrap().contains("has note://1 and [masked]\n[end "),
        "{answer}"
    );
    let long = read(&mut wire, "long://5").await;
    assert!(long["error"]["message"].as_str().unwrap().contains("longer than"), "{long}");
    for other in ["note://2", "priv://1", "note://7"] {
        assert_eq!(read(&mut wire, other).await["error"]["code"], -32002, "{other}");
    }

    // A client with a toolset gets the links of its tools.
    let toolset = Toolset::new().exclude(ToolFilter::new().name("x"));
    let (mut narrow, _) =
        Wire::initialized(server.for_client(TurnOptions::default().toolset(toolset))).await;
    let none = narrow.request_past_notices("resources/list", json!({})).await;
    assert_eq!(none["result"]["resources"], json!([]), "{none}");
    assert_eq!(read(&mut narrow, "note://1").await["error"]["code"], -32002);

    // A server without `resources` in its manifest offers none.
    upstreams.set([scripted.upstream("notes")]).await;
    assert_eq!(read(&mut wire, "note://1").await["error"]["code"], -32002);
    upstreams.shutdown().await;
}
