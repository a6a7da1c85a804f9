//! Calls: what is sent, what comes back, and how a server's faults affect them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::events::{EventBus, Payload};
use toolcrib_core::masking::Mask;
use toolcrib_core::{Executor, Registry, RegistryBuilder, TurnOptions};
use toolcrib_mcp::upstream::{MemoryPins, Upstream, Upstreams};
use toolcrib_tool::{ErrorKind, ToolCall};

use super::{HIDDEN, PATIENCE, Room, Scripted, assert_hidden, until};

#[tokio::test]
async fn a_call_uses_the_servers_own_name_and_its_output_is_marked() {
    let server = Scripted::new(&["notes.get"]);
    let room = Room::with([server.upstream("my")]).await;
    assert_eq!(room.listed(), ["my_notes_get"]);
    let result = room.call_with("my_notes_get", &json!({"id": 7, "deep": [{"a": null}]})).await;
    let text = result.text();
    let lines: Vec<&str> = text.lines().collect();
    let [first, answer, last] = lines.as_slice() else { panic!("{text}") };
    assert!(first.starts_with("[untrusted output of the MCP server `my`, up to "), "{first}");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(answer).unwrap(),
        json!({"name": "notes.get", "arguments": {"id": 7, "deep": [{"a": null}]}})
    );
    assert!(last.starts_with("[end "), "{last}");
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn failures_that_a_server_reports_are_failed_calls() {
    let server = Scripted::new(&["fail", "error", "data"]);
    let room = Room::with([server.upstream("my")]).await;
    let failed = room.call("my_fail").await;
    assert_eq!(failed.error_kind(), Some(ErrorKind::Execution));
    assert!(failed.text().contains("`my` reports a failure"), "{}", failed.text());
    assert!(failed.text().contains("no such thing"), "{}", failed.text());
    let refused = room.call("my_error").await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Execution));
    assert!(refused.text().contains("refused the call (code -32602)"), "{}", refused.text());
    assert_eq!(room.call("my_data").await.data(), Some(&json!({"sum": 3})));
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn an_abandoned_call_is_cancelled_and_a_responsive_server_is_kept() {
    let server = Scripted::new(&["hang", "other"]);
    let upstream = server.upstream("my").timeout(Duration::from_millis(300));
    let room = Room::with([upstream]).await;
    let late = room.call("my_hang").await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Timeout));
    assert!(late.text().contains("took effect is unknown"), "{}", late.text());
    assert!(late.text().contains("may go on and complete the call"), "{}", late.text());
    until("the server is told", || !server.heard("notifications/cancelled").is_empty()).await;
    let called = &server.heard("tools/call")[0];
    assert_eq!(server.heard("notifications/cancelled")[0]["params"]["requestId"], called["id"]);
    // It has shown that it is alive, so nothing was restarted.
    until("it is asked for its tools", || server.heard("tools/list").len() > 1).await;
    assert!(room.call("my_other").await.is_success());
    assert_eq!(server.heard("initialize").len(), 1);
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn a_hanging_server_is_restarted() {
    let server = Scripted::new(&["stuck", "other"]);
    let upstream = server
        .upstream("my")
        .timeout(Duration::from_millis(200))
        .connect_timeout(Duration::from_secs(2));
    let room = Room::with([upstream]).await;
    assert_eq!(room.call("my_stuck").await.error_kind(), Some(ErrorKind::Timeout));
    until("it was started again", || server.heard("initialize").len() == 2).await;
    until("it can be called", || room.listed().len() == 2).await;
    assert!(room.call("my_other").await.is_success());
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_fails_it_and_is_restarted() {
    let server = Scripted::new(&["crash", "other"]);
    let upstream = server.upstream("my").reconnect(Duration::from_secs(1), Duration::from_secs(1));
    let room = Room::with([upstream]).await;
    let before = room.executor.turn(TurnOptions::default());
    let lost = room.call("my_crash").await;
    // It may have had its effect, so nobody is told to repeat it.
    assert_eq!(lost.error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert!(!lost.error().unwrap().retryable());
    assert!(lost.text().contains("check before you call it again"), "{}", lost.text());

    until("its tools are withdrawn", || room.listed().is_empty()).await;
    let reason = "the MCP server `my` is not connected: it ended with exit code 3";
    assert_eq!(room.unavailable("my_other").as_deref(), Some(reason));
    // A turn that was opened before lists it; the call reports the change.
    let late = before.call(ToolCall::new("late", "my_other", "{}")).await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Unavailable));
    assert!(late.text().contains(reason), "{}", late.text());

    until("it is back", || room.listed() == ["my_crash", "my_other"]).await;
    assert!(room.call("my_other").await.is_success());
    // The same for that old turn.
    assert!(before.call(ToolCall::new("again", "my_other", "{}")).await.is_success());
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn a_flood_neither_fills_memory_nor_delays_others() {
    let (server, other) = (Scripted::new(&["flood"]), Scripted::new(&["other"]));
    let room = Room::with([server.upstream("my"), other.upstream("its")]).await;
    let started = Instant::now();
    let (flood, quick) = tokio::join!(room.call("my_flood"), async {
        let result = room.call("its_other").await;
        (result, started.elapsed())
    });
    assert!(flood.is_success(), "{}", flood.text());
    assert!(quick.0.is_success() && quick.1 < Duration::from_secs(5), "{:?}", quick.1);
    // Two thousand list-changed notifications cause a handful of requests.
    tokio::time::sleep(Duration::from_millis(400)).await;
    let asked = server.heard("tools/list").len();
    assert!((2..40).contains(&asked), "{asked}");
    assert_eq!(server.heard("initialize").len(), 1);
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_call_at_once() {
    let server = Scripted::new(&["endless", "other"]);
    let room = Room::with([server.upstream("my")]).await;
    let started = Instant::now();
    let endless = room.call("my_endless").await;
    assert!(endless.text().contains("longer than 16 MiB"), "{}", endless.text());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert!(room.call("my_other").await.is_success(), "the connection goes on");
    assert_eq!(server.heard("initialize").len(), 1);
    room.upstreams.shutdown().await;
}

#[tokio::test]
async fn progress_becomes_status() {
    let server = Scripted::new(&["slow"]);
    let bus = EventBus::new(100);
    let mut events = bus.subscribe();
    let registry = Registry::new(RegistryBuilder::new().build());
    let executor = Executor::builder(registry).events(bus).build();
    let upstreams = Upstreams::new(executor.clone(), Arc::new(MemoryPins::default()));
    upstreams.set([server.upstream("my")]).await;
    assert!(upstreams.settled(PATIENCE).await);
    let turn = executor.turn(TurnOptions::default());
    assert!(turn.call(ToolCall::new("1", "my_slow", "{}")).await.is_success());
    upstreams.shutdown().await;

    let mut said = Vec::new();
    while let Some(event) = events.next().await {
        match event.payload() {
            Payload::Status(status) => {
                said.push((status.tip.clone().unwrap(), status.params["total"].clone()));
            }
            Payload::Completed(_) => break,
            _ => {}
        }
    }
    let step = |number: u32| (format!("step {number}"), json!(3.0));
    // The end of the call repeats the last one.
    said.dedup();
    assert_eq!(said, [step(1), step(2), step(3)]);
}

#[tokio::test]
async fn secrets_of_a_server_are_masked_before_control_characters_are_escaped_or_texts_are_cut() {
    let server = Scripted::new(&["leak"]);
    let bus = EventBus::new(100);
    let mut events = bus.subscribe();
    let registry = Registry::new(RegistryBuilder::new().build());
    let mask = Mask::new([HIDDEN.to_owned()]).unwrap();
    let executor = Executor::builder(registry).mask(mask).events(bus).build();
    let upstreams = Upstreams::new(executor.clone(), Arc::new(MemoryPins::default()));
    upstreams.set([server.upstream("my")]).await;
    assert!(upstreams.settled(PATIENCE).await);
    let turn = executor.turn(TurnOptions::default());
    for how in ["text", "fail", "error", "data", "link", "file", "progress"] {
        let arguments = json!({"how": how}).to_string();
        let result = turn.call(ToolCall::new("1", "my_leak", arguments)).await;
        assert_hidden(&format!("{how}: {result:?}"));
    }
    upstreams.shutdown().await;

    let mut tips = String::new();
    let mut ended = 0;
    while ended < 7
        && let Some(event) = events.next().await
    {
        match event.payload() {
            Payload::Status(status) => tips.extend(status.tip.clone()),
            Payload::Completed(_) => ended += 1,
            _ => {}
        }
    }
    assert_hidden(&tips);
}

#[tokio::test]
async fn a_server_sees_only_the_environment_it_is_given() {
    let server = Scripted::new(&["env"]);
    let stdio = server.server().env("TOKEN", "hunter22").pass_env("CARGO_MANIFEST_DIR");
    let room = Room::with([Upstream::stdio("my", stdio)]).await;
    let result = room.call("my_env").await;
    let text = result.text();
    let names: Vec<String> = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    for given in ["TOKEN", "CARGO_MANIFEST_DIR", "PATH", "HOME"] {
        assert!(names.iter().any(|name| name == given), "{given} of {names:?}");
    }
    assert!(!names.iter().any(|name| name == "CARGO" || name == "CARGO_PKG_NAME"), "{names:?}");
    room.upstreams.shutdown().await;
}
