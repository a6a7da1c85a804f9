//! The cases of the Open Responses compliance suite that need no WebSocket, on a bare model and on an agent, with a
//! checker that was written from the specification.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply as ModelReply};
use toolcrib_testkit::served::{Dialect, check_compaction, check_response, check_stream};

use super::MODEL;
use crate::agents::harness::crib;
use crate::agents::served::post;
use crate::harness::crib::Crib;
use crate::harness::http::Http;

/// Both names that a client can give: a bare model, and an agent.
const NAMES: [&str; 2] = [MODEL, "default"];

/// A red square of one pixel.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

struct Served {
    model: ModelServer,
    _crib: Crib,
    server: Http,
}

impl Served {
    /// A server of the open dialect whose model gives each reply twice: to the bare model, and to the agent.
    async fn start(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let replies: Vec<_> = replies.into_iter().collect();
        let all = replies.iter().chain(&replies).cloned();
        let model = ModelServer::for_several(Wire::Responses, all).await;
        let crib = crib(Wire::Responses, &model.base_url());
        let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
        crib.config(&format!("{config}responses: {{dialect: open}}\n"));
        let server = Http::start(&crib, "");
        Self { model, _crib: crib, server }
    }

    /// A completed response with at least one item.
    fn completed(&self, body: &Value) -> Value {
        let (status, response) = post(&self.server, "/v1/responses", body);
        assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
        check_response(Dialect::Open, &response)
            .unwrap_or_else(|problem| panic!("{problem}: {response}"));
        assert_ne!(response["output"], json!([]), "{response}");
        response
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.model.violations(), [""; 0]);
        }
    }
}

/// A stream without the sizes of its chunks.
pub(super) fn unchunked(body: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some(("event", _)) => format!("{line}\n"),
        Some(("data", _)) => format!("{line}\n\n"),
        _ => String::new(),
    };
    body.lines().map(line).collect()
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_response() {
    let served = Served::start([ModelReply::text("Hello.")]).await;
    for model in NAMES {
        served
            .completed(&json!({"model": model, "input": [user("Say hello in exactly 3 words.")]}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn system_prompt() {
    let served = Served::start([ModelReply::text("Ahoy.")]).await;
    let system = json!({"type": "message", "role": "system", "content": "You are a pirate."});
    for model in NAMES {
        served.completed(&json!({"model": model, "input": [system, user("Say hello.")]}));
    }
    for request in served.model.requests() {
        assert!(request.text.contains("You are a pirate."), "{}", request.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn image_input() {
    let served = Served::start([ModelReply::text("A red square.")]).await;
    let seen = json!({"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "What do you see?"},
        {"type": "input_image", "image_url": PICTURE},
    ]});
    for model in NAMES {
        served.completed(&json!({"model": model, "input": [seen]}));
    }
    for request in served.model.requests() {
        assert!(request.text.contains(PICTURE), "the picture reaches the model: {}", request.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn multi_turn() {
    let served = Served::start([ModelReply::text("Alice.")]).await;
    let said = json!({"type": "message", "role": "assistant", "content": "Hello, Alice."});
    for model in NAMES {
        let input = [user("My name is Alice."), said.clone(), user("What is my name?")];
        served.completed(&json!({"model": model, "input": input}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn assistant_phase() {
    let served = Served::start([ModelReply::text("It is done.")]).await;
    let said = |phase: &str, text: &str| {
        let content = json!([{"type": "output_text", "text": text}]);
        json!({"type": "message", "role": "assistant", "phase": phase, "content": content})
    };
    for model in NAMES {
        let input = [
            user("Look it up."),
            said("commentary", "I look it up."),
            said("final_answer", "It is 4."),
            user("And now?"),
        ];
        served.completed(&json!({"model": model, "input": input}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn response_output_phase_schema() {
    let served = Served::start([ModelReply::text("It is done.")]).await;
    for model in NAMES {
        let response = served.completed(&json!({"model": model, "input": "Do it."}));
        let phase = &response["output"][0]["phase"];
        assert!(["final_answer", "commentary"].iter().any(|one| phase == one) || phase.is_null());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streaming_response() {
    let reply = ModelReply::text("One, two, three.").with_reasoning("They want to count.");
    let served = Served::start([reply]).await;
    for model in NAMES {
        let ask = json!({"model": model, "input": [user("Count.")], "stream": true});
        let reply = served.server.ask("POST /v1/responses", Some(&ask));
        assert_eq!(reply.status, 200, "{}", reply.body);
        let checked = check_stream(Dialect::Open, &unchunked(&reply.body));
        let checked = checked.unwrap_or_else(|problem| panic!("{problem}: {}", reply.body));
        assert_eq!(checked.response["status"], "completed", "{}", reply.body);
        assert!(checked.names.iter().any(|name| name == "response.output_text.delta"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_calling() {
    let served =
        Served::start([ModelReply::call("get_weather", json!({"location": "Paris"}))]).await;
    let tool = json!({"type": "function", "name": "get_weather", "description": "Get the weather.",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}});
    for model in NAMES {
        let ask =
            json!({"model": model, "input": [user("The weather in Paris?")], "tools": [tool]});
        let response = served.completed(&ask);
        let calls = response["output"].as_array().expect("items").iter();
        let call = calls.clone().find(|item| item["type"] == "function_call");
        assert_eq!(call.map(|call| &call["name"]), Some(&json!("get_weather")), "{response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compact_response() {
    let replies = [ModelReply::text("Alice was greeted."), ModelReply::text("Alice.")];
    let served = Served::start(replies).await;
    for model in NAMES {
        let said = json!({"type": "message", "role": "assistant", "content": "Hello, Alice."});
        let ask = json!({"model": model, "input": [user("My name is Alice."), said]});
        let (status, compaction) = post(&served.server, "/v1/responses/compact", &ask);
        assert_eq!(status, 200, "{compaction}");
        check_compaction(Dialect::Open, &compaction)
            .unwrap_or_else(|problem| panic!("{problem}: {compaction}"));
        assert!(!compaction.to_string().contains("was greeted"), "it is sealed: {compaction}");
        // Its output is an input, with items that nobody knows.
        let mut input = compaction["output"].as_array().expect("items").clone();
        input.push(json!({"type": "toolcrib:unknown", "id": "x_1"}));
        input.push(user("What is my name?"));
        served.completed(&json!({"model": model, "input": input}));
    }
    let asked = served.model.requests();
    for (summary, next) in [(&asked[0], &asked[1]), (&asked[2], &asked[3])] {
        assert!(summary.text.contains("Assistant: Hello, Alice."), "{}", summary.text);
        assert!(summary.body["tools"].as_array().is_none_or(Vec::is_empty), "{}", summary.text);
        assert!(next.text.contains("Alice was greeted."), "{}", next.text);
        assert!(next.text.contains("My name is Alice."), "{}", next.text);
        assert!(!next.text.contains("Hello, Alice."), "{}", next.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compact_missing_model() {
    let served = Served::start([]).await;
    let (status, refused) =
        post(&served.server, "/v1/responses/compact", &json!({"input": [user("Hello.")]}));
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("model")), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_ran_here_are_function_calls_with_their_outputs() {
    let model = ModelServer::for_several(
        Wire::Responses,
        [ModelReply::call("say", json!({"text": "hi"})), ModelReply::text("Said.")],
    );
    let model = model.await;
    let crib = crib(Wire::Responses, &model.base_url());
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&format!("{config}responses: {{dialect: open}}\n"));
    let server = Http::start(&crib, "");
    let ask = json!({"model": "default", "input": "Say hi.", "stream": true});
    let reply = server.ask("POST /v1/responses", Some(&ask));
    let checked = check_stream(Dialect::Open, &unchunked(&reply.body));
    let response = checked.unwrap_or_else(|problem| panic!("{problem}: {}", reply.body)).response;
    let types: Vec<_> = response["output"].as_array().expect("items").iter().collect();
    assert_eq!(
        (&types[0]["type"], &types[1]["type"], &types[1]["call_id"]),
        (&json!("function_call"), &json!("function_call_output"), &types[0]["call_id"]),
        "{response}"
    );
    // A reload changes what the next reader sees.
    crib.config(&format!("{config}responses: {{dialect: openai}}\n"));
    let reloaded = server.ask("POST /v1/reload", None);
    assert_eq!(reloaded.status, 200, "{}", reloaded.body);
    let path = format!("GET /v1/responses/{}", response["id"].as_str().expect("an id"));
    let shown = server.ask(&path, None).json();
    assert_eq!(shown["output"][0]["type"], "mcp_call", "{shown}");
    check_response(Dialect::OpenAi, &shown).unwrap_or_else(|problem| panic!("{problem}: {shown}"));
}
