//! How a waiting nested call ends: cancellation, a change, shutdown, restart, revocation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::TurnOptions;
use toolcrib_core::approval::{CallerRights, CallerStatus, Decision};
use toolcrib_core::run::Run;
use toolcrib_core::suspension::{
    Caller, MemorySuspensions, RedeemError, Resolution, Suspension, SuspensionStore as _,
};
use toolcrib_tool::{Approval, ErrorKind, ToolCall, tool_fn};

use crate::harness::{define, entry};

use super::host::{Counts, Host, approve, call, done, outcome, resolve, suspended};

#[tokio::test]
async fn a_cancelled_call_ends_the_tools_that_led_to_it() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    let result = done(resolve(&turn, &waiting, Resolution::Cancel).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled), "{}", result.text());
    assert_eq!(Counts::of(&host.counts.over), 1);
    assert!(host.kept().await.is_empty());
}

#[tokio::test]
async fn a_turn_that_is_cancelled_leaves_nothing_that_waits() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    turn.cancel();
    let result = outcome(&host.turn(), &waiting).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    host.settles().await;
    assert_eq!(Counts::of(&host.counts.over), 1);
    assert_eq!(Counts::of(&host.counts.removed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_waits_no_longer_takes_its_question_back() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("gives_up")).await;
    let result = outcome(&turn, &waiting).await;
    assert_eq!(result.text(), "gave up");
    host.settles().await;
    let late = turn.resolve(waiting.id(), Decision::approve().into()).await;
    assert!(matches!(late, Err(RedeemError::AlreadyResolved(_))), "{late:?}");
}

#[tokio::test]
async fn whoever_resolves_and_goes_away_ends_the_call() {
    let host = Host::new();
    let turn = host.turn();
    let arguments = json!({"after": 3600});
    let waiting = suspended(&turn, ToolCall::new("call_1", "work", arguments)).await;
    let limit = Duration::from_millis(100);
    let gone = tokio::time::timeout(limit, approve(&turn, &waiting)).await;
    assert!(gone.is_err(), "it works for an hour");
    while turn.outcome(waiting.id()).await.expect("it is in memory").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let result = outcome(&turn, &waiting).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled));
    let statistics = host.executor.statistics().snapshot();
    assert!(statistics.iter().all(|one| one.in_flight == 0), "{statistics:?}");
}

#[tokio::test]
async fn a_tool_that_changes_while_its_call_waits_is_not_run() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    let mut next = toolcrib_core::RegistryBuilder::new();
    let body = tool_fn(|_: Value, _| async { "something else" });
    let _ = next.register(entry(define("remove").approval(Approval::Always), body));
    host.executor.registry().publish(next.build());
    let result = done(approve(&host.turn(), &waiting).await);
    assert!(result.text().contains("the tool changed"), "{}", result.text());
    assert_eq!(Counts::of(&host.counts.removed), 0);
}

#[tokio::test]
async fn shutting_down_ends_a_waiting_call_at_once_and_its_tool_can_say_so() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean")).await;
    let grace = Duration::from_secs(60);
    let report = tokio::time::timeout(Duration::from_secs(5), host.executor.shutdown(grace)).await;
    assert_eq!(report.expect("nobody waits for a decision").cancelled, 0);
    let result = outcome(&host.turn(), &waiting).await;
    assert!(result.text().contains("noted 1; "), "{}", result.text());
    assert!(result.text().contains("shutting down"), "{}", result.text());
    host.settles().await;
}

#[tokio::test]
async fn a_call_that_can_be_made_again_waits_over_a_restart() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean_again")).await;
    host.executor.shutdown(Duration::from_secs(60)).await;
    let host = host.restarted();
    assert_eq!(host.kept().await.len(), 1);
    let result = done(approve(&host.turn(), &waiting).await);
    assert_eq!(result.text(), "noted 1; removed build", "what it had noted is not noted again");
    assert_eq!(Counts::of(&host.counts.noted), 1);
    assert_eq!((Counts::of(&host.counts.begun), Counts::of(&host.counts.removed)), (2, 1));
}

#[tokio::test]
async fn a_record_of_a_call_within_others_is_written_and_read() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean_again")).await;
    let text = serde_json::to_string(&waiting).expect("JSON");
    assert_eq!(serde_json::from_str::<Suspension>(&text).expect("it was written"), waiting);
}

/// A host whose process was killed while a call waited.
async fn killed(tool: &str) -> (Host, Suspension) {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call(tool)).await;
    // Nothing of the first process continues; only its row is left.
    let store = Arc::new(MemorySuspensions::new());
    store.put(&waiting).await.expect("there is room");
    (Host::over(store, Arc::default(), |builder| builder), waiting)
}

#[tokio::test]
async fn after_a_restart_nobody_knows_what_a_tool_had_done_that_cannot_be_run_again() {
    let (host, waiting) = killed("clean").await;
    let approvals = host.executor.approvals(TurnOptions::default());
    assert!(approvals.list().await.expect("in memory").is_empty(), "nobody is asked for nothing");
    let result = done(approve(&host.turn(), &waiting).await);
    assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "clean"));
    assert_eq!(result.error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert!(result.text().contains("`remove` was not run"), "{}", result.text());
    assert_eq!((Counts::of(&host.counts.begun), Counts::of(&host.counts.removed)), (0, 0));
}

#[tokio::test]
async fn a_run_says_after_a_restart_what_is_not_known() {
    let host = Host::new();
    let run = Run::start(&host.turn(), vec![call("clean")]).await.expect("randomness");
    let (record, waiting) = (run.record().clone(), run.outstanding().next().cloned());
    let store = Arc::new(MemorySuspensions::new());
    store.put(&waiting.expect("one waits")).await.expect("there is room");
    let host = Host::over(store, Arc::default(), |builder| builder);
    let mut run = Run::from_record(record);
    run.expire(&host.turn()).await.expect("in memory");
    let results = run.results().expect("it is over");
    assert_eq!(results[0].error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert_eq!(results[0].tool(), "clean");
    assert!(host.kept().await.is_empty());
}

#[tokio::test]
async fn a_client_that_was_revoked_has_its_waiting_tools_ended() {
    struct Revoked;
    impl CallerRights for Revoked {
        fn caller_status(&self, _: &Caller) -> CallerStatus {
            CallerStatus::Revoked { reason: "its token is gone".to_owned() }
        }
    }
    let host = Host::new();
    let waiting =
        suspended(&host.turn_with(TurnOptions::default().client("mobile")), call("clean")).await;
    let rights = Arc::new(Revoked);
    host.executor.add_caller_rights(&rights);
    let result = done(approve(&host.turn(), &waiting).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
    assert!(result.text().contains("its token is gone"), "{}", result.text());
    assert_eq!((Counts::of(&host.counts.over), Counts::of(&host.counts.removed)), (1, 0));
}
