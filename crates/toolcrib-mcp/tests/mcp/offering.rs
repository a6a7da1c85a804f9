//! Prompts and resources, and notifications of their changes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_core::masking::Mask;
use toolcrib_core::{Executor, Registry, Toolset, TurnOptions};
use toolcrib_mcp::catalog::{
    Address, Catalog, CatalogText, MessageContent, Prompt, PromptArgument, PromptMessage, Resource,
    ResourceContent, ServedFile, TextPiece,
};
use toolcrib_mcp::{McpOptions, McpServer};
use toolcrib_tool::{Icon, IconTheme};

use crate::wire::Wire;

fn server() -> (McpServer, Catalog) {
    let registry: Registry = Registry::scratch().build().unwrap();
    let executor = Executor::builder(registry).build();
    let catalog = Catalog::new();
    catalog.set(vec![review()], vec![notes("first")]);
    (McpServer::new(executor, McpOptions::default().catalog(catalog.clone())), catalog)
}

fn review() -> Prompt {
    let argument = |name: &str, required, suggest: &[&str]| PromptArgument {
        name: name.to_owned(),
        title: None,
        description: None,
        required,
        suggest: suggest.iter().map(|value| (*value).to_owned()).collect(),
    };
    let text = CatalogText {
        pieces: vec![
            TextPiece::Literal("Review: ".to_owned()),
            TextPiece::Value("language".to_owned()),
            TextPiece::Value("focus".to_owned()),
        ],
    };
    let uri = CatalogText {
        pieces: vec![
            TextPiece::Literal("notes://".to_owned()),
            TextPiece::Value("language".to_owned()),
        ],
    };
    let said = |by_assistant, content| PromptMessage { by_assistant, content };
    Prompt {
        name: "review".to_owned(),
        title: Some("Review".to_owned()),
        icons: vec![
            Icon::new("https://example.org/review.png").unwrap().with_theme(IconTheme::Dark),
        ],
        description: "Review a change.".to_owned(),
        arguments: vec![
            argument("language", true, &["Rust", "Ruby", "Go"]),
            argument("focus", false, &[]),
        ],
        messages: vec![
            said(false, MessageContent::Text(text)),
            said(true, MessageContent::Resource(uri)),
        ],
    }
}

fn notes(text: &str) -> Resource {
    let pieces =
        vec![TextPiece::Literal(format!("{text} of ")), TextPiece::Value("topic".to_owned())];
    Resource {
        address: Address::new("notes://{topic}"),
        name: "notes".to_owned(),
        title: None,
        icons: Vec::new(),
        description: Some("Notes.".to_owned()),
        mime_type: "text/plain".to_owned(),
        content: ResourceContent::Text(CatalogText { pieces }),
        suggest: BTreeMap::from([("topic".to_owned(), vec!["Rust".to_owned()])]),
    }
}

fn file(path: &std::path::Path, mime_type: &str) -> Resource {
    Resource {
        address: Address::new("file://it"),
        name: "it".to_owned(),
        title: None,
        icons: Vec::new(),
        description: None,
        mime_type: mime_type.to_owned(),
        content: ResourceContent::File(ServedFile::new(path)),
        suggest: BTreeMap::new(),
    }
}

#[tokio::test]
async fn a_prompt_is_listed_and_filled_in() {
    let (mut wire, hello) = Wire::initialized(server().0).await;
    assert_eq!(hello["capabilities"]["prompts"], json!({"listChanged": true}));
    let list = wire.request("prompts/list", json!({})).await;
    assert_eq!(
        list["result"]["prompts"],
        json!([{
            "name": "review",
            "title": "Review",
            "icons": [{"src": "https://example.org/review.png", "theme": "dark"}],
            "description": "Review a change.",
            "arguments": [
                {"name": "language", "required": true},
                {"name": "focus", "required": false},
            ],
        }])
    );
    // A value stays a value, whatever it looks like.
    let get = json!({"name": "review", "arguments": {"language": "${args.focus}"}});
    let answer = wire.request("prompts/get", get).await;
    assert_eq!(
        answer["result"],
        json!({
            "description": "Review a change.",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Review: ${args.focus}"}},
                {"role": "assistant", "content": {"type": "resource", "resource": {
                    "uri": "notes://${args.focus}",
                    "mimeType": "text/plain",
                    "text": "first of ${args.focus}",
                }}},
            ],
        })
    );
}

#[tokio::test]
async fn missing_prompt_arguments_are_an_error_if_nobody_can_be_asked() {
    let (mut wire, _) = Wire::initialized(server().0).await;
    let answer = wire.request("prompts/get", json!({"name": "review"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("language") && !message.contains("focus"), "{message}");
    let unknown = wire.request("prompts/get", json!({"name": "reviews"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn resources_are_listed_by_kind_and_read_by_address() {
    let (server, catalog) = server();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, b"\xff\x00").unwrap();
    catalog.set(Vec::new(), vec![notes("first"), file(&path, "text/plain")]);
    let (mut wire, _) = Wire::initialized(server).await;
    let list = wire.request("resources/list", json!({})).await;
    assert_eq!(
        list["result"]["resources"],
        json!([{"uri": "file://it", "name": "it", "mimeType": "text/plain"}])
    );
    let list = wire.request("resources/templates/list", json!({})).await;
    assert_eq!(list["result"]["resourceTemplates"][0]["uriTemplate"], "notes://{topic}");

    // Content that is not text is sent as bytes, whatever the manifest declares.
    let read = wire.request("resources/read", json!({"uri": "file://it"})).await;
    assert_eq!(
        read["result"]["contents"],
        json!([{"uri": "file://it", "mimeType": "text/plain", "blob": "/wA="}])
    );
    std::fs::write(&path, "now a text").unwrap();
    let read = wire.request("resources/read", json!({"uri": "file://it"})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "now a text");
    std::fs::remove_file(&path).unwrap();
    let gone = wire.request("resources/read", json!({"uri": "file://it"})).await;
    assert_eq!(gone["error"]["code"], -32603);
    // Clients do not learn its path on this machine.
    assert!(!gone.to_string().contains(folder.path().to_str().unwrap()), "{gone}");

    let none = wire.request("resources/read", json!({"uri": "notes://a/b"})).await;
    assert_eq!(none["error"]["code"], -32002);
    assert_eq!(none["error"]["data"], json!({"uri": "notes://a/b"}));
}

#[tokio::test]
async fn errors_repeat_no_secret_that_a_client_sends() {
    let registry: Registry = Registry::scratch().build().unwrap();
    let mask = Mask::new(["hunter2-secret".to_owned()]).unwrap();
    let executor = Executor::builder(registry).mask(mask).build();
    let catalog = Catalog::new();
    catalog.set(vec![review()], vec![notes("first")]);
    let server = McpServer::new(executor, McpOptions::default().catalog(catalog));
    let (mut client, _) = Wire::initialized(server).await;
    let completed = json!({"ref": {"type": "ref/prompt", "name": "hunter2-secret"}, "argument": {"name": "a", "value": ""}});
    for (method, params) in [
        ("prompts/get", json!({"name": "hunter2-secret"})),
        ("resources/read", json!({"uri": "x://hunter2-secret"})),
        ("completion/complete", completed),
        ("hunter2-secret", json!({})),
    ] {
        let refused = client.request(method, params).await;
        assert!(refused["error"]["code"].is_number(), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("[masked]") && !text.contains("hunter2"), "{text}");
    }
    client.close().await.unwrap();
}

#[tokio::test]
async fn secrets_are_masked_in_resources_and_prompts() {
    let registry: Registry = Registry::scratch().build().unwrap();
    let mask = Mask::new(["hunter2-secret".to_owned()]).unwrap();
    let executor = Executor::builder(registry).mask(mask).build();
    let catalog = Catalog::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, "password: hunter2-secret").unwrap();
    let binary = folder.path().join("binary");
    std::fs::write(&binary, b"\xff hunter2-secret").unwrap();
    let of_file = |path: &std::path::Path, mime_type: &str| {
        let file = ServedFile::new(path);
        let content = MessageContent::File { file, mime_type: mime_type.to_owned() };
        PromptMessage { by_assistant: false, content }
    };
    let text = MessageContent::Text("Use hunter2-secret.".into());
    let prompt = Prompt {
        arguments: Vec::new(),
        messages: vec![
            PromptMessage { by_assistant: false, content: text },
            of_file(&path, "text/plain"),
            of_file(&binary, "image/png"),
        ],
        ..review()
    };
    catalog.set(vec![prompt], vec![notes("hunter2-secret"), file(&path, "text/plain")]);
    let server = McpServer::new(executor, McpOptions::default().catalog(catalog.clone()));
    let (mut wire, _) = Wire::initialized(server).await;
    for (uri, expected) in
        [("file://it", "password: [masked]"), ("notes://hunter2-secret", "[masked] of [masked]")]
    {
        let read = wire.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["result"]["contents"][0]["text"], expected);
    }
    let messages = wire.request("prompts/get", json!({"name": "review"})).await;
    let content = |at: usize| &messages["result"]["messages"][at]["content"];
    assert_eq!(content(0)["text"], "Use [masked].");
    assert_eq!(content(1)["resource"]["text"], "password: [masked]");
    assert_eq!(content(2)["data"], "/yBbbWFza2VkXQ==");
    catalog.set(Vec::new(), vec![file(&path, "application/octet-stream")]);
    let read = wire.request_past_notices("resources/read", json!({"uri": "file://it"})).await;
    assert_eq!(read["result"]["contents"][0]["blob"], "cGFzc3dvcmQ6IFttYXNrZWRd");
}

#[tokio::test]
async fn a_toolset_without_offers_has_only_tools() {
    let turn = TurnOptions::default().toolset(Toolset::new());
    let (mut wire, hello) = Wire::initialized(server().0.for_client(turn)).await;
    assert!(hello["capabilities"].get("prompts").is_none(), "{hello}");
    for (method, params) in [
        ("prompts/get", json!({"name": "review", "arguments": {"language": "x"}})),
        ("resources/read", json!({"uri": "notes://x"})),
        ("resources/subscribe", json!({"uri": "notes://x"})),
    ] {
        assert_eq!(wire.request(method, params).await["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn a_toolset_offers_the_prompts_and_resources_that_it_names_and_no_others() {
    let (server, catalog) = server();
    let other = Prompt { name: "other".to_owned(), messages: Vec::new(), ..review() };
    let secret = Resource { address: Address::new("secret://{topic}"), ..notes("hidden") };
    catalog.set(vec![review(), other.clone()], vec![notes("first"), secret.clone()]);
    let toolset = Toolset::new().prompt("rev*").resource("notes://*");
    let turn = TurnOptions::default().toolset(toolset);
    let (mut wire, hello) = Wire::initialized(server.for_client(turn)).await;
    assert!(hello["capabilities"].get("prompts").is_some(), "{hello}");
    let names = |list: &Value, key: &str, name: &str| -> Vec<String> {
        let all = list["result"][key].as_array().unwrap().iter();
        all.map(|one| one[name].as_str().unwrap().to_owned()).collect()
    };
    let prompts = wire.request("prompts/list", json!({})).await;
    assert_eq!(names(&prompts, "prompts", "name"), ["review"]);
    let templates = wire.request("resources/templates/list", json!({})).await;
    assert_eq!(names(&templates, "resourceTemplates", "uriTemplate"), ["notes://{topic}"]);

    let read = |uri: &str| json!({"uri": uri});
    let known = wire.request("resources/read", read("notes://x")).await;
    assert_eq!(known["result"]["contents"][0]["text"], "first of x");
    assert_eq!(wire.request("resources/read", read("secret://x")).await["error"]["code"], -32002);
    let hidden = wire.request("prompts/get", json!({"name": "other", "arguments": {}})).await;
    assert_eq!(hidden["error"]["code"], -32602);

    // Changes of other resources are not reported before the next change.
    catalog.set(vec![review()], vec![notes("first"), secret]);
    catalog.set(vec![review(), other], vec![notes("first")]);
    catalog.set(Vec::new(), vec![notes("first")]);
    assert_eq!(wire.receive().await["method"], "notifications/prompts/list_changed");
    let prompts = wire.request("prompts/list", json!({})).await;
    assert_eq!(names(&prompts, "prompts", "name"), [""; 0]);
}

#[tokio::test]
async fn values_are_completed_from_the_suggestions() {
    let (mut wire, _) = Wire::initialized(server().0).await;
    let complete = |reference: Value, name: &str, value: &str| json!({"ref": reference, "argument": {"name": name, "value": value}});
    let prompt = json!({"type": "ref/prompt", "name": "review"});
    let template = json!({"type": "ref/resource", "uri": "notes://{topic}"});
    for (reference, name, value, expected) in [
        (&prompt, "language", "ru", json!(["Rust", "Ruby"])),
        (&prompt, "language", "", json!(["Rust", "Ruby", "Go"])),
        (&prompt, "focus", "x", json!([])),
        (&template, "topic", "r", json!(["Rust"])),
    ] {
        let asked = complete(reference.clone(), name, value);
        let answer = wire.request("completion/complete", asked).await;
        assert_eq!(answer["result"]["completion"]["values"], expected, "{name} {value}");
    }
    let unknown = complete(prompt, "langauge", "");
    let answer = wire.request("completion/complete", unknown).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn clients_are_notified_of_changed_lists_and_subscribed_resources() {
    let (server, catalog) = server();
    let (mut wire, hello) = Wire::initialized(server).await;
    assert_eq!(hello["capabilities"]["resources"], json!({"subscribe": true, "listChanged": true}));
    let follow = json!({"uri": "notes://rust"});
    assert_eq!(wire.request("resources/subscribe", follow.clone()).await["result"], json!({}));

    // The content of a subscribed resource, and no list.
    catalog.set(vec![review()], vec![notes("second")]);
    let told = wire.receive().await;
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(told["params"], follow);
    // Both lists, and the subscribed resource is gone.
    catalog.set(Vec::new(), Vec::new());
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(wire.receive().await["method"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        told,
        [
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ]
    );
    // After the end of the subscription, nothing is reported before the next answer.
    wire.request("resources/unsubscribe", follow).await;
    catalog.set(Vec::new(), vec![notes("third")]);
    assert_eq!(wire.receive().await["method"], "notifications/resources/list_changed");
    catalog.set(Vec::new(), vec![notes("fourth")]);
    let list = wire.request("prompts/list", json!({})).await;
    assert_eq!(list["result"]["prompts"], json!([]));
}
