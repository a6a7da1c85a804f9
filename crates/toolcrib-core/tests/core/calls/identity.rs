//! The identity of a caller, as the host states it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Decision, Remember};
use toolcrib_core::suspension::MemorySuspensions;
use toolcrib_core::{Answer, Executor, ExecutorConfig, Toolset, TurnOptions};
use toolcrib_tool::{
    Approval, CachePolicy, CallContext, ContextValues, Identity, Injection, NoArguments, ToolCall,
    ToolEntry, tool_fn,
};

use crate::harness::{call, define, entry, registry};

/// Returns the identity for which it runs.
fn whoami() -> ToolEntry {
    let whose = |_: Value, cx: CallContext| async move {
        json!([cx.user(), cx.tenant(), cx.injected("who")])
    };
    let definition = define("whoami")
        .input_schema(json!({"properties": {"who": {}}}))
        .injections(vec![Injection::new("who", Identity::USER).optional()]);
    entry(definition, tool_fn(whose))
}

fn executor(entries: impl IntoIterator<Item = ToolEntry>) -> Executor {
    Executor::new(registry(entries), ExecutorConfig::default())
}

fn ada() -> TurnOptions {
    TurnOptions::default().identity(Identity::user("ada").tenant("acme"))
}

#[tokio::test]
async fn a_tool_reads_the_identity_and_an_injected_parameter_gets_it_and_no_model_can_choose_it() {
    let turn = executor([whoami()]).turn(ada());
    let forged = json!({"who": "eve", "user": "eve", "tenant": "other"});
    for arguments in [json!({}), json!({"who": "eve"}), forged] {
        let result = call(&turn, "whoami", arguments).await;
        assert_eq!(result.data(), Some(&json!(["ada", "acme", "ada"])));
    }
}

#[tokio::test]
async fn a_stated_identity_takes_precedence_over_the_keys_of_every_context() {
    let executor = executor([whoami()]);
    let eve = || ContextValues::new().with("user", "eve").with("tenant", "host");
    let toolset = Toolset::new().context("user", "eve").context("tenant", "toolset");
    let options = ada().host_values(eve()).toolset(toolset).values(eve());
    let result = call(&executor.turn(options), "whoami", json!({})).await;
    assert_eq!(result.data(), Some(&json!(["ada", "acme", "ada"])));
}

#[tokio::test]
async fn a_user_without_a_tenant_belongs_to_the_hosts_tenant() {
    let host = ContextValues::new().with("tenant", "acme");
    let options = TurnOptions::default().host_values(host).identity(Identity::user("ada"));
    let result = call(&executor([whoami()]).turn(options), "whoami", json!({})).await;
    assert_eq!(result.data(), Some(&json!(["ada", "acme", "ada"])));
}

#[tokio::test]
async fn an_identity_and_the_same_context_values_are_one_caller() {
    let executor = executor([whoami()]);
    let values = ContextValues::new().with("user", "ada").with("tenant", "acme");
    let by_values = executor.turn(TurnOptions::default().values(values));
    let stated = executor.turn(ada());
    assert_eq!(stated.identity(), by_values.identity());
    assert_ne!(stated.identity(), executor.turn(TurnOptions::default()).identity());
}

#[tokio::test]
async fn kept_answers_of_one_identity_never_serve_another() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let look = ToolEntry::from_fn_with(
        "look",
        "Look.",
        |definition| definition.read_only(true).idempotent(true).cache(CachePolicy::new()),
        move |_: NoArguments, cx: CallContext| {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move { format!("{run} for {:?}", cx.user()) }
        },
    );
    let executor = executor([look.expect("it is right")]);
    let of = |identity: Identity| executor.turn(TurnOptions::default().identity(identity));
    let ada = call(&of(Identity::user("ada")), "look", json!({})).await;
    for other in [Identity::user("bob"), Identity::user("ada").tenant("acme"), Identity::default()]
    {
        assert!(!call(&of(other), "look", json!({})).await.cached());
    }
    let again = call(&of(Identity::user("ada")), "look", json!({})).await;
    assert!(again.cached(), "asking for the user does not keep an answer from being used again");
    assert_eq!(again.text(), ada.text());
}

#[tokio::test]
async fn what_is_approved_for_a_session_of_one_identity_is_asked_of_another() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let approver = move |_: &ApprovalRequest| {
        counted.fetch_add(1, Ordering::SeqCst);
        Decision::Approve { remember: Remember::Tool }
    };
    let remove =
        entry(define("remove").approval(Approval::Always), tool_fn(|_: Value, _| async { "" }));
    let executor = Executor::builder(registry([remove])).approver(Arc::new(approver)).build();
    for (identity, expected) in
        [(Identity::user("ada"), 1), (Identity::user("ada"), 1), (Identity::user("bob"), 2)]
    {
        let turn = executor.turn(TurnOptions::default().identity(identity).session("s"));
        assert!(call(&turn, "remove", json!({})).await.is_success());
        assert_eq!(asked.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test]
async fn a_call_that_waited_runs_with_the_identity_that_made_it_whoever_decides() {
    let whose = |_: Value, cx: CallContext| async move { json!([cx.user(), cx.tenant()]) };
    let deploy = entry(define("deploy").approval(Approval::Always), tool_fn(whose));
    let executor = Executor::builder(registry([deploy]))
        .suspensions(Arc::new(MemorySuspensions::new()))
        .build();
    let turn = executor.turn(ada());
    let Answer::Suspended(waiting) = turn.start(ToolCall::new("1", "deploy", "{}")).await else {
        panic!("it waits");
    };
    let operator = TurnOptions::default().identity(Identity::user("root"));
    let decided = executor.approvals(operator).decide(waiting.id(), Decision::approve()).await;
    decided.expect("it holds");
    let result = turn.result_of(&waiting).await.expect("the store works");
    assert_eq!(result.data(), Some(&json!(["ada", "acme"])));
}
