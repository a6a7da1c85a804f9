//! The document and the server agree: what the document allows is accepted, and what it forbids is
//! refused, for the body and the parameters of every operation.

use serde_json::{Map, Value, json};

use crate::fixture::{Running, config, start};
use crate::raw_client::{Ask, Reply};

/// Replacement values.
fn replacements() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(7),
        json!(28.0),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("approve"),
        json!("é".repeat(256)),
        json!("x".repeat(257)),
        json!([]),
        json!([1]),
        json!({}),
        json!({"a": {"b": 1}}),
    ]
}

/// Every body that differs from an example in one place.
fn variants(example: &Value) -> Vec<Value> {
    let mut found = replacements();
    match example {
        Value::Object(members) => {
            for (name, value) in members {
                let mut without = members.clone();
                without.remove(name);
                found.push(Value::Object(without));
                for variant in variants(value) {
                    let mut changed = members.clone();
                    changed.insert(name.clone(), variant);
                    found.push(Value::Object(changed));
                }
            }
            let mut more = members.clone();
            more.insert("no_such_key".to_owned(), json!(1));
            found.push(Value::Object(more));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for variant in variants(item) {
                    let mut changed = items.clone();
                    changed[index] = variant;
                    found.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    found
}

/// An example with every optional key of its schema, so that each is varied.
fn full(example: &Value, operation: &str) -> Value {
    let mut full = example.clone();
    let more = match operation {
        "callTool" => json!({"call_id": "a", "session": "s"}),
        "callTools" | "startRun" => json!({"session": "s", "max_concurrency": 2}),
        _ => json!({}),
    };
    if let (Value::Object(full), Value::Object(more)) = (&mut full, more) {
        full.extend(more);
    }
    full
}

/// Whether the request itself was refused. The answer of a tool, of a run or of a missing call does not concern the
/// form of the request.
fn is_refused(reply: &Reply) -> bool {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let is_problem = matches!(body["kind"].as_str(), Some("invalid_request" | "invalid_json"))
        && body.get("result").is_none();
    // Routes of OpenAI's protocols have OpenAI's errors.
    let is_error =
        body["error"]["type"] == "invalid_request_error" && [400, 422].contains(&reply.status);
    is_problem || is_error
}

fn operations(document: &Value) -> Vec<(String, String, Map<String, Value>)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().iter();
        let of_method = |(method, operation): (&String, &Value)| {
            (method.to_uppercase(), path.clone(), operation.as_object().unwrap().clone())
        };
        methods.map(of_method).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

async fn document(server: &Running) -> Value {
    Ask::new(server.address, "GET /openapi.json").send().await.json()
}

fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut schema = schema.clone();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("components".to_owned(), document["components"].clone());
    }
    jsonschema::validator_for(&schema).unwrap()
}

/// The parameters of a path.
fn real(path: &str) -> String {
    path.replace("{name}", "echo")
        .replace("{toolset}", "echoes")
        .replace("{id}", "00000000000000000000000000000000")
}

#[tokio::test]
async fn bodies_are_accepted_exactly_if_the_document_allows_them() {
    let server = start(config()).await;
    let document = document(&server).await;
    let mut asked = 0;
    for (method, path, operation) in operations(&document) {
        let Some(body) = operation.get("requestBody") else { continue };
        // MCP has its own schema, of which the document shows only the outermost level.
        // So have OpenAI's protocols, whose bodies other tests check.
        if ["/mcp", "/v1/responses", "/v1/chat"].iter().any(|own| path.starts_with(own)) {
            continue;
        }
        let content = &body["content"]["application/json"];
        let validator = validator(&document, &content["schema"]);
        let id = operation["operationId"].as_str().unwrap();
        let example = &content["example"];
        assert!(validator.is_valid(example), "{id}: its example is not allowed: {example}");
        let full = full(example, id);
        assert!(validator.is_valid(&full), "{id}: {full}");
        for variant in [example.clone(), full.clone()].into_iter().chain(variants(&full)) {
            let ask = Ask::api(server.address, &format!("{method} {}", real(&path)));
            let reply = ask.json(&variant).send().await;
            let allowed = validator.is_valid(&variant);
            let shown: String = variant.to_string().chars().take(300).collect();
            assert_eq!(
                !is_refused(&reply),
                allowed,
                "{id}: the document {} {shown}, and the server says {} {}",
                if allowed { "allows" } else { "forbids" },
                reply.status,
                reply.body
            );
            let documented = operation["responses"].get(reply.status.to_string());
            assert!(documented.is_some(), "{id}: {} is not in the document", reply.status);
            asked += 1;
        }
        let empty = Ask::api(server.address, &format!("{method} {}", real(&path)));
        let empty = empty.with("content-type", "application/json").body("").send().await;
        assert_eq!(is_refused(&empty), body["required"] == true, "{id}: {}", empty.body);
    }
    assert!(asked > 400, "{asked}");
    server.end().await;
}

#[tokio::test]
async fn parameters_are_accepted_exactly_if_the_document_allows_them() {
    let server = start(config()).await;
    let document = document(&server).await;
    let texts = [
        "", " ", "x", "greet", "0", "1", "-1", "1000", "1001", "100000", "100001", "1.5", "true",
        "false",
    ];
    let mut asked = 0;
    // Each operation has its own keys: one that was used for another request is refused.
    let letters = '!'..;
    for (letter, (method, path, operation)) in letters.zip(operations(&document)) {
        // A stream without an end.
        if operation["operationId"] == "watchEvents" {
            continue;
        }
        let none = Vec::new();
        let parameters = operation.get("parameters").and_then(Value::as_array).unwrap_or(&none);
        let required: Vec<&Value> = parameters
            .iter()
            .filter(|one| one["in"] == "query" && one["required"] == true)
            .collect();
        let line = |query: &[(&str, &str)]| {
            let mut url = form(query);
            if !url.is_empty() {
                url.insert(0, '?');
            }
            format!("{method} {}{url}", real(&path))
        };
        for parameter in parameters.iter().filter(|one| one["in"] == "query") {
            let validator = validator(&document, &parameter["schema"]);
            let name = parameter["name"].as_str().unwrap();
            for text in texts {
                // In a query, a number or a boolean is written as in JSON.
                let typed = serde_json::from_str(text)
                    .ok()
                    .filter(|value: &Value| value.is_number() || value.is_boolean());
                let as_text = parameter["schema"]["type"] == "string";
                let value = typed.filter(|_| !as_text).unwrap_or_else(|| json!(text));
                let others = required.iter().filter(|one| one["name"] != name);
                let mut query: Vec<(&str, &str)> =
                    others.map(|one| (one["name"].as_str().unwrap(), "x")).collect();
                query.push((name, text));
                let reply = Ask::api(server.address, &line(&query)).send().await;
                assert_eq!(
                    !is_refused(&reply),
                    validator.is_valid(&value),
                    "{path}: {name}={text:?}: {} {}",
                    reply.status,
                    reply.body
                );
                asked += 1;
            }
            let without = Ask::api(server.address, &line(&[])).send().await;
            assert_eq!(is_refused(&without), !required.is_empty(), "{path} without {name}");
        }
        for parameter in parameters.iter().filter(|one| one["in"] == "header") {
            let validator = validator(&document, &parameter["schema"]);
            let name = parameter["name"].as_str().unwrap();
            let body = operation.get("requestBody").cloned().unwrap_or_default();
            let example = body["content"]["application/json"].get("example");
            let example = example.cloned().unwrap_or_else(|| json!({}));
            let letter = letter.to_string();
            let lettered = |text: &str| format!("{text}{letter}");
            let texts = [lettered(""), lettered("a "), lettered("~!"), letter.repeat(256)];
            for text in texts.into_iter().chain([letter.repeat(257), "\t".to_owned()]) {
                let text = text.as_str();
                let ask = Ask::api(server.address, &format!("{method} {}", real(&path)));
                let reply = ask.json(&example).with(name, text).send().await;
                // A header loses the blanks around it; if it is empty then, it counts as another
                // value.
                let allowed = validator.is_valid(&json!(text.trim()));
                assert_eq!(
                    !is_refused(&reply),
                    allowed,
                    "{path}: {name}: {text:?}: {}",
                    reply.body
                );
                asked += 1;
            }
        }
    }
    assert!(asked > 60, "{asked}");
    server.end().await;
}

fn form(query: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", value.replace(' ', "%20"));
    query.iter().map(pair).collect::<Vec<_>>().join("&")
}
