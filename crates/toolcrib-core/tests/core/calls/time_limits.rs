//! The time limit of a call: which calls it ends, and what a tool can still return.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_core::{ExecutorConfig, TurnOptions};
use toolcrib_tool::{
    Arguments, BoxFuture, CallContext, ErrorKind, Tool, ToolCall, ToolError, ToolOutcome,
    ToolOutput, tool_fn,
};

use crate::harness::{call, configured, define, entry, turn};

#[tokio::test(start_paused = true)]
async fn a_slow_tool_is_ended_at_its_limit_and_its_sibling_is_not() {
    let slow = |name: &str, seconds| {
        entry(
            define(name).timeout(Duration::from_secs(10)),
            tool_fn(move |_: Value, _| async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                "done"
            }),
        )
    };
    let turn = turn([slow("slow", 3600), slow("quick", 9)]);
    let calls = vec![ToolCall::new("a", "slow", "{}"), ToolCall::new("b", "quick", "{}")];
    let answers = turn.call_batch(calls).await;
    assert_eq!(answers[0].error_kind(), Some(ErrorKind::Timeout));
    assert!(answers[0].text().contains("limit of 10s"), "{}", answers[0].text());
    assert!(answers[0].text().contains("unknown"), "a writing tool's effect is unknown");
    assert_eq!(answers[1].text(), "done");
}

#[tokio::test(start_paused = true)]
async fn the_ceiling_holds_over_a_tools_own_limit() {
    let mut config = ExecutorConfig::default();
    config.max_timeout = Some(Duration::from_secs(2));
    let sleeper = entry(
        define("sleep").timeout(Duration::from_secs(3600)),
        tool_fn(|_: Value, _| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            "done"
        }),
    );
    let turn = configured([sleeper], config).turn(TurnOptions::default());
    let result = call(&turn, "sleep", json!({})).await;
    assert!(result.text().contains("limit of 2s"), "{}", result.text());
}

/// Returns a partial result when its time is up.
struct WindsDown;

impl Tool for WindsDown {
    fn call<'a>(
        &'a self,
        _: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async {
            cx.cancelled().await;
            Err(ToolError::new(ErrorKind::Timeout, "ended").with_partial("half of it"))
        })
    }

    fn wind_down(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_hand_over_what_it_has_at_its_limit() {
    let turn = turn([entry(define("long").timeout(Duration::from_secs(1)), WindsDown)]);
    let result = call(&turn, "long", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().ends_with("half of it"), "{}", result.text());
}

/// A partial result is useful at any stage.
struct Partial;

impl Tool for Partial {
    fn call<'a>(
        &'a self,
        _: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async {
            cx.cancelled().await;
            Ok(ToolOutput::from("half of it").with_timed_out().into())
        })
    }

    fn wind_down(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_of_use_however_far_it_came_is_a_success_counts_as_a_timeout_and_pauses_nothing() {
    let executor = configured(
        [entry(define("log").timeout(Duration::from_secs(1)), Partial)],
        ExecutorConfig::default(),
    );
    let turn = executor.turn(TurnOptions::default());
    for _ in 0..5 {
        let result = call(&turn, "log", json!({})).await;
        assert!(result.is_success(), "{}", result.text());
        assert_eq!(result.text(), "half of it");
    }
    let counts = executor.statistics().snapshot().remove(0);
    assert_eq!((counts.successes, counts.timeouts, counts.failures), (5, 5, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_tool_learns_that_its_time_is_up() {
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    let spin = entry(
        define("spin").blocking(true).timeout(Duration::from_millis(50)),
        tool_fn(move |_: Value, cx: CallContext| {
            let seen = Arc::clone(&seen);
            async move {
                let start = Instant::now();
                while !cx.is_cancelled() && start.elapsed() < Duration::from_secs(20) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                seen.store(cx.is_cancelled(), Ordering::SeqCst);
                "done"
            }
        }),
    );
    let result = call(&turn([spin]), "spin", json!({})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    for _ in 0..1000 {
        if ended.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the blocking tool never learnt that it was cancelled");
}

#[tokio::test]
async fn dropping_a_call_drops_its_work() {
    struct SetWhenDropped(Arc<AtomicBool>);
    impl Drop for SetWhenDropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let turn = turn([entry(
        define("wait"),
        tool_fn(move |_: Value, _| {
            let guard = SetWhenDropped(Arc::clone(&flag));
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                "never"
            }
        }),
    )]);
    let waiting = tokio::time::timeout(Duration::from_millis(20), call(&turn, "wait", json!({})));
    assert!(waiting.await.is_err());
    assert!(dropped.load(Ordering::SeqCst));
}
