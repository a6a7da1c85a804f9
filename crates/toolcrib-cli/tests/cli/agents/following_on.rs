//! Requests that go on from a response as soon as its last event is read.

use std::io::Read as _;

use serde_json::json;
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply as ModelReply};

use super::harness::crib;
use super::served::post;
use crate::harness::http::Http;

const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_follows_the_last_event_of_a_stream_at_once_is_not_refused() {
    let replies = (0..=2 * ROUNDS).map(|_| ModelReply::text("Yes."));
    let model = ModelServer::for_several(Wire::Chat, replies).await;
    let crib = crib(Wire::Chat, &model.base_url());
    let server = Http::start(&crib, "");
    let first = json!({"model": "default", "input": "Hi."});
    let mut previous = post(&server, "/v1/responses", &first).1["id"].clone();
    for _ in 0..ROUNDS {
        let next = json!({"model": "default", "input": "And?", "stream": true, "previous_response_id": previous});
        let head = format!("POST /v1/responses HTTP/1.1\r\nauthorization: Bearer {}", server.token);
        let mut stream = server.stream(&head, &next);
        let (mut read, mut buffer) = (String::new(), [0; 4096]);
        while !read.contains("event: response.completed") {
            let count = stream.read(&mut buffer).expect("an event");
            assert!(count > 0, "{read}");
            read.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let id = read.split("\"id\":\"").find_map(|rest| {
            rest.starts_with("resp_").then(|| rest.split('"').next().unwrap_or_default())
        });
        let next = json!({"model": "default", "input": "And?", "previous_response_id": id});
        let (status, response) = post(&server, "/v1/responses", &next);
        assert_eq!(status, 200, "{response}");
        previous = response["id"].clone();
    }
}
