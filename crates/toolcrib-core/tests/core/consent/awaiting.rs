//! The caller of a waiting call gets its result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::approval::Decision;
use toolcrib_core::clock::{Clock, Timestamp};
use toolcrib_core::suspension::{MemorySuspensions, Suspension, SuspensionStore as _};
use toolcrib_core::{Answer, Executor, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, CallContext, ErrorKind, Identity, NoArguments, ToolCall, ToolEntry, ToolResult,
    tool_fn,
};

use crate::harness::{define, entry, registry};

/// The clock of the runtime, which is paused in these tests.
struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(0).after(self.0.elapsed())
    }
}

/// A server over this store.
fn server(store: &Arc<MemorySuspensions>, started: tokio::time::Instant) -> Executor {
    let slow = tool_fn(|_: Value, cx: CallContext| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        format!("deployed for {}", cx.user().unwrap_or_default())
    });
    let twice = |_: NoArguments, cx: CallContext| async move {
        let first = cx.call(ToolCall::new("n-1", "deploy", "{}")).await.text().into_owned();
        let second = cx.call(ToolCall::new("n-2", "deploy", "{}")).await.text().into_owned();
        format!("{first}, {second}")
    };
    let entries = [
        entry(define("deploy").approval(Approval::Always), slow),
        ToolEntry::from_fn("deploy_twice", "Deploy twice.", twice).expect("it is right"),
    ];
    Executor::builder(registry(entries))
        .suspensions(store.clone())
        .clock(Arc::new(RuntimeClock(started)))
        .build()
}

fn one_server() -> Executor {
    server(&Arc::new(MemorySuspensions::new()), tokio::time::Instant::now())
}

fn of(executor: &Executor, user: &str) -> Turn {
    executor.turn(TurnOptions::default().identity(Identity::user(user)))
}

async fn waiting(turn: &Turn, tool: &str) -> Suspension {
    match turn.start(ToolCall::new("call_1", tool, "{}")).await {
        Answer::Suspended(waiting) => *waiting,
        Answer::Done(result) => panic!("it waits: {}", result.text()),
    }
}

async fn decide(executor: &Executor, call: &Suspension, decision: Decision) {
    let operator = executor.approvals(TurnOptions::default());
    operator.decide(call.id(), decision).await.expect("it holds");
}

async fn result(turn: &Turn, call: &Suspension) -> ToolResult {
    turn.result_of(call).await.expect("the store works")
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_gets_the_result_once_somebody_else_has_approved() {
    let executor = one_server();
    let ada = of(&executor, "ada");
    let call = waiting(&ada, "deploy").await;
    let approves = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        decide(&executor, &call, Decision::approve()).await;
    };
    let (result, ()) = tokio::join!(result(&ada, &call), approves);
    assert_eq!((result.call_id().as_str(), &*result.text()), ("call_1", "deployed for ada"));
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_for_a_caller_who_comes_late_or_asks_again() {
    let executor = one_server();
    let ada = of(&executor, "ada");
    let call = waiting(&ada, "deploy").await;
    let gave_up = tokio::time::timeout(Duration::from_secs(3), ada.result_of(&call)).await;
    assert!(gave_up.is_err());
    decide(&executor, &call, Decision::approve()).await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(result(&of(&executor, "ada"), &call).await.text(), "deployed for ada");
}

#[tokio::test(start_paused = true)]
async fn a_result_reaches_the_caller_in_another_server_and_after_a_restart() {
    let (store, started) = (Arc::new(MemorySuspensions::new()), tokio::time::Instant::now());
    let here = server(&store, started);
    let call = waiting(&of(&here, "ada"), "deploy").await;
    // Only data outlives a process.
    let kept = serde_json::to_string(&call).expect("it is plain data");
    drop(here);
    let (here, there) = (server(&store, started), server(&store, started));
    let call: Suspension = serde_json::from_str(&kept).expect("it reads what it wrote");
    let ada = of(&here, "ada");
    let approves = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        decide(&there, &call, Decision::approve()).await;
    };
    let (result, ()) = tokio::join!(result(&ada, &call), approves);
    assert_eq!(result.text(), "deployed for ada");
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_a_failed_result() {
    let executor = one_server();
    let ada = of(&executor, "ada");
    let call = waiting(&ada, "deploy").await;
    decide(&executor, &call, Decision::deny("not on a Friday")).await;
    let denied = result(&ada, &call).await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
    assert!(denied.text().contains("not on a Friday"), "{}", denied.text());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_decides_on_is_a_failed_result_when_its_time_is_over() {
    let executor = one_server();
    let ada = of(&executor, "ada");
    for tool in ["deploy", "deploy_twice"] {
        let call = waiting(&ada, tool).await;
        let begun = tokio::time::Instant::now();
        let expired = result(&ada, &call).await;
        assert!(
            expired.text().contains("nobody approved the call within 600 s"),
            "{}",
            expired.text()
        );
        assert!(begun.elapsed() < Duration::from_secs(1_205), "{:?}", begun.elapsed());
        assert_eq!(expired.tool(), tool);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_to_wait_again_is_waited_for_again() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = server(&store, tokio::time::Instant::now());
    let ada = of(&executor, "ada");
    let call = waiting(&ada, "deploy_twice").await;
    let approves = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let waiting = store.all().await.expect("it is in memory");
            decide(&executor, &waiting[0], Decision::approve()).await;
        }
    };
    let (result, ()) = tokio::join!(result(&ada, &call), approves);
    assert_eq!(result.text(), "deployed for ada, deployed for ada");
    let left = store.list_settled(ada.identity()).await.expect("it is in memory");
    assert!(left.is_empty(), "nothing is kept of a call that is over: {left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_taken_once_and_whoever_is_late_learns_who_decided() {
    let executor = one_server();
    let ada = of(&executor, "ada");
    let call = waiting(&ada, "deploy").await;
    decide(&executor, &call, Decision::approve()).await;
    let (one, other) = tokio::join!(result(&ada, &call), result(&ada, &call));
    let mut kinds = [one.error_kind(), other.error_kind()];
    kinds.sort_by_key(Option::is_some);
    assert_eq!(kinds, [None, Some(ErrorKind::OutcomeUnknown)]);
    let late = result(&ada, &call).await;
    assert!(late.text().contains("the call was approved by"), "{}", late.text());
}

#[tokio::test(start_paused = true)]
async fn nobody_but_the_caller_gets_a_result_or_learns_of_the_call() {
    let executor = one_server();
    let (ada, bob) = (of(&executor, "ada"), of(&executor, "bob"));
    let call = waiting(&ada, "deploy").await;
    let before = result(&bob, &call).await;
    decide(&executor, &call, Decision::approve()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let after = result(&bob, &call).await;
    assert_eq!(before.text(), after.text());
    assert_eq!(after.error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert_eq!(result(&ada, &call).await.text(), "deployed for ada");
}
