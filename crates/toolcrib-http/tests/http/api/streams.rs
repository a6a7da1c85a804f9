//! Calls as streams of events.

use serde_json::{Value, json};

use crate::fixture::{config, start};
use crate::raw_client::Ask;

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn a_call_streams_its_output_and_ends_with_its_answer() {
    let server = start(config()).await;
    let events = Ask::api(server.address, "POST /v1/tools/speak/call").events().await;
    assert_eq!(
        names(&events),
        [
            "call.prepare",
            "call.status",
            "call.output",
            "call.output",
            "call.status",
            "call.completed",
            "result"
        ]
    );
    assert_eq!(events[1].1["payload"]["tip"], "thinking");
    assert_eq!(events[2].1["payload"]["text"], "half");
    let numbers: Vec<_> = events[..6].iter().map(|(_, data)| data["sequence"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    assert_eq!(events[6].1["output"], "whole");
    server.end().await;
}

#[tokio::test]
async fn a_batch_is_streamed_one_call_after_another() {
    let server = start(config()).await;
    let calls = json!({"calls": [{"tool": "speak"}, {"tool": "speak"}, {"tool": "nothing"}]});
    let events = Ask::api(server.address, "POST /v1/batch").json(&calls).events().await;
    let (last, told) = events.split_last().unwrap();
    assert_eq!(last.0, "result");
    assert_eq!(last.1["results"].as_array().unwrap().len(), 3);
    assert_eq!(last.1["results"][2]["error"]["kind"], "not_found");
    let spoken = told.iter().filter(|(name, _)| name != "call.prepare");
    let speakers: Vec<_> = spoken.map(|(_, data)| data["call_id"].as_str().unwrap()).collect();
    let changes = speakers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 1, "{speakers:?}");
    server.end().await;
}

#[tokio::test]
async fn a_stream_of_a_call_that_waits_ends_with_its_run() {
    let server = start(config()).await;
    let events = Ask::api(server.address, "POST /v1/tools/remove/call").events().await;
    assert_eq!(names(&events).last(), Some(&"run"));
    let run = &events.last().unwrap().1;
    assert_eq!(run["waiting"][0]["type"], "approval");
    server.end().await;
}

#[tokio::test]
async fn an_abandoned_stream_cancels_its_call() {
    let server = start(config()).await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let ask = Ask::api(server.address, "POST /v1/tools/wait/call");
    ask.with("accept", "text/event-stream").write(&mut stream).await;
    server.waits.begun.notified().await;
    drop(stream);
    server.waits.dropped.notified().await;
    server.end().await;
}
