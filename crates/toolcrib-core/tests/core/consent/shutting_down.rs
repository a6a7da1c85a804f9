//! Waiting calls of a host that shuts down: they wait for the next one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::approval::{DecideError, Decision};
use toolcrib_core::run::{Run, RunError};
use toolcrib_core::suspension::{
    MemorySuspensions, RedeemError, Resolution, Suspension, SuspensionStore as _,
};
use toolcrib_core::{Answer, Executor, Turn, TurnOptions};
use toolcrib_tool::{Approval, CallContext, ErrorKind, Identity, ToolCall, ToolResult, tool_fn};

use crate::harness::{define, entry, registry};

/// A server over this store. Its tool works for five seconds.
fn server(store: &Arc<MemorySuspensions>) -> Executor {
    let slow = tool_fn(|_: Value, _: CallContext| async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        "deployed"
    });
    let deploy = entry(define("deploy").approval(Approval::Always), slow);
    Executor::builder(registry([deploy])).suspensions(store.clone()).build()
}

fn of_ada(executor: &Executor) -> Turn {
    executor.turn(TurnOptions::default().identity(Identity::user("ada")).may_approve(true))
}

fn deploy(id: &str) -> ToolCall {
    ToolCall::new(id, "deploy", "{}")
}

async fn waiting(turn: &Turn) -> Suspension {
    match turn.start(deploy("call_1")).await {
        Answer::Suspended(waiting) => *waiting,
        Answer::Done(result) => panic!("it waits: {}", result.text()),
    }
}

fn done(answer: Answer) -> ToolResult {
    match answer {
        Answer::Done(result) => result,
        Answer::Suspended(waiting) => panic!("it still waits: {waiting:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_during_a_shutdown_is_refused_and_holds_in_the_next_server() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = server(&store);
    let ada = of_ada(&executor);
    let call = waiting(&ada).await;
    let mut run = Run::start(&ada, vec![deploy("call_2")]).await.expect("there is randomness");
    let in_run = run.outstanding().next().expect("it waits").id().clone();
    executor.shutdown(Duration::ZERO).await;

    let approved = || Resolution::from(Decision::approve());
    let refused = ada.resolve(call.id(), approved()).await;
    assert!(matches!(refused, Err(RedeemError::ShuttingDown)), "{refused:?}");
    let operator = executor.approvals(TurnOptions::default());
    let refused = operator.decide(call.id(), Decision::approve()).await;
    let is_refused = matches!(refused, Err(DecideError::Redeem(RedeemError::ShuttingDown)));
    assert!(is_refused, "{refused:?}");
    let refused = run.resolve(&ada, &in_run, approved()).await;
    let is_refused = matches!(refused, Err(RunError::Redeem(RedeemError::ShuttingDown)));
    assert!(is_refused, "{refused:?}");
    assert_eq!(store.all().await.expect("it is in memory").len(), 2);

    let next = of_ada(&server(&store));
    let result = done(next.resolve(call.id(), approved()).await.expect("it still waits"));
    assert_eq!(&*result.text(), "deployed");
    run.resolve(&next, &in_run, approved()).await.expect("it still waits");
    assert_eq!(&*run.answered().next().expect("an answer").text(), "deployed");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_can_be_ended_during_a_shutdown() {
    let executor = server(&Arc::default());
    let ada = of_ada(&executor);
    let (denied, cancelled) = (waiting(&ada).await, waiting(&ada).await);
    executor.shutdown(Duration::ZERO).await;

    let denial = Decision::deny("not today").into();
    let result = done(ada.resolve(denied.id(), denial).await.expect("it waits"));
    assert_eq!(
        (result.error_kind(), result.text().contains("not today")),
        (Some(ErrorKind::Denied), true)
    );
    let result = done(ada.resolve(cancelled.id(), Resolution::Cancel).await.expect("it waits"));
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_call_that_was_approved_before() {
    for grace in [10, 1] {
        let executor = server(&Arc::default());
        let ada = of_ada(&executor);
        let call = waiting(&ada).await;
        let approved = tokio::spawn(async move {
            ada.resolve(call.id(), Decision::approve().into()).await.expect("it waits")
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(executor.calls_at_work(), 1);
        let report = executor.shutdown(Duration::from_secs(grace)).await;
        let result = done(approved.await.expect("it does not panic"));
        let kind = result.error_kind();
        match grace {
            10 => assert_eq!((report.cancelled, kind), (0, None)),
            _ => assert_eq!((report.cancelled, kind), (1, Some(ErrorKind::Cancelled))),
        }
    }
}
