//! Shared instances: when the last user goes, and not before.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use toolcrib_tool::{
    CachePolicy, ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, ToolError, tool_fn,
};

use super::{counted, definition, entry, entry_of, quiet, settled, snapshot, until};
use crate::lifecycle::LiveBody;
use crate::{Executor, ExecutorConfig, Registry, RegistryBuilder, TurnOptions};

const NEVER: Duration = Duration::from_secs(3600);

fn executor(registry: Registry) -> Executor {
    Executor::new(registry, ExecutorConfig::default())
}

#[tokio::test]
async fn the_end_of_the_executor_closes_every_body_once() {
    let (tool, counts) = counted(quiet);
    let executor = executor(Registry::new(snapshot([("a", &tool), ("b", &tool)])));
    let turn = executor.turn(TurnOptions::default());
    drop(executor);
    settled().await;
    assert_eq!(counts.closed(), 0, "a turn can still call it");
    assert!(turn.call(ToolCall::new("1", "a", "{}")).await.is_success());
    drop(turn);
    settled().await;
    assert_eq!(counts.closed(), 1);
    drop(tool);
    assert_eq!(counts.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_call_that_fails_panics_or_times_out_closes_nothing() {
    let works: [super::Work; 3] = [
        |_| Box::pin(async { Err(ToolError::execution("no")) }),
        |_| Box::pin(async { panic!("no") }),
        |_| Box::pin(std::future::pending()),
    ];
    for (work, kind) in
        works.into_iter().zip([ErrorKind::Execution, ErrorKind::Panic, ErrorKind::Timeout])
    {
        let (tool, counts) = counted(work);
        let config =
            ExecutorConfig { tool_timeout: Some(Duration::from_millis(20)), ..Default::default() };
        let executor = Executor::new(Registry::new(snapshot([("a", &tool)])), config);
        let turn = executor.turn(TurnOptions::default());
        let result = turn.call(ToolCall::new("1", "a", "{}")).await;
        assert_eq!(result.error_kind(), Some(kind));
        settled().await;
        assert_eq!(counts.closed(), 0, "others may call it");
        drop((turn, executor));
        settled().await;
        assert_eq!(counts.closed(), 1, "after {kind}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_keeps_its_body_until_it_is_gone() {
    let (tool, counts) = counted(|_| Box::pin(std::future::pending()));
    let executor = executor(Registry::new(snapshot([("a", &tool)])));
    let turn = executor.turn(TurnOptions::default());
    let running = tokio::spawn(async move { turn.call(ToolCall::new("1", "a", "{}")).await });
    tokio::task::yield_now().await;
    drop(executor);
    settled().await;
    assert_eq!(counts.closed(), 0);
    running.abort();
    let _ = running.await;
    settled().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn a_reload_closes_what_it_removes_and_only_that() {
    let ((kept, kept_counts), (gone, gone_counts)) = (counted(quiet), counted(quiet));
    let registry = Registry::with_grace(snapshot([("kept", &kept), ("gone", &gone)]), NEVER);
    registry.publish(snapshot([("kept", &kept)]));
    settled().await;
    assert_eq!((kept_counts.closed(), gone_counts.closed()), (0, 1));
    drop(registry);
    settled().await;
    assert_eq!((kept_counts.closed(), gone_counts.closed()), (1, 1));
}

#[tokio::test]
async fn a_turn_keeps_a_removed_body_open_for_the_grace_and_no_longer() {
    let (tool, counts) = counted(quiet);
    let grace = Duration::from_millis(200);
    let executor = executor(Registry::with_grace(snapshot([("a", &tool)]), grace));
    let turn = executor.turn(TurnOptions::default());
    executor.registry().publish(snapshot([]));
    assert!(turn.call(ToolCall::new("1", "a", "{}")).await.is_success());
    assert_eq!(counts.closed(), 0);
    until(async || counts.closed() == 1).await;
    let slot = turn.state.slot("a").unwrap();
    assert!(slot.live().unwrap().is_closed());
    drop((turn, executor));
    settled().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn a_closed_body_gives_no_answer_of_its_past_either() {
    let definition = ToolDefinition::builder("a")
        .description("A tool whose answers are kept.")
        .read_only(true)
        .idempotent(true)
        .cache(CachePolicy::new())
        .build()
        .unwrap();
    let body = Arc::new(tool_fn(|_: serde_json::Value, _| async { "done" }));
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(ToolEntry::new(definition, body, Source::new(Layer::Host, "tests")));
    let executor = executor(Registry::with_grace(builder.build(), Duration::ZERO));
    let turn = executor.turn(TurnOptions::default());
    let call = || turn.call(ToolCall::new("1", "a", "{}"));
    assert!(!call().await.cached());
    assert!(call().await.cached());
    executor.registry().publish(snapshot([]));
    let slot = turn.state.slot("a").unwrap();
    until(async || slot.live().unwrap().is_closed()).await;
    assert_eq!(call().await.error_kind(), Some(ErrorKind::Unavailable));
}

#[tokio::test]
async fn a_body_that_comes_back_within_its_grace_is_spared() {
    let (tool, counts) = counted(quiet);
    let registry = Registry::with_grace(snapshot([("a", &tool)]), Duration::from_millis(100));
    let old = registry.snapshot();
    registry.publish(snapshot([]));
    registry.publish(snapshot([("renamed", &tool)]));
    tokio::time::sleep(Duration::from_millis(300)).await;
    settled().await;
    assert_eq!(counts.closed(), 0);
    drop((registry, old));
    settled().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn losers_are_closed_like_owners() {
    let ((winner, _), (loser, counts)) = (counted(quiet), counted(quiet));
    let mut builder = RegistryBuilder::new();
    let _ = builder.register(entry("a", &winner));
    let _ = builder.register(entry_of("a", &loser, Source::new(Layer::Manifest, "a.yaml")));
    let registry = Registry::new(builder.build());
    settled().await;
    assert_eq!(counts.closed(), 0, "it may win another day");
    drop(registry);
    settled().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn a_second_registry_keeps_the_instance_open() {
    let (tool, counts) = counted(quiet);
    let main = Registry::with_grace(snapshot([("a", &tool)]), Duration::ZERO);
    let scratch = Registry::with_grace(snapshot([("a", &tool)]), Duration::ZERO);
    scratch.close().await;
    drop(scratch);
    settled().await;
    assert_eq!(counts.closed(), 0);
    main.close().await;
    assert_eq!(counts.closed(), 1);
}

#[tokio::test]
async fn an_instance_is_never_closed_twice_in_two_lives() {
    let (tool, counts) = counted(quiet);
    for _ in 0..3 {
        let executor = executor(Registry::new(snapshot([("a", &tool)])));
        let result =
            executor.turn(TurnOptions::default()).call(ToolCall::new("1", "a", "{}")).await;
        assert!(result.is_success(), "what a closed instance answers is its own affair");
        drop(executor);
        settled().await;
        assert_eq!(counts.closed(), 1);
    }
}

#[test]
fn the_last_user_may_be_a_thread_without_a_runtime() {
    let (tool, counts) = counted(quiet);
    let body = LiveBody::of(&tool, definition("a").tool_name());
    drop(body);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(settled());
    assert_eq!(counts.closed(), 1);
}

#[test]
fn definitions_of_one_instance_share_its_body() {
    let (tool, _) = counted(quiet);
    let (a, b): (ToolDefinition, ToolDefinition) = (definition("a"), definition("b"));
    let (first, second) = (LiveBody::of(&tool, a.tool_name()), LiveBody::of(&tool, b.tool_name()));
    assert!(Arc::ptr_eq(&first, &second));
    let (other, _) = counted(quiet);
    assert!(!Arc::ptr_eq(&first, &LiveBody::of(&other, a.tool_name())));
}
