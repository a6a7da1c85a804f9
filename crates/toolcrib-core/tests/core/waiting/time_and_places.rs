//! The time, the permit and the slot of a tool while its nested call waits.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::{ExecutorConfig, TurnOptions};
use toolcrib_tool::{ContextValues, ErrorKind, ToolCall};

use super::host::{Counts, Host, approve, call, done, outcome, suspended, waits};

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_tool_stands_still_while_its_call_waits() {
    let host = Host::new();
    let turn = host.turn();
    let works = |after: u64| {
        let arguments = json!({"before": 6, "after": after});
        ToolCall::new("call_1", "work", arguments)
    };
    let waiting = suspended(&turn, works(3)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(done(approve(&turn, &waiting).await).text(), "removed build");

    let waiting = suspended(&turn, works(5)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let result = done(approve(&turn, &waiting).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout), "11 s of work are more than 10 s");
    assert!(result.text().contains("limit of 10s"), "{}", result.text());
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_ends_with_its_answer_and_the_resolvers_holds() {
    let host = Host::new();
    let hurried = host.turn_with(TurnOptions::default().deadline(Duration::from_secs(2)));
    let works = || ToolCall::new("call_1", "work", json!({"after": 5}));
    let waiting = suspended(&hurried, works()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(done(approve(&host.turn(), &waiting).await).text(), "removed build");

    let waiting = suspended(&host.turn(), works()).await;
    let hurried = host.turn_with(TurnOptions::default().deadline(Duration::from_secs(2)));
    let result = done(approve(&hurried, &waiting).await);
    assert_eq!(result.error_kind(), Some(ErrorKind::Timeout));
    assert!(result.text().contains("deadline"), "{}", result.text());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_tool_lends_its_permit_and_waits_until_it_has_it_back() {
    let host = Host::new();
    let turn = host.turn();
    let works = |id: &str| ToolCall::new(id, "work", json!({"before": 3, "after": 3}));
    let first = suspended(&turn, works("1")).await;
    // The only permit is free, so the second call gets as far as the first.
    let second = suspended(&turn, works("2")).await;
    let one = Box::pin(approve(&turn, &first));
    let two = Box::pin(approve(&turn, &second));
    let both = futures_util::future::join(one, two).await;
    assert_eq!(done(both.0).text(), "removed build");
    assert_eq!(done(both.1).text(), "removed build");
    assert_eq!(Counts::of(&host.counts.most_working), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_runs_alone_holds_up_nobody_while_it_waits() {
    let host = Host::new();
    let turn = host.turn();
    let calls = vec![
        ToolCall::new("1", "wraps_alone", "{}"),
        ToolCall::new("2", "note", "{}"),
        ToolCall::new("3", "gives_up", "{}"),
    ];
    let answers = tokio::time::timeout(Duration::from_secs(60), turn.start_batch(calls)).await;
    let mut answers = answers.expect("nobody waits for a decision").into_iter();
    let waiting = waits(answers.next().expect("three"));
    assert!(done(answers.next().expect("three")).is_success());
    assert!(done(approve(&turn, &waiting).await).text().ends_with("removed build"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_decides_on_is_denied_in_time_and_its_tool_goes_on() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    tokio::time::sleep(Duration::from_secs(700)).await;
    let result = outcome(&turn, &waiting).await;
    assert!(result.is_success());
    assert!(result.text().contains("nobody approved the call"), "{}", result.text());
    host.settles().await;
}

#[tokio::test]
async fn one_identity_holds_no_more_than_its_share_of_waiting_tools() {
    let host = Host::with(|builder| builder.config(ExecutorConfig::default()));
    let turn = host.turn();
    for _ in 0..100 {
        suspended(&turn, call("clean")).await;
    }
    let result = done(turn.start(call("clean")).await);
    assert!(result.text().contains("running calls that wait"), "{}", result.text());
    let values = ContextValues::new().with("user", "bob");
    let bob = host.executor.turn(TurnOptions::default().values(values));
    suspended(&bob, call("clean")).await;
}
