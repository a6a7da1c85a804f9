//! The approved call is the one that runs: with the values that the host injected, and as its caller; and the approver
//! sees all of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::approval::{
    ApprovalRequest, CallerRights, CallerStatus, DecideError, Decision, Remember,
};
use toolcrib_core::masking::Mask;
use toolcrib_core::suspension::{Caller, MemorySuspensions, Suspension, SuspensionStore};
use toolcrib_core::{Answer, Executor, ExecutorBuilder, ToolFilter, Toolset, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, Arguments, BoxFuture, CallContext, CommandPlan, ContextValues, ErrorKind, Injection,
    Plan, Tool, ToolCall, ToolEntry, ToolError, ToolOutcome, ToolOutput, tool_fn,
};

use crate::harness::{define, entry, registry};

/// Removes a path of a project, and reports which.
struct Remover;

impl Tool for Remover {
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        let project = cx.injected("project").cloned().unwrap_or_default();
        let user = cx.values().get("user").cloned().unwrap_or_default();
        let text = format!("removed {} in {project} for {user}", arguments.value()["path"]);
        Box::pin(std::future::ready(Ok(ToolOutput::from(text).into())))
    }

    fn plan(&self, arguments: &Arguments, cx: &CallContext) -> Result<Option<Plan>, ToolError> {
        let Some(project) = cx.injected("project").and_then(Value::as_str) else {
            return Err(ToolError::new(ErrorKind::MissingContext, "no project"));
        };
        let path = arguments.value()["path"].as_str().unwrap_or_default().to_owned();
        Ok(Some(Plan::Command(CommandPlan {
            argv: vec!["rm".into(), "-rf".into(), path, "hunter2hunter2".into()],
            cwd: format!("/projects/{project}"),
            sandbox: "workspace".into(),
            ..CommandPlan::default()
        })))
    }
}

fn remover() -> ToolEntry {
    let schema = json!({
        "properties": {"path": {"type": "string"}, "token": {"type": "string", "x-sensitive": true}},
    });
    let definition = define("remove")
        .approval(Approval::Always)
        .input_schema(schema)
        .injections(vec![Injection::new("project", "project_id").optional()]);
    entry(definition, Remover)
}

fn executor(store: &Arc<MemorySuspensions>) -> ExecutorBuilder {
    let outer = tool_fn(|_: Value, cx: CallContext| async move {
        cx.call(ToolCall::new("inner", "remove", r#"{"path": "build"}"#)).await.text().into_owned()
    });
    let entries = [remover(), entry(define("outer"), outer)];
    Executor::builder(registry(entries)).suspensions(store.clone())
}

fn of(user: &str, project: &str) -> TurnOptions {
    let values = ContextValues::new().with("user", user).with("project_id", project);
    TurnOptions::default().values(values)
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "remove", r#"{"path": "build", "token": "swordfish"}"#)
}

async fn suspended(turn: &Turn) -> Suspension {
    match turn.start(call("1")).await {
        Answer::Suspended(suspension) => *suspension,
        Answer::Done(result) => panic!("it does not wait: {}", result.text()),
    }
}

#[tokio::test]
async fn a_call_approved_in_one_project_never_runs_in_another() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let waiting = suspended(&executor.turn(of("ada", "scratch"))).await;
    let elsewhere = executor.turn(of("ada", "production").may_approve(true));
    let answer = elsewhere.resolve(waiting.id(), Decision::approve().into()).await;
    let Ok(Answer::Done(result)) = answer else { panic!("it is done: {answer:?}") };
    assert_eq!(result.text(), r#"removed "build" in "scratch" for "ada""#);
}

#[tokio::test]
async fn a_remembered_approval_holds_for_the_injected_values_it_was_given_for() {
    for scope in [Remember::SameCall, Remember::Tool] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let approver =
            Arc::new(move |_: &ApprovalRequest| match count.fetch_add(1, Ordering::SeqCst) {
                0 => Decision::approve().remembered(scope),
                _ => Decision::deny("not there"),
            });
        let executor = executor(&Arc::default()).build();
        let turn =
            |project| executor.turn(of("ada", project).session("s").approver(approver.clone()));
        assert!(turn("scratch").call(call("1")).await.is_success());
        assert!(turn("scratch").call(call("2")).await.is_success());
        assert_eq!(asked.load(Ordering::SeqCst), 1, "it is remembered");
        let elsewhere = turn("production").call(call("3")).await;
        assert_eq!(elsewhere.error_kind(), Some(ErrorKind::Denied));
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn whoever_approves_is_shown_arguments_injected_values_and_the_plan_and_no_secret() {
    let seen: Arc<Mutex<Vec<ApprovalRequest>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let approver = Arc::new(move |request: &ApprovalRequest| {
        keep.lock().unwrap().push(request.clone());
        Decision::approve()
    });
    let store = Arc::new(MemorySuspensions::new());
    let mask = Mask::new(["hunter2hunter2".to_owned()]).expect("a mask");
    let executor = executor(&store).mask(mask).build();
    let options = of("ada", "scratch").client("agent");
    executor.turn(options.clone().approver(approver)).call(call("1")).await;
    suspended(&executor.turn(options)).await;
    let operator = executor.turn(TurnOptions::default().may_approve(true));
    let listed = operator.approvals().expect("the right").list().await.expect("it works");
    let live = seen.lock().unwrap().remove(0);
    for request in [live, listed[0].clone()] {
        let text = request.text();
        for part in [
            "remove: the tool asks for approval of every call (the tool's own `approval`)",
            r#"arguments: {"path":"build","token":"[redacted]"}"#,
            r#"injected: {"project":"scratch"}"#,
            r#"runs: ["rm","-rf","build","#,
            "in: /projects/scratch",
            "sandbox: workspace",
            r#"asked by: user "ada", client "agent""#,
        ] {
            assert!(text.contains(part), "{part:?} is missing:\n{text}");
        }
        let everything = format!("{text}{}", request.to_value());
        assert!(
            !everything.contains("swordfish") && !everything.contains("hunter2"),
            "{everything}"
        );
    }
}

#[tokio::test]
async fn a_call_whose_required_context_is_missing_is_not_asked_about() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let result = executor.turn(TurnOptions::default()).call(call("1")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::MissingContext), "{}", result.text());
}

#[tokio::test]
async fn a_call_that_another_tool_makes_is_shown_with_that_tool_and_runs_once_it_is_approved() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let turn = executor.turn(of("ada", "scratch"));
    let Answer::Suspended(waiting) = turn.start(ToolCall::new("1", "outer", "{}")).await else {
        panic!("it waits")
    };
    let operator = executor.turn(TurnOptions::default().may_approve(true));
    let approvals = operator.approvals().expect("the right");
    let [request] = &approvals.list().await.expect("it works")[..] else { panic!("one waits") };
    assert_eq!(
        (request.tool.as_str(), &*request.shown.called_by),
        ("remove", &["outer".to_owned()][..])
    );
    assert_eq!(request.shown.injected["project"], "scratch");
    let decided = approvals.decide(waiting.id(), Decision::approve()).await.expect("it holds");
    let settled = decided.outcome(Duration::from_secs(5)).await.expect("it is done");
    assert!(settled.result().expect("it is done").is_success());
}

#[tokio::test]
async fn an_approver_decides_on_calls_of_others_and_the_caller_gets_the_answer() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let caller = executor.turn(of("ada", "scratch"));
    assert!(caller.approvals().is_none(), "it has not the right");
    let waiting = suspended(&caller).await;
    let approver = executor.turn(of("eve", "production").may_approve(true));
    let approvals = approver.approvals().expect("the right");
    let request = approvals.find(waiting.id()).await.expect("it works").expect("it waits");
    assert_eq!(request.asker.user, Some(json!("ada")));
    let wait = caller.wait_for_outcome(waiting.id(), Duration::from_secs(20));
    let decide = approvals.decide(waiting.id(), Decision::approve());
    let (outcome, decided) = tokio::join!(wait, decide);
    decided.expect("it waits");
    let result =
        outcome.expect("it works").and_then(|settled| settled.result()).expect("it is done");
    assert_eq!(result.text(), r#"removed "build" in "scratch" for "ada""#);
    // Only the caller can take the answer, and only once.
    assert!(approver.outcome(waiting.id()).await.expect("it works").is_none());
    assert!(caller.take_outcome(waiting.id()).await.expect("it works").is_some());
    assert!(caller.take_outcome(waiting.id()).await.expect("it works").is_none());
    let again = approvals.decide(waiting.id(), Decision::approve()).await;
    assert!(matches!(again, Err(DecideError::Redeem(_))), "{again:?}");
}

#[tokio::test]
async fn approvers_see_the_calls_of_their_tenant_and_toolset_and_operators_all() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let acme = |options: TurnOptions, user: &str| {
        let values = ContextValues::new().with("user", user).with("tenant", "acme");
        options.values(values.with("project_id", "scratch"))
    };
    let waiting = suspended(&executor.turn(acme(TurnOptions::default(), "ada"))).await;
    let may = TurnOptions::default().may_approve(true);
    let narrow = Toolset::new().include(ToolFilter::new().name("outer"));
    for (options, all_tenants, sees) in [
        (acme(may.clone(), "bob"), false, true),
        (may.clone(), false, false),
        (may.clone(), true, true),
        (acme(may.clone().toolset(narrow.clone()), "bob"), false, false),
        (may.clone().toolset(narrow), true, false),
    ] {
        let mut approvals = executor.turn(options).approvals().expect("the right");
        if all_tenants {
            approvals = approvals.of_all_tenants();
        }
        assert_eq!(approvals.list().await.expect("it works").len(), usize::from(sees));
        let found = approvals.find(waiting.id()).await.expect("it works");
        assert_eq!(found.is_some(), sees);
        if !sees {
            let refused = approvals.decide(waiting.id(), Decision::deny("no")).await;
            assert!(refused.is_err());
        }
    }
}

#[tokio::test]
async fn changed_arguments_are_checked_and_the_call_waits_on_if_they_are_wrong() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let caller = executor.turn(of("ada", "scratch"));
    let waiting = suspended(&caller).await;
    let approvals =
        executor.turn(TurnOptions::default().may_approve(true)).approvals().expect("the right");
    let wrong = Decision::approve_changed(r#"{"path": {"a": 1}}"#);
    let refused = approvals.decide(waiting.id(), wrong).await;
    assert!(matches!(refused, Err(DecideError::Arguments(_))), "{refused:?}");
    let right = Decision::approve_changed(r#"{"path": "dist"}"#);
    approvals.decide(waiting.id(), right).await.expect("it still waits");
    let outcome = caller.wait_for_outcome(waiting.id(), Duration::from_secs(20)).await;
    let result = outcome.expect("it works").and_then(|settled| settled.result()).expect("done");
    assert_eq!(result.text(), r#"removed "dist" in "scratch" for "ada""#);
}

#[tokio::test]
async fn a_denial_by_another_tells_the_caller_why() {
    let store = Arc::new(MemorySuspensions::new());
    let executor = executor(&store).build();
    let caller = executor.turn(of("ada", "scratch"));
    let waiting = suspended(&caller).await;
    let operator = executor.turn(TurnOptions::default().may_approve(true));
    let approvals = operator.approvals().expect("the right");
    approvals.decide(waiting.id(), Decision::deny("not on Fridays")).await.expect("it waits");
    let outcome = caller.wait_for_outcome(waiting.id(), Duration::from_secs(20)).await;
    let result = outcome.expect("it works").and_then(|settled| settled.result()).expect("done");
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
    assert!(result.text().contains("not on Fridays"), "{}", result.text());
}

type Look = fn() -> CallerStatus;

/// A table of clients in which every client has this status.
struct Table(Look);

impl CallerRights for Table {
    fn caller_status(&self, caller: &Caller) -> CallerStatus {
        assert_eq!((caller.client_name(), caller.client_key()), (Some("agent"), Some("key")));
        (self.0)()
    }
}

fn agent() -> TurnOptions {
    of("ada", "scratch").client("agent").client_key("key")
}

fn within(tool: &str) -> Toolset {
    Toolset::new().include(ToolFilter::new().name(tool))
}

fn denying() -> TurnOptions {
    let rules = json!({"rules": [{"tool": "remove", "action": "deny", "message": "not any more"}]});
    agent().scope(serde_json::from_value(rules).expect("a policy"))
}

#[tokio::test]
async fn the_rights_that_a_client_has_at_the_decision_decide() {
    let tables: [(Look, Option<&str>); 6] = [
        (
            || CallerStatus::Revoked { reason: "its token was revoked".into() },
            Some("token was revoked"),
        ),
        (
            || CallerStatus::Current(Box::new(agent().toolset(within("outer")))),
            Some("not in its toolset"),
        ),
        (|| CallerStatus::Current(Box::new(denying())), Some("not any more")),
        (|| CallerStatus::Current(Box::new(of("eve", "scratch"))), Some("context values")),
        (|| CallerStatus::Current(Box::new(agent().toolset(within("remove")))), None),
        (|| CallerStatus::Unmanaged, None),
    ];
    for (caller_status, refused) in tables {
        let store = Arc::new(MemorySuspensions::new());
        let executor = executor(&store).build();
        let caller = executor.turn(agent());
        let table = Arc::new(Table(caller_status));
        executor.add_caller_rights(&table);
        let operator = executor.turn(TurnOptions::default().may_approve(true));
        let approvals = operator.approvals().expect("the right");

        let waiting = suspended(&caller).await;
        let decided = approvals.decide(waiting.id(), Decision::approve()).await;
        match (refused, decided) {
            (None, Ok(_)) => {}
            (Some(why), Err(DecideError::Revoked(reason))) => {
                assert!(reason.contains("may no longer make it"), "{reason}");
                assert!(reason.contains(why), "{reason}");
            }
            (_, decided) => panic!("{refused:?}: {decided:?}"),
        }
        let outcome = caller.wait_for_outcome(waiting.id(), Duration::from_secs(20)).await;
        let result = outcome.expect("it works").and_then(|settled| settled.result()).expect("done");
        assert_eq!(result.is_success(), refused.is_none(), "{}", result.text());
        assert!(result.text().contains(refused.unwrap_or("removed")), "{}", result.text());
        assert!(store.all().await.expect("it works").is_empty());

        // The same applies if a turn with the same identity resolves the call.
        let waiting = suspended(&caller).await;
        let person = executor.turn(of("ada", "scratch").may_approve(true));
        let answer = person.resolve(waiting.id(), Decision::approve().into()).await;
        let Ok(Answer::Done(result)) = answer else { panic!("it is done: {answer:?}") };
        assert_eq!(result.is_success(), refused.is_none(), "{}", result.text());

        // A host can deny such calls at once, without asking.
        suspended(&caller).await;
        approvals.end_revoked(&["other".into()]).await.expect("it works");
        assert_eq!(approvals.list().await.expect("it works").len(), 1, "another client's");
        approvals.end_revoked(&["agent".into()]).await.expect("it works");
        let left = approvals.list().await.expect("it works").len();
        assert_eq!(left, usize::from(refused.is_none()));
    }
}
