//! Decisions on a waiting nested call: who may decide, and what its caller gets.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::TurnOptions;
use toolcrib_core::approval::Decision;
use toolcrib_core::masking::Mask;
use toolcrib_core::run::{Run, RunState};
use toolcrib_core::suspension::{RedeemError, Resolution, Submission};
use toolcrib_tool::{ContextValues, ErrorKind, ToolCall};

use super::host::{
    Counts, Host, approve, call, done, outcome, remove_call, resolve, suspended, waits,
};

#[tokio::test]
async fn a_tool_whose_call_needs_approval_waits_with_it_and_goes_on_where_it_was() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    assert_eq!((waiting.call_id(), waiting.tool()), ("call_1", "remove"));
    assert_eq!((waiting.called_tool(), waiting.made_by()), ("clean", Some("clean")));
    assert_eq!(host.kept().await.len(), 1);
    assert_eq!(Counts::of(&host.counts.removed), 0);

    let result = done(approve(&turn, &waiting).await);
    assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "clean"));
    assert_eq!(result.text(), "noted 1; removed build");
    assert_eq!(Counts::of(&host.counts.noted), 1, "what it did before is not done again");
    assert_eq!(Counts::of(&host.counts.begun), 1);
    assert!(host.kept().await.is_empty());
    let again = turn.resolve(waiting.id(), Decision::approve().into()).await;
    assert!(matches!(again, Err(RedeemError::AlreadyResolved(_))), "{again:?}");
    assert_eq!(Counts::of(&host.counts.removed), 1);
}

#[tokio::test]
async fn a_plain_call_says_that_it_waits_and_its_answer_is_there_later() {
    let host = Host::new();
    let turn = host.turn();
    let result = turn.call(call("clean")).await;
    assert_eq!((result.error_kind(), result.tool()), (Some(ErrorKind::RequiresApproval), "clean"));
    let waiting = &host.kept().await[0];
    assert_eq!(done(approve(&turn, waiting).await).text(), "noted 1; removed build");
}

#[tokio::test]
async fn whoever_approves_sees_which_tools_ask_and_no_secret() {
    let host =
        Host::with(|builder| builder.mask(Mask::new(["build".to_owned()]).expect("one word")));
    let waiting = suspended(&host.turn(), call("clean")).await;
    let approvals = host.executor.approvals(TurnOptions::default());
    let [request] = &approvals.list().await.expect("it is in memory")[..] else {
        panic!("one call waits")
    };
    assert_eq!(request.tool, "remove");
    assert_eq!(request.shown.called_by, ["clean"]);
    let (text, value) = (request.text(), request.to_value());
    assert!(text.contains("called by: clean"), "{text}");
    assert_eq!(value["called_by"], json!(["clean"]));
    for secret in ["hunter2", "build"] {
        assert!(!text.contains(secret) && !value.to_string().contains(secret), "{value}");
    }
    // The digest of the question identifies the asking call.
    let direct = suspended(&host.turn(), remove_call("build")).await;
    let direct = approvals.find(direct.id()).await.expect("in memory").expect("it waits");
    assert_ne!(direct.digest(), request.digest());

    approvals.decide(waiting.id(), Decision::approve()).await.expect("it holds");
    let result = outcome(&host.turn(), &waiting).await;
    assert_eq!((result.call_id().as_str(), result.tool()), ("call_1", "clean"));
}

#[tokio::test]
async fn changed_arguments_that_are_refused_repeat_no_secret() {
    let host =
        Host::with(|builder| builder.mask(Mask::new(["build".to_owned()]).expect("one word")));
    let waiting = suspended(&host.turn(), remove_call("a")).await;
    let approvals = host.executor.approvals(TurnOptions::default());
    for arguments in [json!({"build": "build"}), json!({"path": {"a": "build"}}), json!(["build"])]
    {
        let changed = Decision::approve_changed(arguments.to_string());
        let refused = approvals.decide(waiting.id(), changed).await.expect_err("it does not fit");
        let shown = format!("{refused} {refused:?}");
        assert!(!shown.contains("build"), "{shown}");
    }
}

#[tokio::test]
async fn a_call_waits_on_if_its_caller_changes_the_arguments_to_some_that_are_refused() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, remove_call("a")).await;
    for arguments in [r#"{"path": {"a": 1}}"#, r#"{"pth": "dist"}"#, "[]", "{"] {
        let changed = Decision::approve_changed(arguments);
        let refused = turn.resolve(waiting.id(), changed.into()).await.expect_err(arguments);
        assert!(matches!(refused, RedeemError::Arguments(_)), "{arguments}: {refused:?}");
    }
    let changed = Decision::approve_changed(r#"{"path": "dist"}"#);
    assert_eq!(done(resolve(&turn, &waiting, changed).await).text(), "removed dist");
}

#[tokio::test]
async fn a_denied_call_is_the_tools_to_deal_with() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("clean")).await;
    let result = done(resolve(&turn, &waiting, Decision::deny("not today")).await);
    assert!(result.is_success() && result.text().contains("noted 1; "), "{}", result.text());
    assert!(result.text().contains("not today"), "{}", result.text());
    let waiting = suspended(&turn, call("clean")).await;
    let changed = Decision::approve_changed(r#"{"path":"dist"}"#);
    assert_eq!(done(resolve(&turn, &waiting, changed).await).text(), "noted 2; removed dist");
}

#[tokio::test]
async fn nobody_else_resolves_it() {
    let host = Host::new();
    let waiting = suspended(&host.turn(), call("clean")).await;
    let values = ContextValues::new().with("user", "bob");
    let bob = host.executor.turn(TurnOptions::default().values(values).may_approve(true));
    let stolen = bob.resolve(waiting.id(), Decision::approve().into()).await;
    assert!(matches!(stolen, Err(RedeemError::Unknown)), "{stolen:?}");
    assert_eq!(done(approve(&host.turn(), &waiting).await).text(), "noted 1; removed build");
}

#[tokio::test]
async fn questions_and_client_tools_within_a_call_wait_one_after_the_other() {
    let host = Host::new();
    let turn = host.turn();
    let question = suspended(&turn, call("visit")).await;
    assert_eq!(question.waiting().as_str(), "input");
    let answer = Resolution::Answer(json!({"name": "Ada"}));
    let client = waits(resolve(&turn, &question, answer).await);
    assert_eq!((client.call_id(), client.tool()), ("call_1", "pick"));
    let result = done(resolve(&turn, &client, Resolution::Output("a.txt".into())).await);
    assert_eq!(result.text(), "Hello, Ada! a.txt");
}

#[tokio::test]
async fn the_other_calls_of_a_batch_are_answered_and_the_run_ends_with_the_decision() {
    let host = Host::new();
    let turn = host.turn();
    let calls =
        vec![call("clean"), ToolCall::new("2", "note", "{}"), ToolCall::new("3", "visit", "{}")];
    let mut run = Run::start(&turn, calls).await.expect("there is randomness");
    assert_eq!(run.answered().count(), 1);
    let waiting: Vec<_> = run.outstanding().cloned().collect();
    run.resolve(&turn, waiting[0].id(), Decision::approve().into()).await.expect("it waits");
    let answer = Resolution::Answer(json!({"name": "Ada"}));
    run.resolve(&turn, waiting[1].id(), answer).await.expect("it waits");
    run.submit(&turn, vec![Submission::new("3", "b.txt")]).await.expect("it waits for that");
    let results = run.results().expect("all are answered");
    assert!(results[0].text().ends_with("removed build"), "{}", results[0].text());
    assert_eq!(results[2].text(), "Hello, Ada! b.txt");
}

#[tokio::test]
async fn a_decision_from_elsewhere_ends_the_run_too() {
    let host = Host::new();
    let turn = host.turn();
    let mut run = Run::start(&turn, vec![call("both")]).await.expect("there is randomness");
    let approvals = host.executor.approvals(TurnOptions::default());
    for _ in 0..2 {
        let [request] = &approvals.list().await.expect("in memory")[..] else { panic!("one") };
        let id = request.id.clone().expect("it is suspended");
        let decided = approvals.decide(&id, Decision::approve()).await.expect("it holds");
        decided.outcome(Duration::from_secs(5)).await.expect("it goes on");
    }
    run.settle(&turn).await.expect("in memory");
    assert_eq!(run.state(), RunState::Completed);
    assert_eq!(run.results().expect("over")[0].text(), "removed one, removed two");
}

#[tokio::test]
async fn two_calls_at_once_within_one_are_asked_about_one_after_the_other() {
    let host = Host::new();
    let turn = host.turn();
    let first = suspended(&turn, call("both")).await;
    assert_eq!(host.kept().await.len(), 1);
    let second = waits(approve(&turn, &first).await);
    assert_ne!(first.arguments(), second.arguments());
    let result = done(approve(&turn, &second).await);
    assert_eq!(result.text(), "removed one, removed two");
}

#[tokio::test]
async fn a_call_three_levels_down_suspends_all_of_them() {
    let host = Host::new();
    let turn = host.turn();
    let waiting = suspended(&turn, call("outer")).await;
    assert_eq!(waiting.callers().collect::<Vec<_>>(), ["outer", "middle", "tool_call"]);
    assert_eq!(waiting.shown().called_by, ["outer", "middle", "tool_call"]);
    let result = done(approve(&turn, &waiting).await);
    assert_eq!((result.tool(), result.text().as_ref()), ("outer", "removed deep"));
}
