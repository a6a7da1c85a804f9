//! The executor below the layers of tower.
#![cfg(feature = "tower")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use toolcrib_core::{
    Executor, ExecutorConfig, ExecutorService, Registry, RegistryBuilder, Turn, TurnOptions,
};
use toolcrib_tool::{Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};
use tower::{ServiceBuilder, ServiceExt};

/// A turn whose `work` takes 50 ms, and the maximum number of concurrent calls.
fn turn() -> (Turn, Arc<AtomicUsize>) {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let body = tool_fn(move |_: serde_json::Value, _| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            "done"
        }
    });
    let definition = ToolDefinition::builder("work").description("Work.").build().unwrap();
    let mut builder = RegistryBuilder::new();
    let entry = ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"));
    let _ = builder.register(entry);
    let executor = Executor::new(Registry::new(builder.build()), ExecutorConfig::default());
    (executor.turn(TurnOptions::default()), seen)
}

#[tokio::test(start_paused = true)]
async fn a_layer_limits_how_many_calls_run_at_once() {
    let (turn, most) = turn();
    let service = ServiceBuilder::new().concurrency_limit(2).service(ExecutorService::new());
    let calls = (0..6).map(|n| {
        let call = ToolCall::new(format!("c{n}"), "work", "{}");
        service.clone().oneshot((turn.clone(), call))
    });
    let mut ids = Vec::new();
    for answer in futures_util::future::join_all(calls).await {
        ids.push(answer.unwrap().call_id().to_string());
    }
    assert_eq!(ids, ["c0", "c1", "c2", "c3", "c4", "c5"]);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_layer_s_timeout_is_the_layer_s_own_error() {
    let (turn, _) = turn();
    let service =
        ServiceBuilder::new().timeout(Duration::from_millis(10)).service(ExecutorService::new());
    let error = service.oneshot((turn, ToolCall::new("1", "work", "{}"))).await.unwrap_err();
    assert!(error.is::<tower::timeout::error::Elapsed>());
}

#[tokio::test]
async fn a_failed_call_is_an_answer_and_no_error() {
    let (turn, _) = turn();
    let answer = ExecutorService::new().oneshot((turn, ToolCall::new("1", "works", "{}"))).await;
    assert!(answer.unwrap().text().contains("Did you mean `work`?"));
}
