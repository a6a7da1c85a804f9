//! The `OpenAPI` document, and whether answers match it.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::fixture::{Running, config, start};
use crate::raw_client::{Ask, Reply};

async fn document(server: &Running) -> Value {
    Ask::new(server.address, "GET /openapi.json").send().await.json()
}

/// Compares an answer with the document's schema for its status.
fn check(document: &Value, path: &str, method: &str, reply: &Reply) {
    let responses = &document["paths"][path][method]["responses"];
    let status = reply.status.to_string();
    let Some(response) = responses.get(&status) else {
        panic!("{method} {path}: {status} is not promised: {}", reply.body)
    };
    let media = reply.header("content-type").unwrap();
    let Some(content) = response["content"].get(media) else {
        panic!("{method} {path}: {status} as {media} is not promised: {response}")
    };
    let mut schema = content["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    let errors: Vec<_> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{method} {path} {status}: {errors:#?}\n{body:#}");
}

/// The method, the path in the document, the path that is asked, and the body; null for none.
type Row<'a> = (&'a str, &'a str, String, &'a Value);

/// A request for a response, and one for a chat completion.
fn openai_requests() -> (Value, Value) {
    let chat = json!({"model": "coder", "messages": [{"role": "user", "content": "Hello."}]});
    (json!({"model": "coder", "input": "Hello."}), chat)
}

/// The routes of OpenAI's protocols.
fn openai_rows<'a>(ask: &'a Value, chat: &'a Value, none: &'a Value) -> Vec<Row<'a>> {
    vec![
        ("post", "/v1/responses", "/v1/responses".into(), ask),
        #[cfg(feature = "websocket")]
        ("get", "/v1/responses", "/v1/responses".into(), none),
        ("get", "/v1/responses/{id}", "/v1/responses/resp_1".into(), none),
        ("post", "/v1/responses/{id}/cancel", "/v1/responses/resp_1/cancel".into(), none),
        ("get", "/v1/responses/{id}/input_items", "/v1/responses/r/input_items".into(), none),
        ("delete", "/v1/responses/{id}", "/v1/responses/resp_1".into(), none),
        ("post", "/v1/responses/compact", "/v1/responses/compact".into(), ask),
        ("post", "/v1/responses/input_tokens", "/v1/responses/input_tokens".into(), ask),
        ("post", "/v1/chat/completions", "/v1/chat/completions".into(), ask),
        ("post", "/v1/chat/completions", "/v1/chat/completions".into(), chat),
        ("get", "/v1/models", "/v1/models".into(), none),
    ]
}

#[tokio::test]
async fn every_answer_matches_the_document() {
    let server = start(config()).await;
    let document = document(&server).await;
    let calls = json!({"calls": [{"tool": "greet", "arguments": {"name": "a"}}, {"tool": "fail"}]});
    let waits = json!({"calls": [{"tool": "pick"}, {"tool": "remove"}, {"tool": "echo"}]});
    let run = Ask::api(server.address, "POST /v1/runs").json(&waits).send().await;
    let (id, waiting) = (run.json()["id"].clone(), run.json()["waiting"][0]["id"].clone());
    let at = |rest: &str| format!("/v1/runs/{}{rest}", id.as_str().unwrap());
    check(&document, "/v1/runs", "post", &run);
    let other = Ask::api(server.address, "POST /v1/tools/remove/call").json(&json!({}));
    let other = other.send().await.json()["waiting"][0]["id"].clone();
    let approval = format!("/v1/approvals/{}", waiting.as_str().unwrap());
    let another = format!("/v1/approvals/{}", other.as_str().unwrap());
    let yes = json!({"decision": "approve"});
    let none = Value::Null;
    let approve = json!({"id": waiting, "decision": "approve"});
    let outputs = json!({"tool_outputs": [{"tool_call_id": "call_1", "output": "a"}]});
    let (ask, chat) = openai_requests();
    let steer = json!({"input": "In German, please."});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mut rows: Vec<Row<'_>> = vec![
        ("get", "/health", "/health".into(), &none),
        ("get", "/ready", "/ready".into(), &none),
        ("get", "/v1/tools", "/v1/tools?limit=2".into(), &none),
        ("get", "/v1/tools/{name}", "/v1/tools/greet".into(), &none),
        ("get", "/v1/tools/{name}", "/v1/tools/none".into(), &none),
        ("get", "/v1/search", "/v1/search?q=greet".into(), &none),
        ("get", "/v1/search", "/v1/search".into(), &none),
        ("post", "/v1/tools/{name}/call", "/v1/tools/echo/call".into(), &none),
        ("post", "/v1/tools/{name}/call", "/v1/tools/fail/call".into(), &none),
        ("post", "/v1/tools/{name}/call", "/v1/tools/greet/call".into(), &none),
        ("post", "/v1/tools/{name}/call", "/v1/tools/remove/call".into(), &none),
        ("post", "/v1/batch", "/v1/batch".into(), &calls),
        ("post", "/v1/batch", "/v1/batch".into(), &waits),
        ("get", "/v1/runs", "/v1/runs".into(), &none),
        ("get", "/v1/runs/{id}", at(""), &none),
        ("get", "/v1/approvals", "/v1/approvals".into(), &none),
        ("get", "/v1/approvals/{id}", approval.clone(), &none),
        ("post", "/v1/runs/{id}/resolve", at("/resolve"), &approve),
        ("post", "/v1/approvals/{id}", approval, &none),
        ("post", "/v1/approvals/{id}", another, &yes),
        ("post", "/v1/runs/{id}/submit_tool_outputs", at("/submit_tool_outputs"), &outputs),
        ("post", "/v1/runs/{id}/cancel", at("/cancel"), &none),
        ("post", "/v1/runs/{id}/resume", at("/resume"), &none),
        ("post", "/v1/runs/{id}/steer", at("/steer"), &steer),
        ("get", "/v1/runs/{id}/events", at("/events"), &none),
        ("get", "/v1/runs/{id}/items", at("/items"), &none),
        ("get", "/v1/runs", "/v1/runs?status=completed".into(), &none),
        ("get", "/v1/runs", "/v1/runs?status=none".into(), &none),
        ("delete", "/v1/runs/{id}", at(""), &none),
        ("get", "/v1/status", "/v1/status".into(), &none),
        ("get", "/v1/stats", "/v1/stats".into(), &none),
        ("get", "/v1/audit", "/v1/audit".into(), &none),
        ("get", "/v1/names/{name}", "/v1/names/greet".into(), &none),
        ("post", "/v1/names/{name}/release", "/v1/names/greet/release".into(), &none),
        ("post", "/v1/tools/{name}/reset", "/v1/tools/greet/reset".into(), &none),
        ("post", "/v1/reload", "/v1/reload".into(), &none),
        ("get", "/openapi.json", "/openapi.json".into(), &none),
        ("post", "/mcp", "/mcp".into(), &list),
        ("get", "/mcp", "/mcp".into(), &none),
        ("delete", "/mcp", "/mcp".into(), &none),
        ("post", "/mcp/{toolset}", "/mcp/echoes".into(), &list),
        ("post", "/mcp/{toolset}", "/mcp/nowhere".into(), &list),
        ("get", "/mcp/{toolset}", "/mcp/echoes".into(), &none),
        ("delete", "/mcp/{toolset}", "/mcp/echoes".into(), &none),
    ];
    rows.extend(openai_rows(&ask, &chat, &none));
    let mut seen = HashSet::from([
        ("post", "/v1/runs"),
        ("get", "/metrics"),
        ("get", "/v1/events"),
        ("get", "/v1/prompt"),
    ]);
    for (method, path, real, body) in rows {
        let ask = Ask::mcp(server.address, "").with("content-length", "0");
        let line = format!("{} {real}", method.to_uppercase());
        let mut ask = ask.on(&line);
        if !body.is_null() {
            ask = ask.json(body);
        } else if !path.starts_with("/mcp") {
            ask = ask.without("content-type");
        }
        let ask =
            if path.starts_with("/mcp") { ask } else { ask.with("accept", "application/json") };
        check(&document, path, method, &ask.send().await);
        seen.insert((method, path));
    }
    // The document contains nothing that was not requested here.
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            assert!(seen.contains(&(method.as_str(), path.as_str())), "{method} {path}");
        }
    }
    server.end().await;
}

#[tokio::test]
async fn the_document_is_complete() {
    let server = start(config()).await;
    let document = document(&server).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    let mut operations = HashSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(operations.insert(id), "{id} twice");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{id}");
            // The parameters of a path are those in its text.
            let empty = Vec::new();
            let parameters = operation["parameters"].as_array().unwrap_or(&empty).iter();
            let declared: HashSet<_> = parameters
                .filter(|one| one["in"] == "path")
                .map(|one| format!("{{{}}}", one["name"].as_str().unwrap()))
                .collect();
            let written: HashSet<_> =
                path.split('/').filter(|part| part.starts_with('{')).map(str::to_owned).collect();
            assert_eq!(declared, written, "{id}");
        }
    }
    references(&document, &mut |reference| {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    });
    server.end().await;
}

fn references(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| match value {
            Value::String(reference) if key == "$ref" => found(reference),
            value => references(value, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
