//! Resource templates and prompts of upstreams, and the changes that clients are told of.

use serde_json::{Value, json};
use toolcrib_core::{ToolFilter, Toolset, TurnOptions};

use super::links::{read, served};
use super::{Scripted, until};
use crate::wire::Wire;

fn template(uri: &str) -> Value {
    json!({"uriTemplate": uri, "name": "n", "description": "has hunter2-secret"})
}

fn prompt(name: &str) -> Value {
    json!({"name": name, "description": "has hunter2-secret", "arguments": [
        {"name": "language", "required": true}, {"name": "focus"}]})
}

/// A list of what a client is offered, by this key of each entry.
async fn listed(wire: &mut Wire, method: &str, list: &str, key: &str) -> Vec<String> {
    let answer = wire.request_past_notices(method, json!({})).await;
    let entries = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    entries.iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn templates_that_the_operator_offers_are_listed_and_their_addresses_read() {
    let scripted = Scripted::new(&[]);
    scripted.says(&json!({
        "tools": [],
        "capabilities": {"resources": {}},
        "templates": [
            template("note://{day}"), template("note://{+path}"), template("note://{?query}"),
            template("priv://{day}"), template("note://hunter2-secret/{day}"),
        ],
    }));
    let offered = scripted.upstream("notes").resources(["note://*"], ["note://secret*"]);
    let (server, upstreams) = served([offered]).await;
    let (mut wire, hello) = Wire::initialized(server.clone()).await;
    assert_eq!(hello["capabilities"]["resources"]["listChanged"], true, "{hello}");
    let method = "resources/templates/list";
    let uris = listed(&mut wire, method, "resourceTemplates", "uriTemplate").await;
    assert_eq!(uris, ["note://{day}"], "no operators, no secrets, nothing else");

    let answer = read(&mut wire, "note://1").await;
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["_meta"], json!({"toolcrib/untrusted": "notes"}), "{answer}");
    assert!(contents["text"].as_str().unwrap().contains("[masked]"), "{answer}");
    let asked = scripted.heard("resources/read").len();
    for other in [
        "priv://1",
        "note://a/b",
        "note://",
        "note://secret1",
        "note://%73ecret1",
        "note://..",
        "note://%2e%2E",
        "note://a%2f..%2fsecret",
        "note://%zz",
        "note://%252e%252e",
        "note://%2573ecret1",
        "note://%2Fetc%2Fpasswd",
        "note://%5c%5chost",
        "note://a%00",
        "note://a%2F%2Fb",
        "note://%2525252525252525252525252e",
    ] {
        assert_eq!(read(&mut wire, other).await["error"]["code"], -32002, "{other}");
    }
    assert_eq!(scripted.heard("resources/read").len(), asked, "the server was not even asked");
    for plain in ["note://a%2Fb", "note://100%25", "note://..."] {
        assert!(read(&mut wire, plain).await["result"].is_object(), "{plain}");
    }

    let toolset = Toolset::new().exclude(ToolFilter::new().name("x"));
    let (mut narrow, _) =
        Wire::initialized(server.for_client(TurnOptions::default().toolset(toolset))).await;
    let none = listed(&mut narrow, method, "resourceTemplates", "uriTemplate").await;
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(read(&mut narrow, "note://1").await["error"]["code"], -32002);
    upstreams.shutdown().await;
}

#[tokio::test]
async fn prompts_that_the_operator_offers_are_listed_and_used_and_no_others() {
    let scripted = Scripted::new(&[]);
    scripted.says(&json!({
        "tools": [],
        "capabilities": {"prompts": {}},
        "prompts": [prompt("review"), prompt("re.write"), prompt("other"), prompt("re-hunter2-secret")],
    }));
    let (server, upstreams) = served([scripted.upstream("my").prompts(["re*"], ["no"])]).await;
    let (mut wire, hello) = Wire::initialized(server.clone()).await;
    assert_eq!(hello["capabilities"]["prompts"]["listChanged"], true, "{hello}");
    let names = listed(&mut wire, "prompts/list", "prompts", "name").await;
    assert_eq!(names, ["my_re_write", "my_review"]);
    let answer = wire.request_past_notices("prompts/list", json!({})).await;
    let shown = &answer["result"]["prompts"][1];
    assert_eq!(shown["description"], "From the MCP server `my`: has [masked]");
    assert_eq!(shown["arguments"][0]["required"], true);

    let given = json!({"name": "my_re_write", "arguments": {"language": "Rust", "extra": "x"}});
    let answer = wire.request_past_notices("prompts/get", given).await;
    let message = &answer["result"]["messages"][0];
    assert_eq!(message["content"]["_meta"], json!({"toolcrib/untrusted": "my"}), "{answer}");
    let text = message["content"]["text"].as_str().unwrap();
    assert!(text.contains("[masked] \\u{202e}") && text.contains("Rust"), "{text}");
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
    let asked = &scripted.heard("prompts/get")[0]["params"];
    assert_eq!(
        (&asked["name"], &asked["arguments"]),
        (&json!("re.write"), &json!({"language": "Rust"}))
    );

    for (name, arguments) in [("my_other", json!({"language": "x"})), ("my_review", json!({}))] {
        let given = json!({"name": name, "arguments": arguments});
        let refused = wire.request_past_notices("prompts/get", given).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(scripted.heard("prompts/get").len(), 1, "the server was not even asked");

    let toolset = Toolset::new().exclude(ToolFilter::new().name("x"));
    let (mut narrow, _) =
        Wire::initialized(server.for_client(TurnOptions::default().toolset(toolset))).await;
    assert!(listed(&mut narrow, "prompts/list", "prompts", "name").await.is_empty());
    upstreams.set([scripted.upstream("my")]).await;
    assert!(listed(&mut wire, "prompts/list", "prompts", "name").await.is_empty());
    upstreams.shutdown().await;
}

#[tokio::test]
async fn clients_are_told_when_what_an_upstream_offers_changes_and_only_then() {
    let scripted = Scripted::new(&[]);
    let script = |resources: &[&str], prompts: &[&str]| {
        let resource = |uri: &&str| json!({"uri": uri, "name": "n"});
        json!({
            "tools": [super::tool("announce")],
            "capabilities": {"prompts": {}, "resources": {}},
            "resources": resources.iter().map(resource).collect::<Vec<_>>(),
            "prompts": prompts.iter().map(|name| prompt(name)).collect::<Vec<_>>(),
        })
    };
    scripted.says(&script(&["note://1"], &["review"]));
    let offered = || scripted.upstream("my").resources(["note://*"], [""]).prompts(["re*"], [""]);
    let (server, upstreams) = served([offered()]).await;
    let (mut wire, _) = Wire::initialized(server.clone()).await;
    let (mut other, _) = Wire::initialized(server).await;

    // What the client cannot see is no change for it.
    scripted.says(&script(&["note://1", "priv://1"], &["review", "other"]));
    wire.call("my_announce", json!({})).await;
    until("it is asked", || scripted.heard("prompts/list").len() == 2).await;
    scripted.says(&script(&["note://1", "note://2"], &["review", "rewrite"]));
    other.call("my_announce", json!({})).await;
    for client in [&mut wire, &mut other] {
        let mut told = [client.receive().await, client.receive().await];
        told.sort_by_key(|one| one["method"].to_string());
        assert_eq!(told[0]["method"], "notifications/prompts/list_changed", "{told:?}");
        assert_eq!(told[1]["method"], "notifications/resources/list_changed", "{told:?}");
    }
    assert_eq!(
        listed(&mut wire, "resources/list", "resources", "uri").await,
        ["note://1", "note://2"]
    );

    // Without the upstream there is nothing left.
    upstreams.set([]).await;
    let mut methods = Vec::new();
    for _ in 0..3 {
        methods.push(wire.receive().await["method"].as_str().unwrap().to_owned());
    }
    methods.sort();
    assert_eq!(
        methods,
        [
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/tools/list_changed",
        ]
    );
    upstreams.shutdown().await;
}
