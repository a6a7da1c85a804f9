//! Runs over real turns: another process answers waiting calls, with the same checks.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::approval::Decision;
use toolcrib_core::policy::{ArgumentPattern, OnAsk, Policy, PolicyRule};
use toolcrib_core::run::{Run, RunError, RunState};
use toolcrib_core::suspension::{MemorySuspensions, RedeemError, Submission, SuspensionId};
use toolcrib_core::{Executor, Turn, TurnOptions};
use toolcrib_tool::{ContextValues, ErrorKind, ToolCall, ToolEntry, ToolResult, tool_fn};

use crate::harness::{define, entry, registry, source};

/// A process: an executor over the shared store. `version` is part of a description.
fn process(store: &Arc<MemorySuspensions>, version: u32) -> Executor {
    let measure = define("measure").output_schema(json!({
        "type": "object", "properties": {"cm": {"type": "integer"}}, "required": ["cm"],
    }));
    let remove = define("remove")
        .description(format!("Removes, version {version}."))
        .input_schema(json!({"properties": {"path": {"type": "string"}}, "required": ["path"]}));
    let removes = tool_fn(|args: Value, _| async move { format!("removed {}", args["path"]) });
    let policy = Policy::new(
        OnAsk::Wait,
        [
            PolicyRule::deny().tool("remove").argument("path", ArgumentPattern::glob("/*")),
            PolicyRule::ask().tool("remove"),
        ],
    );
    Executor::builder(registry([
        ToolEntry::client(measure.build().expect("valid definition"), source()),
        entry(remove, removes),
        entry(define("echo"), tool_fn(|_: Value, _| async { "echo" })),
    ]))
    .policy(policy.expect("the rules are right"))
    .suspensions(Arc::clone(store) as Arc<_>)
    .build()
}

fn turn(executor: &Executor, user: &str) -> Turn {
    let values = ContextValues::new().with("user", user);
    executor.turn(TurnOptions::default().values(values).may_approve(true))
}

fn carried(run: &Run) -> Run {
    let text = serde_json::to_string(run.record()).expect("it is plain data");
    Run::from_record(serde_json::from_str(&text).expect("what was written is read"))
}

fn waiting_for(run: &Run, call: &str) -> SuspensionId {
    run.outstanding().find(|one| one.call_id() == call).expect("it waits").id().clone()
}

async fn asking(turn: &Turn) -> (Run, SuspensionId) {
    let calls = vec![ToolCall::new("r", "remove", r#"{"path": "a"}"#)];
    let run = Run::start(turn, calls).await.expect("there is randomness");
    let id = waiting_for(&run, "r");
    (run, id)
}

fn only(run: &Run) -> ToolResult {
    run.results().expect("it is over").remove(0)
}

#[tokio::test]
async fn another_process_finishes_what_one_began() {
    let store = Arc::new(MemorySuspensions::new());
    let first = process(&store, 1);
    let calls = vec![
        ToolCall::new("m", "measure", "{}"),
        ToolCall::new("e", "echo", "{}"),
        ToolCall::new("r", "remove", r#"{"path": "a"}"#),
    ];
    let run = Run::start(&turn(&first, "ada"), calls).await.expect("there is randomness");
    assert_eq!(run.state(), RunState::RequiresAction);
    drop(first);

    let second = process(&store, 1);
    let there = turn(&second, "ada");
    let mut run = carried(&run);
    let odd = run.submit(&there, vec![Submission::new("m", r#"{"cm": "long"}"#)]).await;
    let message = odd.expect_err("it is no number").to_string();
    assert!(message.starts_with("the output of the call m is not right"), "{message}");
    run.submit(&there, vec![Submission::new("m", r#"{"cm": 7}"#)]).await.expect("it fits");
    let id = waiting_for(&run, "r");
    run.resolve(&there, &id, Decision::approve().into()).await.expect("it waits");

    assert_eq!(run.state(), RunState::Completed);
    let results = run.results().expect("it is over");
    assert_eq!(results[0].data(), Some(&json!({"cm": 7})));
    assert_eq!(results[1].text(), "echo");
    assert_eq!(results[2].text(), r#"removed "a""#);
}

#[tokio::test]
async fn a_tool_that_changed_meanwhile_is_not_run() {
    let store = Arc::new(MemorySuspensions::new());
    let (run, id) = asking(&turn(&process(&store, 1), "ada")).await;
    let mut run = carried(&run);
    let there = turn(&process(&store, 2), "ada");
    run.resolve(&there, &id, Decision::approve().into()).await.expect("it waits");
    let result = only(&run);
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
    assert!(
        result.text().contains("the tool changed since the call was made"),
        "{}",
        result.text()
    );
}

#[tokio::test]
async fn an_approver_cannot_put_in_arguments_that_a_rule_denies_or_the_tool_does_not_know() {
    let store = Arc::new(MemorySuspensions::new());
    let here = turn(&process(&store, 1), "ada");
    let (mut run, id) = asking(&here).await;
    for (arguments, kind) in
        [(r#"{"path": "/etc"}"#, ErrorKind::Denied), ("{}", ErrorKind::InvalidArgs)]
    {
        let changed = Decision::approve_changed(arguments);
        let refused = run.resolve(&here, &id, changed.into()).await;
        let Err(RunError::Redeem(RedeemError::Arguments(error))) = refused else {
            panic!("{arguments}: {refused:?}")
        };
        assert_eq!(error.kind(), kind, "{arguments}");
        assert_eq!(run.state(), RunState::RequiresAction, "the call still waits");
    }
    let changed = Decision::approve_changed(r#"{"path": "b"}"#);
    run.resolve(&here, &id, changed.into()).await.expect("it waits");
    assert_eq!(only(&run).error_kind(), None);
}

#[tokio::test]
async fn another_identity_resolves_nothing() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = process(&store, 1);
    let (mut run, id) = asking(&turn(&executor, "ada")).await;
    let eve = turn(&executor, "eve");
    assert!(run.resolve(&eve, &id, Decision::approve().into()).await.is_err());
    assert!(eve.resolve(&id, Decision::approve().into()).await.is_err());
    assert_eq!(run.state(), RunState::RequiresAction);
}

#[tokio::test]
async fn a_cancelled_run_is_answered_by_the_pipeline() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = process(&store, 1);
    let here = turn(&executor, "ada");
    let (mut run, _) = asking(&here).await;
    run.cancel(&here).await.expect("it can be");
    assert_eq!(run.state(), RunState::Cancelled);
    assert_eq!(only(&run).error_kind(), Some(ErrorKind::Cancelled));
}
