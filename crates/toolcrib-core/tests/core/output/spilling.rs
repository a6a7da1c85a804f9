//! Truncated outputs, which are stored and read page by page.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::spill::{MemorySpill, SpillLimits, read_output_entry};
use toolcrib_core::{
    Executor, ExecutorBuilder, ExecutorConfig, ToolFilter, Toolset, TurnOptions, after,
};
use toolcrib_tool::{
    CachePolicy, ContextValues, Dedupe, ErrorKind, ToolCall, ToolError, ToolOutput, tool_fn,
};

use crate::harness::{call, define, entry, registry};

/// Repeats its argument this many times.
fn executor() -> Executor {
    builder().build()
}

fn builder() -> ExecutorBuilder {
    let long = tool_fn(|args: Value, _| async move {
        let times = usize::try_from(args["times"].as_u64().unwrap_or(0)).unwrap_or(0);
        "0123456789".repeat(times)
    });
    let data = tool_fn(|_: Value, _| async { ToolOutput::from(json!({"rows": "r".repeat(400)})) });
    let store = Arc::new(MemorySpill::new(SpillLimits::default()));
    let mut config = ExecutorConfig::default();
    config.output_chars = 100;
    config.data_bytes = 300;
    Executor::builder(registry([
        read_output_entry(store.clone()),
        entry(define("long").input_schema(json!({})), long),
        entry(define("data"), data),
    ]))
    .config(config)
    .spill(store)
}

fn ada() -> TurnOptions {
    TurnOptions::default().values(ContextValues::new().with("user", "ada")).session("s")
}

/// The handle in a marker or a hint.
fn handle(text: &str) -> String {
    let (_, rest) = text.split_once("\"handle\":\"").expect("a handle is named");
    rest.split_once('"').expect("it ends").0.to_owned()
}

#[tokio::test]
async fn a_cut_output_is_read_to_its_end_by_its_owner_only() {
    let executor = executor();
    let turn = executor.turn(ada());
    let cut = call(&turn, "long", json!({"times": 30})).await;
    assert!(cut.truncated());
    let handle = handle(&cut.text());

    let mut whole = String::new();
    let mut offset = 0;
    loop {
        let asked = json!({"handle": handle, "offset": offset, "limit": 70});
        let page = call(&turn, "read_output", asked).await;
        assert!(page.is_success(), "{}", page.text());
        whole.push_str(&page.text());
        match page.data().and_then(|data| data["next_offset"].as_u64()) {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert_eq!(whole, "0123456789".repeat(30));

    let bob =
        executor.turn(TurnOptions::default().values(ContextValues::new().with("user", "bob")));
    let stolen = call(&bob, "read_output", json!({"handle": handle})).await;
    assert!(!stolen.is_success());
    let made_up = "0".repeat(32);
    let never = call(&bob, "read_output", json!({"handle": made_up})).await;
    let never = never.text().replace(&made_up, &handle);
    assert_eq!(stolen.text(), never, "whether it exists is not told");
}

#[tokio::test]
async fn data_over_its_limit_fails_the_call_and_can_be_read() {
    let executor = executor();
    let turn = executor.turn(ada());
    let failed = call(&turn, "data", json!({})).await;
    assert_eq!(failed.error_kind(), Some(ErrorKind::InvalidOutput));
    assert_eq!(failed.data(), None, "it is never cut");
    let page = call(&turn, "read_output", json!({"handle": handle(&failed.text())})).await;
    assert!(page.text().starts_with("{\"rows\":\"rrr"), "{}", page.text());
}

#[tokio::test]
async fn a_batch_shares_its_budget_and_small_answers_stay_whole() {
    let turn = executor().turn(ada());
    let asks = [2, 30, 30];
    let calls = asks.iter().enumerate();
    let calls = calls.map(|(id, times)| {
        ToolCall::new(id.to_string(), "long", json!({"times": times}).to_string())
    });
    let answers = turn.call_batch(calls.collect()).await;
    assert_eq!(answers[0].text(), "0123456789".repeat(2));
    // The 100 characters of one call, minus the 20 of the small answer, in equal parts.
    for answer in &answers[1..] {
        let text = answer.text();
        assert!(answer.truncated() && text.contains("260 of 300 characters left out"), "{text}");
    }
}

#[tokio::test]
async fn middleware_that_changes_nothing_does_not_have_an_answer_cut_twice() {
    let executor = builder().middleware(after(|_, _| {})).build();
    let turn = executor.turn(ada());
    let call = |id: &str| ToolCall::new(id, "long", json!({"times": 100}));
    for answer in turn.call_batch(vec![call("1"), call("2")]).await {
        let text = answer.text();
        assert!(text.contains("950 of 1000 characters left out"), "{text}");
    }
}

#[tokio::test]
async fn nothing_is_named_that_the_turn_cannot_read() {
    let narrow = Toolset::new().include(ToolFilter::new().name("long"));
    let turn = executor().turn(ada().toolset(narrow));
    let cut = call(&turn, "long", json!({"times": 30})).await;
    assert!(cut.truncated());
    assert!(!cut.text().contains("read_output"), "{}", cut.text());
}

/// Tools whose answers are cached, and the number of texts in the spill store.
fn keeping(dedupe: Dedupe) -> (Executor, Arc<MemorySpill>) {
    let long = |chars: usize| {
        tool_fn(move |_: Value, _| async move {
            tokio::task::yield_now().await;
            "x".repeat(chars)
        })
    };
    let failing = tool_fn(|_: Value, _| async {
        tokio::task::yield_now().await;
        let partial = ToolOutput::from(json!({"rows": "r".repeat(400)}));
        Err::<ToolOutput, _>(ToolError::execution("m".repeat(2_000)).with_partial(partial))
    });
    let store = Arc::new(MemorySpill::new(SpillLimits::default()));
    let mut config = ExecutorConfig::default();
    (config.output_chars, config.data_bytes) = (100, 300);
    let kept = |name| define(name).input_schema(json!({})).read_only(true).idempotent(true);
    let kept = |name| kept(name).cache(CachePolicy::new()).dedupe(dedupe);
    let executor = Executor::builder(registry([
        read_output_entry(store.clone()),
        entry(kept("long"), long(1_000)),
        entry(kept("fitting"), long(90)),
        entry(kept("failing"), failing),
    ]))
    .config(config)
    .spill(store.clone())
    .build();
    (executor, store)
}

#[tokio::test]
async fn an_answer_that_several_calls_get_at_once_is_spilled_once() {
    for dedupe in [Dedupe::None, Dedupe::Batch, Dedupe::Session] {
        let (executor, store) = keeping(dedupe);
        let turn = executor.turn(ada());
        let calls = ["1", "2", "3", "4"].map(|id| call(&turn, "long", json!({"n": id.len()})));
        let answers = futures_util::future::join_all(calls).await;
        assert_eq!(store.size().0, 1, "{dedupe:?}");
        let first = handle(&answers[0].text());
        assert!(answers.iter().all(|answer| handle(&answer.text()) == first));
        call(&turn, "long", json!({"n": 1})).await;
        assert_eq!(store.size().0, 1, "one that is kept: {dedupe:?}");
    }
}

#[tokio::test]
async fn a_batch_of_one_answer_spills_it_once_however_often_it_is_made() {
    for tool in ["long", "fitting"] {
        for dedupe in [Dedupe::None, Dedupe::Batch, Dedupe::Session] {
            let (executor, store) = keeping(dedupe);
            let turn = executor.turn(ada());
            let calls = || ["1", "2", "3"].map(|id| ToolCall::new(id, tool, "{}")).to_vec();
            for _ in 0..3 {
                for answer in turn.call_batch(calls()).await {
                    assert!(answer.truncated(), "{tool}: {}", answer.text());
                }
            }
            assert_eq!(store.size().0, 1, "{tool}, {dedupe:?}");
        }
    }
}

#[tokio::test]
async fn a_failure_that_several_calls_get_at_once_is_spilled_once() {
    let (executor, store) = keeping(Dedupe::Batch);
    let turn = executor.turn(ada());
    let calls = ["1", "2", "3"].map(|id| ToolCall::new(id, "failing", "{}")).to_vec();
    let answers = turn.call_batch(calls).await;
    assert!(answers.iter().all(|answer| !answer.is_success() && answer.truncated()));
    assert_eq!(store.size().0, 2, "its text and its data");
}

#[tokio::test]
async fn each_session_is_told_of_a_spill_of_its_own_that_it_can_read() {
    let (executor, store) = keeping(Dedupe::None);
    for round in 1..=2 {
        for session in ["a", "b"] {
            let turn = executor.turn(ada().session(session));
            let cut = call(&turn, "long", json!({})).await;
            assert_eq!(cut.cached(), (round, session) != (1, "a"));
            let page = call(&turn, "read_output", json!({"handle": handle(&cut.text())})).await;
            assert!(page.is_success(), "{}", page.text());
        }
        assert_eq!(store.size().0, 2);
    }
}
