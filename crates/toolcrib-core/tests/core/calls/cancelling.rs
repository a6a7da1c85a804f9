//! Calls that are cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_tool::{CallContext, ErrorKind, ToolCall, ToolEntry, tool_fn};

use crate::harness::{call, define, entry, executor, turn};

/// Never ends by itself; counts its running calls.
fn endless(name: &str, running: &Arc<AtomicUsize>) -> ToolEntry {
    struct Running(Arc<AtomicUsize>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let running = Arc::clone(running);
    let body = tool_fn(move |_: Value, _| {
        running.fetch_add(1, Ordering::SeqCst);
        let guard = Running(Arc::clone(&running));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            "never"
        }
    });
    entry(define(name), body)
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_turn_ends_its_work_and_answers_every_id() {
    let running = Arc::new(AtomicUsize::new(0));
    let turn = turn([endless("endless", &running)]);
    let calls = (0..6).map(|n| ToolCall::new(n.to_string(), "endless", "{}")).collect();
    let batch = turn.call_batch(calls);
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(running.load(Ordering::SeqCst), 4, "as many as run at once");
        turn.cancel();
    };
    let (answers, ()) = tokio::join!(batch, cancel);
    let ids: Vec<_> = answers.iter().map(|answer| answer.call_id().as_str()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "5"]);
    assert!(answers.iter().all(|answer| answer.error_kind() == Some(ErrorKind::Cancelled)));
    assert!(answers[0].text().contains("withdrawn after 3.0s"), "{}", answers[0].text());
    assert_eq!(running.load(Ordering::SeqCst), 0, "nothing goes on");

    let late = call(&turn, "endless", json!({})).await;
    assert_eq!(late.error_kind(), Some(ErrorKind::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_counted_as_cancelled_and_its_work_is_ended() {
    let running = Arc::new(AtomicUsize::new(0));
    let executor = executor([endless("endless", &running)]);
    let turn = executor.turn(toolcrib_core::TurnOptions::default());
    let call = turn.call(ToolCall::new("1", "endless", "{}"));
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    assert_eq!(running.load(Ordering::SeqCst), 0);
    let counted = executor.statistics().snapshot();
    assert_eq!(counted[0].errors_by_kind.get("cancelled"), Some(&1));
}

#[tokio::test]
async fn a_blocking_loop_beside_a_short_limit_stops_neither_it_nor_its_siblings() {
    let spinning = tool_fn(|_: Value, cx: CallContext| async move {
        let mut rounds = 0_u64;
        while !cx.is_cancelled() {
            rounds = std::hint::black_box(rounds + 1);
        }
        rounds.to_string()
    });
    let limit = Duration::from_millis(50);
    let slow = tool_fn(|_: Value, _| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "late"
    });
    let turn = turn([
        entry(define("spinning").blocking(true).timeout(Duration::from_millis(400)), spinning),
        entry(define("slow").timeout(limit), slow),
        entry(define("quick"), tool_fn(|_: Value, _| async { "quick" })),
    ]);
    let names = ["spinning", "slow", "quick"];
    let calls = names.iter().map(|&name| ToolCall::new(name, name, "{}")).collect();
    let answers = turn.call_batch(calls).await;
    assert_eq!(answers[0].error_kind(), Some(ErrorKind::Timeout));
    assert_eq!(answers[1].error_kind(), Some(ErrorKind::Timeout));
    assert!(answers[2].is_success());
    assert!(answers[1].duration() < Duration::from_millis(350), "{:?}", answers[1].duration());
}
