//! Cancelling a request cancels its call.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::fixture::{self, Event};
use crate::wire::Wire;

async fn next(events: &mut UnboundedReceiver<Event>) -> Event {
    timeout(Duration::from_secs(10), events.recv()).await.expect("an event in time").unwrap()
}

#[tokio::test]
async fn a_cancelled_request_drops_its_call_and_is_not_answered() {
    let (server, mut events) = fixture::server_and_events();
    let (mut wire, _) = Wire::initialized(server).await;
    let call = json!({"name": "wait", "arguments": {}});
    wire.send(&json!({"jsonrpc": "2.0", "id": "w1", "method": "tools/call", "params": call})).await;
    assert_eq!(next(&mut events).await, Event::Started);

    let params = json!({"requestId": "w1", "reason": "not needed any more"});
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await;
    assert_eq!(next(&mut events).await, Event::Dropped);
    // The next message is the answer to the next request: `request` checks its id.
    let answer = wire.call("add", json!({"a": 1, "b": 1})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "2");
}

#[tokio::test]
async fn closing_the_server_drops_running_calls() {
    let (server, mut events) = fixture::server_and_events();
    let (mut wire, _) = Wire::initialized(server.clone()).await;
    let call = json!({"name": "wait", "arguments": {}});
    wire.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})).await;
    assert_eq!(next(&mut events).await, Event::Started);
    server.close();
    assert_eq!(next(&mut events).await, Event::Dropped);
    wire.close().await.unwrap();
}
