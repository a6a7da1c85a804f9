//! Calls that need approval: who is asked, what is remembered, and what no approval permits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Approver, Decision, Remember};
use toolcrib_core::audit::{AuditArguments, AuditRecord, AuditSink, AuditTrail};
use toolcrib_core::policy::{ArgumentPattern, OnAsk, Policy, PolicyRule};
use toolcrib_core::{Executor, TurnOptions};
use toolcrib_tool::{
    Approval, BoxFuture, ContextValues, ErrorKind, ToolCall, ToolDefinitionBuilder, ToolEntry,
    tool_fn,
};

use crate::harness::{call, define, entry, registry};

/// Removes nothing, but counts its calls.
fn remover(definition: ToolDefinitionBuilder, runs: &Arc<AtomicUsize>) -> ToolEntry {
    let runs = Arc::clone(runs);
    let schema = json!({
        "properties": {"path": {"type": "string", "minLength": 1}, "token": {"type": "string", "x-sensitive": true}},
        "required": ["path"],
        "additionalProperties": false,
    });
    entry(
        definition.input_schema(schema),
        tool_fn(move |args: Value, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move { args }
        }),
    )
}

fn asking() -> ToolDefinitionBuilder {
    define("remove").approval(Approval::Always)
}

/// Decides as configured, and records the questions.
struct Asked {
    decisions: Mutex<Vec<Decision>>,
    requests: Mutex<Vec<ApprovalRequest>>,
}

impl Asked {
    fn with(decisions: impl IntoIterator<Item = Decision>) -> Arc<Self> {
        let mut decisions: Vec<_> = decisions.into_iter().collect();
        decisions.reverse();
        Arc::new(Self { decisions: Mutex::new(decisions), requests: Mutex::default() })
    }

    fn requests(&self) -> MutexGuard<'_, Vec<ApprovalRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> usize {
        self.requests().len()
    }
}

impl Approver for Asked {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        self.requests().push(request.clone());
        let decision = self.decisions.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Box::pin(async move { decision.unwrap_or_else(|| Decision::deny("asked too often")) })
    }
}

fn executor(entry: ToolEntry, policy: Policy) -> Executor {
    Executor::builder(registry([entry])).policy(policy).build()
}

#[tokio::test]
async fn without_anybody_to_ask_the_call_is_denied_and_nothing_runs() {
    let runs = Arc::default();
    let turn = executor(remover(asking(), &runs), Policy::default()).turn(TurnOptions::default());
    let result = call(&turn, "remove", json!({"path": "a"})).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::Denied));
    assert!(result.text().contains("nobody here can approve it"), "{}", result.text());
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn arguments_are_checked_before_anybody_is_asked_and_secrets_are_not_shown() {
    let runs = Arc::default();
    let approver = Asked::with([Decision::approve()]);
    let turn = executor(remover(asking(), &runs), Policy::default())
        .turn(TurnOptions::default().approver(approver.clone()));
    let invalid = call(&turn, "remove", json!({"path": ""})).await;
    assert_eq!(invalid.error_kind(), Some(ErrorKind::InvalidArgs));
    assert_eq!(approver.count(), 0);

    let ran = call(&turn, "remove", json!({"path": "a", "token": "t0ken"})).await;
    assert!(ran.is_success(), "{}", ran.text());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let requests = approver.requests();
    assert_eq!(requests[0].shown.arguments, json!({"path": "a", "token": "[redacted]"}));
    assert_eq!(requests[0].arguments.value()["token"], "t0ken");
}

#[tokio::test]
async fn changed_arguments_are_checked_again_and_a_rule_still_denies_them() {
    let runs = Arc::default();
    let approver = Asked::with([
        Decision::approve_changed(r#"{"path": "b"}"#),
        Decision::approve_changed(r#"{"path": 7, "more": 1}"#),
        Decision::approve_changed(r#"{"path": "/etc/passwd"}"#),
    ]);
    let rule = PolicyRule::deny()
        .argument("path", ArgumentPattern::glob("/etc/**"))
        .message("Nothing below /etc.");
    let policy = Policy::new(OnAsk::Wait, [rule]).expect("a policy");
    let turn =
        executor(remover(asking(), &runs), policy).turn(TurnOptions::default().approver(approver));
    let changed = call(&turn, "remove", json!({"path": "a"})).await;
    assert_eq!(changed.data(), Some(&json!({"path": "b"})));
    let wrong = call(&turn, "remove", json!({"path": "a"})).await;
    assert_eq!(wrong.error_kind(), Some(ErrorKind::InvalidArgs));
    let denied = call(&turn, "remove", json!({"path": "a"})).await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
    assert!(denied.text().contains("Nothing below /etc."), "{}", denied.text());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_audit_log_says_which_arguments_were_approved_not_which_were_asked_for() {
    #[derive(Default)]
    struct Kept(Mutex<Vec<AuditRecord>>);
    impl AuditSink for Kept {
        fn record(&self, record: &AuditRecord) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
        }
    }
    let (runs, kept) = (Arc::default(), Arc::new(Kept::default()));
    let trail = AuditTrail::new(Arc::clone(&kept) as _).with_arguments(AuditArguments::Redacted);
    let approver = Asked::with([
        Decision::approve_changed(r#"{"path": "b", "token": "t0ken"}"#),
        Decision::approve(),
    ]);
    let turn = Executor::builder(registry([remover(asking(), &runs)]))
        .audit(trail)
        .build()
        .turn(TurnOptions::default().approver(approver));
    assert!(call(&turn, "remove", json!({"path": "a"})).await.is_success());
    assert!(call(&turn, "remove", json!({"path": "c"})).await.is_success());
    let records = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    let shown: Vec<Value> = records
        .iter()
        .map(|record| serde_json::from_str(&record.to_json()).expect("JSON"))
        .collect();
    assert_eq!(shown[0]["arguments"], json!({"path": "b", "token": "[redacted]"}));
    assert_eq!(shown[1]["arguments"], json!({"path": "c"}));
}

#[tokio::test]
async fn an_approval_is_remembered_for_its_session_and_identity_only() {
    let runs = Arc::default();
    let approver = Asked::with([
        Decision::approve().remembered(Remember::Tool),
        Decision::deny("not for bob"),
        Decision::deny("not without a session"),
    ]);
    let executor = executor(remover(asking(), &runs), Policy::default());
    let options = |user: &str| {
        let values = ContextValues::new().with("user", user);
        TurnOptions::default().values(values).approver(approver.clone())
    };
    let ada = executor.turn(options("ada").session("s"));
    assert!(call(&ada, "remove", json!({"path": "a"})).await.is_success());
    assert!(call(&ada, "remove", json!({"path": "b"})).await.is_success());
    assert_eq!(approver.count(), 1, "asked once");

    let bob = executor.turn(options("bob").session("s"));
    assert!(!call(&bob, "remove", json!({"path": "a"})).await.is_success());
    let nowhere = executor.turn(options("ada"));
    assert!(!call(&nowhere, "remove", json!({"path": "a"})).await.is_success());

    executor.forget_session("s");
    let again = executor.turn(options("ada").session("s"));
    assert!(!call(&again, "remove", json!({"path": "a"})).await.is_success());
    assert_eq!(approver.count(), 4);
}

#[tokio::test]
async fn a_host_that_refuses_calls_that_need_approval_asks_nobody_and_runs_nothing() {
    let runs = Arc::default();
    let policy = Policy::new(OnAsk::Deny, []).expect("a policy");
    let turn = executor(remover(asking(), &runs), policy).turn(TurnOptions::default());
    let refused = call(&turn, "remove", json!({"path": "a"})).await;
    assert_eq!(refused.error_kind(), Some(ErrorKind::Denied));
    assert!(refused.text().contains("this host refuses calls that need approval"), "{refused:?}");
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_host_that_allows_calls_that_need_approval_asks_nobody_and_still_denies_what_is_denied() {
    let runs = Arc::default();
    let rule = PolicyRule::deny().argument("path", ArgumentPattern::equals("/"));
    let policy = Policy::new(OnAsk::Allow, [rule]).expect("a policy");
    let turn = executor(remover(asking(), &runs), policy).turn(TurnOptions::default());
    assert!(call(&turn, "remove", json!({"path": "a"})).await.is_success());
    let denied = call(&turn, "remove", json!({"path": "/"})).await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_is_no_part_of_the_tools_limit_and_has_its_own_clock() {
    struct Slow(Duration);
    impl Approver for Slow {
        fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
            Box::pin(async move {
                tokio::time::sleep(self.0).await;
                Decision::approve()
            })
        }
    }
    let runs = Arc::default();
    let definition = asking().timeout(Duration::from_secs(1));
    let executor = executor(remover(definition, &runs), Policy::default());
    let within = |wait| TurnOptions::default().approver(Arc::new(Slow(Duration::from_secs(wait))));
    let patient = executor.turn(within(500));
    assert!(call(&patient, "remove", json!({"path": "a"})).await.is_success());
    let late = executor.turn(within(601));
    let denied = call(&late, "remove", json!({"path": "a"})).await;
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
    assert!(denied.text().contains("within 600 s"), "{}", denied.text());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_awaits_has_its_whole_limit_after_a_slow_approval() {
    struct Slow;
    impl Approver for Slow {
        fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Decision::approve()
            })
        }
    }
    let body = tool_fn(|_: Value, _| async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        "removed"
    });
    let remove = entry(asking().timeout(Duration::from_secs(1)), body);
    let executor = Executor::builder(registry([remove])).build();
    let turn = executor.turn(TurnOptions::default().approver(Arc::new(Slow)));
    let removed = call(&turn, "remove", json!({})).await;
    assert!(removed.is_success(), "{}", removed.text());
    let [statistics] = &executor.statistics().snapshot()[..] else { panic!("one tool") };
    let text = serde_json::to_string(statistics).expect("JSON");
    assert!(!text.contains("2.9"), "the wait for the approver is no part of the run: {text}");
}

#[tokio::test]
async fn approval_is_never_taken_from_the_arguments() {
    let runs = Arc::default();
    let turn = executor(remover(asking(), &runs), Policy::default()).turn(TurnOptions::default());
    for extra in ["approved", "_approved", "approval", "grant"] {
        let mut arguments = json!({"path": "a"});
        arguments[extra] = json!(true);
        let result = turn.call(ToolCall::new("1", "remove", arguments)).await;
        assert!(!result.is_success(), "{extra}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_rules_of_a_turn_narrow_the_policy_and_never_widen_it() {
    let runs = Arc::default();
    let policy = |rules| Policy::new(OnAsk::Wait, rules).expect("the rules are right");
    let host = policy(vec![
        PolicyRule::deny().argument("path", ArgumentPattern::glob("/etc/*")),
        PolicyRule::allow().argument("path", ArgumentPattern::glob("/tmp/*")),
        PolicyRule::ask(),
    ]);
    let executor = executor(remover(asking(), &runs), host);
    let scope = policy(vec![
        PolicyRule::deny().argument("path", ArgumentPattern::glob("/tmp/theirs/*")),
        PolicyRule::allow(),
    ]);
    let turn = executor.turn(TurnOptions::default().scope(scope));
    let kind = async |path| call(&turn, "remove", json!({"path": path})).await.error_kind();
    assert_eq!(kind("/tmp/mine/a").await, None);
    assert_eq!(kind("/tmp/theirs/a").await, Some(ErrorKind::Denied), "the turn's rule is stricter");
    assert_eq!(kind("/etc/a").await, Some(ErrorKind::Denied), "the host's rule is stricter");
    assert_eq!(kind("/srv/a").await, Some(ErrorKind::Denied), "the host asks, and nobody is there");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let dry = turn.dry_run(ToolCall::new("1", "remove", r#"{"path": "/tmp/theirs/a"}"#)).await;
    let by = dry.expect("it is checked").verdict.by().to_string();
    assert_eq!(by, "the caller's policy.rules[0]");
    // Another turn of the same executor does not know the approval.
    let other = executor.turn(TurnOptions::default());
    assert!(call(&other, "remove", json!({"path": "/tmp/theirs/a"})).await.is_success());
}
