//! Waiting nested calls that are made more than once.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::TurnOptions;
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::Outcome;
use toolcrib_tool::ToolCall;

use super::host::{Counts, Host, approve, call, done, suspended, waits};

#[tokio::test]
async fn two_equal_calls_that_share_an_answer_do_not_wait_for_each_others_decision() {
    let host = Host::new();
    let turn = host.turn();
    let starts = [turn.start(call("clean_kept")), turn.start(call("clean_kept"))];
    let both = futures_util::future::join_all(starts);
    let both = tokio::time::timeout(Duration::from_secs(5), both).await.expect("both are told");
    for answer in both {
        assert!(done(approve(&turn, &waits(answer)).await).text().ends_with("removed build"));
    }
    assert_eq!(Counts::of(&host.counts.removed), 2);
    // An answer that needed a person's approval is not cached for others.
    suspended(&turn, call("clean_kept")).await;
}

#[tokio::test]
async fn the_same_call_made_again_joins_the_one_at_work() {
    let host = Host::new();
    let turn = || host.turn_with(TurnOptions::default().joinable(true).client("mobile"));
    let waiting = suspended(&turn(), call("clean")).await;
    let again = turn();
    let joined = suspended(&again, ToolCall::new("call_2", "clean", "{}")).await;
    assert_eq!(joined.id(), waiting.id());
    assert_eq!(again.same_call(&joined).await.expect("in memory"), Some(waiting.clone()));
    let other = suspended(&turn(), ToolCall::new("call_3", "clean", json!({"x": 1}))).await;
    assert_ne!(other.id(), waiting.id());
    assert_eq!(Counts::of(&host.counts.begun), 2);

    let approvals = host.executor.approvals(TurnOptions::default());
    let decided = approvals.decide(waiting.id(), Decision::approve()).await.expect("it holds");
    decided.outcome(Duration::from_secs(5)).await.expect("it is done");
    let result = done(turn().start(call("clean")).await);
    assert_eq!(result.text(), "noted 1; removed build");
    assert_eq!(Counts::of(&host.counts.begun), 2, "it was not begun again");
    // Its answer was taken, so from now on it is a separate call.
    suspended(&turn(), call("clean")).await;
    assert_eq!(Counts::of(&host.counts.begun), 3);
}

#[tokio::test]
async fn what_became_of_a_call_that_waits_again_is_found_by_whoever_waits() {
    let host = Host::new();
    let turn = host.turn();
    let first = suspended(&turn, call("both")).await;
    let approvals = host.executor.approvals(TurnOptions::default());
    let decided = approvals.decide(first.id(), Decision::approve()).await.expect("it holds");
    let settled = decided.outcome(Duration::from_secs(5)).await.expect("it waits again");
    let Outcome::Waits(second) = settled.outcome() else { panic!("{settled:?}") };
    assert_eq!(done(approve(&turn, second).await).text(), "removed one, removed two");
}
