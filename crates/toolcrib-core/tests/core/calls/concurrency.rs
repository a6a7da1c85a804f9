//! Concurrent calls: batches, barriers, slots, and the snapshot of a turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::{Registration, RegistryBuilder, TurnOptions};
use toolcrib_tool::{CallContext, ErrorKind, ToolCall, ToolEntry, tool_fn};

use crate::harness::{call, define, entry, executor, says, turn};

#[tokio::test(start_paused = true)]
async fn a_batch_answers_in_call_order_and_keeps_its_limit() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let sleep = entry(
        define("sleep").input_schema(json!({"properties": {"ms": {"type": "integer"}}})),
        tool_fn(move |args: Value, _| {
            let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap_or(0))).await;
                now.fetch_sub(1, Ordering::SeqCst);
                args["ms"].to_string()
            }
        }),
    );
    let executor = executor([sleep]);
    for (limit, expected) in [(1, 1), (3, 3), (0, 10)] {
        most.store(0, Ordering::SeqCst);
        let turn = executor.turn(TurnOptions::default().max_concurrency(limit));
        let calls: Vec<_> = (0..10)
            .map(|n| ToolCall::new(format!("call_{n}"), "sleep", json!({"ms": 100 - n * 10})))
            .collect();
        let answers = turn.call_batch(calls).await;
        let texts: Vec<_> = answers.iter().map(|answer| answer.text().into_owned()).collect();
        assert_eq!(texts, ["100", "90", "80", "70", "60", "50", "40", "30", "20", "10"]);
        assert!(
            answers.iter().enumerate().all(|(n, a)| a.call_id().as_str() == format!("call_{n}"))
        );
        assert_eq!(most.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_batch_runs_beside_a_barrier() {
    let running = Arc::new(AtomicUsize::new(0));
    let tool = |name: &str, parallel: bool| {
        let running = Arc::clone(&running);
        entry(
            define(name).parallel(parallel),
            tool_fn(move |_: Value, _| {
                let running = Arc::clone(&running);
                async move {
                    let beside = running.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    beside.to_string()
                }
            }),
        )
    };
    let turn = turn([tool("free", true), tool("alone", false)]);
    let names = ["free", "free", "alone", "free", "alone"];
    let calls = names.iter().enumerate().map(|(n, name)| ToolCall::new(n.to_string(), *name, "{}"));
    let answers = turn.call_batch(calls.collect()).await;
    assert_eq!(answers[2].text(), "0");
    assert_eq!(answers[4].text(), "0");
    assert_eq!(answers[1].text(), "1");
}

/// A tool that calls another one, or itself, the given number of times.
fn caller(name: &'static str, inner: &'static str) -> ToolEntry {
    let definition = define(name)
        .input_schema(json!({"properties": {"depth": {"type": "integer"}}}))
        .max_concurrent(1)
        .timeout(Duration::from_secs(5));
    entry(
        definition,
        tool_fn(move |args: Value, cx: CallContext| async move {
            let depth = args["depth"].as_u64().unwrap_or_default();
            if depth == 0 {
                return Ok(format!("{name} at the bottom"));
            }
            let call = ToolCall::new("inner", inner, json!({"depth": depth - 1}));
            cx.call(call).await.into_result().map(|output| output.text().into_owned())
        }),
    )
}

#[tokio::test]
async fn nested_calls_share_the_slot_of_their_parent_and_cannot_deadlock() {
    let turn = turn([caller("meta", "meta"), caller("ping", "pong"), caller("pong", "ping")]);
    let three_deep = call(&turn, "meta", json!({"depth": 3})).await;
    assert_eq!(three_deep.text(), "meta at the bottom", "one slot serves the whole line");
    let to_and_fro = call(&turn, "ping", json!({"depth": 3})).await;
    assert_eq!(to_and_fro.text(), "pong at the bottom");
    let endless = call(&turn, "meta", json!({"depth": 100})).await;
    assert_eq!(endless.error_kind(), Some(ErrorKind::Denied), "{}", endless.text());
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_tool_with_one_slot_run_one_after_another_and_waiting_is_no_timeout() {
    let running = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&running);
    let single = entry(
        define("single").max_concurrent(1).timeout(Duration::from_secs(2)),
        tool_fn(move |_: Value, _| {
            let now = Arc::clone(&now);
            async move {
                let beside = now.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                beside.to_string()
            }
        }),
    );
    let executor = executor([single]);
    let turn = executor.turn(TurnOptions::default().max_concurrency(0));
    let calls = (0..5).map(|n| ToolCall::new(n.to_string(), "single", "{}")).collect();
    let answers = turn.call_batch(calls).await;
    assert!(answers.iter().all(|answer| answer.text() == "0"), "{answers:?}");
}

#[tokio::test]
async fn a_turn_keeps_its_snapshot_while_another_is_published() {
    let executor = executor([says("old", "old")]);
    let pinned = executor.turn(TurnOptions::default());
    let mut next = RegistryBuilder::new();
    assert_eq!(next.register(says("new", "new")), Registration::Registered);
    executor.registry().publish(next.build());

    assert_eq!(pinned.definitions()[0].name(), "old");
    assert_eq!(call(&pinned, "old", json!({})).await.text(), "old");
    let fresh = executor.turn(TurnOptions::default());
    assert_eq!(fresh.definitions()[0].name(), "new");
    assert!(fresh.generation() > pinned.generation());
    assert_eq!(call(&fresh, "old", json!({})).await.error_kind(), Some(ErrorKind::NotFound));
}
