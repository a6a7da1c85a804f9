//! Runs over HTTP, in the three protocols.

use std::sync::{Arc, Mutex};

use secrecy::SecretString;
use serde_json::json;
use toolcrib_agent::AgentEvent;
use toolcrib_agent::budget::Prices;
use toolcrib_agent::run::RunState;
use toolcrib_testkit::model_server::{Fault, Reply};
use toolcrib_wire::model::{ModelEvent, Wire};

use crate::fixture::{Counts, Seen, builder, endpoint, kind, served, transcript};

fn script() -> [Reply; 3] {
    [
        Reply::call("add", json!({"a": 1, "b": 2}))
            .and_call("write", json!({"file": "notes.txt"}))
            .with_reasoning("Both can be done at once.")
            .with_text("I'll add and write."),
        Reply::call("add", json!({"a": 3, "b": 4})).with_fault(Fault::Pieces(11)),
        Reply::text("The sums are 3 and 7. Grüße 🌍"),
    ]
}

#[tokio::test]
async fn a_run_with_parallel_calls_works_in_every_protocol() {
    for &wire in Wire::ALL {
        let counts = Arc::new(Counts::default());
        let (server, builder) = served(wire, &counts, script()).await;
        let report = builder.build().run("Add, and write it down.").await.unwrap();
        assert_eq!(server.violations(), Vec::<String>::new(), "{wire}");
        assert_eq!(report.text(), "The sums are 3 and 7. Grüße 🌍", "{wire}");
        assert_eq!(report.state(), RunState::Completed);
        assert_eq!(counts.all(), [2, 1, 0], "{wire}");
        assert_eq!(
            transcript(&report),
            [
                "User: Add, and write it down.",
                "reasoning: Both can be done at once.",
                "model: I'll add and write.",
                r#"call_1_0 add{"a":1,"b":2}"#,
                r#"call_1_1 write{"file":"notes.txt"}"#,
                "call_1_0: 3",
                "call_1_1: written, for the 1. time",
                r#"call_2_0 add{"a":3,"b":4}"#,
                "call_2_0: 7",
                "model: The sums are 3 and 7. Grüße 🌍",
            ],
            "{wire}"
        );
        let spent = report.spent();
        assert_eq!((spent.turns, spent.calls, spent.unknown_requests), (3, 3, 0));
        assert_eq!(spent.usage.output, 60, "{wire}");
    }
}

#[tokio::test]
async fn consecutive_requests_begin_with_the_same_bytes() {
    for &wire in Wire::ALL {
        let counts = Arc::new(Counts::default());
        let (server, builder) = served(wire, &counts, script()).await;
        builder.build().run("Add, and write it down.").await.unwrap();
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        for pair in requests.windows(2) {
            let shared = pair[0].text.strip_suffix("]}").expect("the tail of a request");
            assert!(pair[1].text.starts_with(shared), "{wire}");
        }
    }
}

#[tokio::test]
async fn the_key_is_sent_where_the_protocol_wants_it_and_not_in_debug_output() {
    for &wire in Wire::ALL {
        let counts = Arc::new(Counts::default());
        let (server, _) = served(wire, &counts, [Reply::text("Hi.")]).await;
        let key = SecretString::from("sk-very-secret");
        let endpoint = endpoint(&server).api_key(key);
        assert!(!format!("{endpoint:?}").contains("sk-very-secret"));
        builder(&counts, Arc::new(endpoint)).build().run("Hello.").await.unwrap();
        let request = &server.requests()[0];
        if wire == Wire::Anthropic {
            assert_eq!(request.header("x-api-key"), Some("sk-very-secret"));
            assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
        } else {
            assert_eq!(request.header("authorization"), Some("Bearer sk-very-secret"));
        }
    }
}

#[tokio::test]
async fn viewers_see_the_answer_while_it_streams_and_every_row() {
    let counts = Arc::new(Counts::default());
    let (_server, builder) = served(Wire::Responses, &counts, script()).await;
    let (seen, text) = (Arc::new(Seen::default()), Arc::new(Mutex::new(String::new())));
    let (rows, streamed) = (Arc::clone(&seen), Arc::clone(&text));
    let agent = builder
        .on_event(move |event| match event {
            AgentEvent::Recorded { entry, seq, .. } => {
                rows.0.lock().unwrap().push(format!("{seq} {}", kind(entry)));
            }
            AgentEvent::Model { event: ModelEvent::Text { delta }, .. } => {
                streamed.lock().unwrap().push_str(delta);
            }
            _ => {}
        })
        .build();
    agent.run("Add, and write it down.").await.unwrap();
    assert_eq!(*text.lock().unwrap(), "I'll add and write.The sums are 3 and 7. Grüße 🌍");
    assert_eq!(
        seen.take(),
        [
            "1 started",
            "2 input",
            "3 model_requested",
            "4 model_answered",
            "5 calls_started",
            "6 call_finished",
            "7 call_finished",
            "8 model_requested",
            "9 model_answered",
            "10 calls_started",
            "11 call_finished",
            "12 model_requested",
            "13 model_answered",
            "14 finished",
        ]
    );
}

#[tokio::test]
async fn the_cost_is_counted_with_the_prices_of_the_endpoint() {
    let counts = Arc::new(Counts::default());
    let (server, _) = served(Wire::Chat, &counts, [Reply::text("Hi.")]).await;
    let prices = Prices { input: 3_000, output: 15_000, ..Prices::default() };
    let model = endpoint(&server).prices(prices);
    let report = builder(&counts, Arc::new(model)).build().run("Hello.").await.unwrap();
    assert_eq!(report.spent().cost.to_string(), "$0.000600");
}

#[tokio::test]
async fn a_server_that_ignores_streaming_is_understood() {
    let counts = Arc::new(Counts::default());
    let body = json!({"id": "c1", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "All at once."}}]});
    let (_server, builder) =
        served(Wire::Chat, &counts, [Reply::status(200, body.to_string())]).await;
    assert_eq!(builder.build().run("Hello.").await.unwrap().text(), "All at once.");
}

#[tokio::test]
async fn an_address_that_is_not_allowed_is_not_connected_to() {
    let counts = Arc::new(Counts::default());
    let (server, _) = served(Wire::Chat, &counts, [Reply::text("Hi.")]).await;
    let model = toolcrib_agent::model::Endpoint::new(Wire::Chat, &server.base_url(), "scripted");
    let report = builder(&counts, Arc::new(model)).build().run("Hello.").await.unwrap();
    assert_eq!(report.state(), RunState::Failed);
    assert_eq!(server.requests().len(), 0);
}
