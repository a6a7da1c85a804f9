//! Suspended calls: they are stored, resolved once, and continued by any process with the same
//! store.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::approval::{ApprovalRequest, Decision};
use toolcrib_core::audit::{
    AuditOutcome, AuditRecord, AuditSink, AuditTrail, Decision as AuditDecision,
};
use toolcrib_core::clock::{Clock, Timestamp};
use toolcrib_core::suspension::{
    MemorySuspensions, RedeemError, Resolution, ResolutionKind, Suspension, SuspensionStore,
    Waiting,
};
use toolcrib_core::{Answer, Executor, ExecutorBuilder, Middleware, Next, Turn, TurnOptions};
use toolcrib_tool::{
    Approval, BoxFuture, CHANGED_ARGUMENTS, CallContext, ContextValues, ErrorKind, InputRequest,
    Ticket, ToolCall, ToolEntry, ToolOutcome, ToolOutput, ToolResult, tool_fn,
};

use crate::harness::{define, entry, registry, source};

/// A clock that is set by hand.
#[derive(Default)]
struct Hands(std::sync::atomic::AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
    }
}

struct Host {
    store: Arc<MemorySuspensions>,
    clock: Arc<Hands>,
    runs: Arc<AtomicUsize>,
}

impl Host {
    fn new() -> Self {
        Self {
            store: Arc::new(MemorySuspensions::new()),
            clock: Arc::default(),
            runs: Arc::default(),
        }
    }

    /// Another process with the same tools and the same store.
    fn executor(&self) -> ExecutorBuilder {
        let runs = Arc::clone(&self.runs);
        let remove = entry(
            define("remove").approval(Approval::Always),
            tool_fn(move |_: Value, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { "removed" }
            }),
        );
        let greet = tool_fn(|_: Value, cx: CallContext| async move {
            match cx.answer().and_then(|answer| answer["name"].as_str()) {
                Some(name) => ToolOutcome::Done(ToolOutput::from(format!("Hello, {name}!"))),
                None => ToolOutcome::needs_input(InputRequest::new(
                    "What is your name?",
                    json!({"type": "object", "required": ["name"]}),
                )),
            }
        });
        let delegate = tool_fn(|_: Value, _| async { ToolOutcome::Pending(Ticket::new("job 7")) });
        let schema = json!({"type": "object", "required": ["path"]});
        let pick = define("pick")
            .output_schema(schema)
            .timeout(Duration::from_secs(60))
            .build()
            .expect("valid");
        let entries = [
            remove,
            entry(define("greet"), greet),
            entry(define("delegate"), delegate),
            ToolEntry::client(pick, source()),
        ];
        Executor::builder(registry(entries))
            .suspensions(self.store.clone())
            .clock(self.clock.clone())
    }

    fn turn(&self) -> Turn {
        as_ada(&self.executor().build())
    }
}

fn as_ada(executor: &Executor) -> Turn {
    let values = ContextValues::new().with("user", "ada");
    executor.turn(TurnOptions::default().values(values).may_approve(true))
}

async fn suspended(turn: &Turn, name: &str) -> Suspension {
    match turn.start(ToolCall::new("call_1", name, "{}")).await {
        Answer::Suspended(suspension) => *suspension,
        Answer::Done(result) => panic!("it does not wait: {}", result.text()),
    }
}

fn done(answer: Answer) -> ToolResult {
    match answer {
        Answer::Done(result) => result,
        Answer::Suspended(suspension) => panic!("it still waits: {suspension:?}"),
    }
}

#[tokio::test]
async fn a_call_that_waits_for_approval_goes_on_in_another_process_once() {
    let host = Host::new();
    let suspension = suspended(&host.turn(), "remove").await;
    assert!(matches!(suspension.waiting(), Waiting::Approval { .. }));
    assert_eq!(host.runs.load(Ordering::SeqCst), 0);

    let other = host.turn();
    let approve = || Resolution::from(Decision::approve());
    let result = done(other.resolve(suspension.id(), approve()).await.expect("it is resolved"));
    assert_eq!((result.call_id().as_str(), result.text().as_ref()), ("call_1", "removed"));
    let again = other.resolve(suspension.id(), approve()).await;
    let Err(RedeemError::AlreadyResolved(first)) = again else { panic!("{again:?}") };
    assert_eq!((first.kind(), first.by()), (ResolutionKind::Approved, "the host"));
    assert_eq!(host.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn middleware_that_sends_a_resumed_call_on_twice_runs_it_once() {
    struct Twice;
    impl Middleware for Twice {
        fn around<'a>(
            &'a self,
            _: &'a Turn,
            call: ToolCall,
            next: Next<'a>,
        ) -> BoxFuture<'a, ToolResult> {
            Box::pin(async move {
                let first = next.clone().run(call.clone()).await;
                assert_eq!(first.text(), "removed");
                next.run(call).await
            })
        }
    }
    let host = Host::new();
    let suspension = suspended(&host.turn(), "remove").await;
    let turn = as_ada(&host.executor().middleware(Twice).build());
    let decision = Decision::approve().into();
    let second = done(turn.resolve(suspension.id(), decision).await.expect("it is resolved"));
    assert_eq!(second.error_kind(), Some(ErrorKind::Denied));
    assert!(second.text().contains("for one run"), "{}", second.text());
    assert_eq!(host.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nobody_else_can_resolve_it_and_a_denial_tells_the_model_why() {
    let host = Host::new();
    let suspension = suspended(&host.turn(), "remove").await;
    let bob = host.executor().build().turn(
        TurnOptions::default().values(ContextValues::new().with("user", "bob")).may_approve(true),
    );
    let stolen = bob.resolve(suspension.id(), Decision::approve().into()).await;
    assert!(matches!(stolen, Err(RedeemError::Unknown)), "{stolen:?}");

    let denied = host.turn().resolve(suspension.id(), Decision::deny("not today").into()).await;
    let denied = done(denied.expect("it is resolved"));
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
    assert!(denied.text().contains("not today"));
    assert_eq!(host.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_client_tool_is_never_run_here_and_its_output_is_checked() {
    let host = Host::new();
    let turn = host.turn();
    let suspension = suspended(&turn, "pick").await;
    assert!(matches!(suspension.waiting(), Waiting::Client));
    let output = |text: &str| Resolution::Output(ToolOutput::from(text));
    let result = turn.resolve(suspension.id(), output(r#"{"path": "a.txt"}"#)).await;
    let result = done(result.expect("it is resolved"));
    assert_eq!(result.data(), Some(&json!({"path": "a.txt"})));

    let suspension = suspended(&turn, "pick").await;
    let wrong = turn.resolve(suspension.id(), output(r#"{"file": "a.txt"}"#)).await;
    let wrong = done(wrong.expect("it is resolved"));
    assert_eq!(wrong.error_kind(), Some(ErrorKind::InvalidOutput));
}

#[tokio::test]
async fn a_client_that_is_late_has_let_its_call_expire() {
    let host = Host::new();
    let turn = host.turn();
    let suspension = suspended(&turn, "pick").await;
    host.clock.0.store(60_000, Ordering::SeqCst);
    let late = turn.resolve(suspension.id(), Resolution::Output("x".into())).await;
    assert!(matches!(late, Err(RedeemError::Expired)), "{late:?}");
    let expired = turn.resolve(suspension.id(), Resolution::Expire).await;
    let expired = done(expired.expect("it is resolved"));
    assert_eq!(expired.error_kind(), Some(ErrorKind::Timeout));
    assert!(expired.text().contains("expired"), "{}", expired.text());
}

#[tokio::test]
async fn a_tool_that_asks_back_runs_again_with_the_answer() {
    let host = Host::new();
    let turn = host.turn();
    let suspension = suspended(&turn, "greet").await;
    assert!(matches!(suspension.waiting(), Waiting::Input { .. }));
    let answer = Resolution::Answer(json!({"name": "Ada"}));
    let result = done(host.turn().resolve(suspension.id(), answer).await.expect("resolved"));
    assert_eq!(result.text(), "Hello, Ada!");
}

#[tokio::test]
async fn an_answer_tells_of_changed_arguments_after_a_question_and_from_a_client() {
    let asks = tool_fn(|arguments: Value, cx: CallContext| async move {
        match cx.answer() {
            Some(_) => ToolOutcome::Done(ToolOutput::from(arguments["path"].to_string())),
            None => {
                ToolOutcome::needs_input(InputRequest::new("Sure?", json!({"type": "boolean"})))
            }
        }
    });
    let of_path = |name| {
        let schema = json!({"properties": {"path": {"type": "string"}}});
        define(name).approval(Approval::Always).input_schema(schema)
    };
    let pick = of_path("pick").build().expect("valid");
    let tools = [entry(of_path("ask"), asks), ToolEntry::client(pick, source())];
    let executor = Executor::builder(registry(tools)).suspensions(Host::new().store).build();
    let turn = as_ada(&executor);
    let answers =
        [("ask", Resolution::Answer(json!(true))), ("pick", Resolution::Output("picked".into()))];
    for (tool, answer) in answers {
        let waiting = suspended(&turn, tool).await;
        let changed = Decision::approve_changed(r#"{"path": "b"}"#);
        let next = turn.resolve(waiting.id(), changed.into()).await.expect("it is approved");
        let Answer::Suspended(next) = next else { panic!("{tool} waits again") };
        // As after a restart.
        let stored = serde_json::to_string(&next).expect("it is data");
        assert_eq!(serde_json::from_str::<Suspension>(&stored).expect("it is whole"), *next);
        let result = done(turn.resolve(next.id(), answer).await.expect("it is answered"));
        let output = result.output().expect("it succeeds");
        assert_eq!(output.meta()[CHANGED_ARGUMENTS], json!({"path": "b"}), "{tool}");
    }
}

#[tokio::test]
async fn work_that_goes_on_elsewhere_is_answered_when_it_is_done() {
    let host = Host::new();
    let suspension = suspended(&host.turn(), "delegate").await;
    let Waiting::Pending { ticket } = suspension.waiting() else { panic!("{suspension:?}") };
    assert_eq!(ticket, "job 7");
    let output = Resolution::Output("all done".into());
    let result = done(host.turn().resolve(suspension.id(), output).await.expect("resolved"));
    assert_eq!(result.text(), "all done");
}

#[tokio::test]
async fn a_plain_call_that_waits_says_so_and_is_kept() {
    let host = Host::new();
    let turn = host.turn();
    let result = turn.call(ToolCall::new("call_1", "remove", "{}")).await;
    assert_eq!(result.error_kind(), Some(ErrorKind::RequiresApproval));
    let identity = suspended(&turn, "remove").await.identity().to_owned();
    assert_eq!(host.store.list(&identity).await.expect("a list").len(), 2);
}

#[tokio::test]
async fn the_other_calls_of_a_batch_are_answered_while_one_waits() {
    let host = Host::new();
    let turn = host.turn();
    let calls = ["remove", "nobody", "pick", "greet"];
    let calls = calls.iter().map(|&name| ToolCall::new(name, name, "{}")).collect();
    let answers = turn.start_batch(calls).await;
    let waiting: Vec<_> =
        answers.iter().map(|answer| matches!(answer, Answer::Suspended(_))).collect();
    assert_eq!(waiting, [true, false, true, true]);
}

#[tokio::test]
async fn a_call_whose_tool_has_changed_meanwhile_is_denied() {
    let host = Host::new();
    let suspension = suspended(&host.turn(), "remove").await;
    let changed = entry(
        define("remove").description("Remove everything.").approval(Approval::Always),
        tool_fn(|_: Value, _| async { "removed all" }),
    );
    let executor = Executor::builder(registry([changed]))
        .suspensions(host.store.clone())
        .clock(host.clock.clone())
        .build();
    let values = ContextValues::new().with("user", "ada");
    let turn = executor.turn(TurnOptions::default().values(values).may_approve(true));
    let denied = turn.resolve(suspension.id(), Decision::approve().into()).await;
    let denied = done(denied.expect("it is resolved"));
    assert_eq!(denied.error_kind(), Some(ErrorKind::Denied));
    assert!(denied.text().contains("changed since the call was made"), "{}", denied.text());
}

#[derive(Default)]
struct Kept(Mutex<Vec<AuditRecord>>);

impl AuditSink for Kept {
    fn record(&self, record: &AuditRecord) {
        self.0.lock().expect("nobody panicked").push(record.clone());
    }
}

#[tokio::test]
async fn a_cancelled_waiting_call_leaves_an_audit_record_that_names_who_cancelled_it() {
    let changed = entry(define("remove").version("2"), tool_fn(|_: Value, _| async { "never" }));
    // The tool is as it was, was changed, or was removed while the call waited.
    for meanwhile in [None, Some(vec![changed]), Some(Vec::new())] {
        let (host, kept) = (Host::new(), Arc::new(Kept::default()));
        let suspension = suspended(&host.turn(), "remove").await;
        let builder = match meanwhile {
            None => host.executor(),
            Some(tools) => Executor::builder(registry(tools)).suspensions(host.store.clone()),
        };
        let executor = builder.audit(AuditTrail::new(kept.clone())).build();
        let values = ContextValues::new().with("user", "ada");
        let turn = executor.turn(TurnOptions::default().values(values).client("desk"));
        let result =
            done(turn.resolve(suspension.id(), Resolution::Cancel).await.expect("it waits"));
        assert_eq!(result.error_kind(), Some(ErrorKind::Cancelled), "{}", result.text());
        assert_eq!(host.runs.load(Ordering::SeqCst), 0);
        let records = kept.0.lock().expect("nobody panicked");
        let [record] = records.as_slice() else { panic!("one record: {records:?}") };
        assert_eq!(record.outcome, AuditOutcome::Failure(ErrorKind::Cancelled));
        assert_eq!(record.call_id, "call_1");
        let decision = serde_json::to_value(&record.decision).expect("it is JSON");
        assert_eq!((&decision["verdict"], &decision["by"]), (&json!("cancelled"), &json!("desk")));
        assert!(decision["shown"].is_string(), "{decision}");
    }
}

#[tokio::test]
async fn a_denied_call_counts_as_denied_and_a_cancelled_one_as_refused() {
    let (host, kept) = (Host::new(), Arc::new(Kept::default()));
    let executor = host.executor().audit(AuditTrail::new(kept.clone())).build();
    let turn = as_ada(&executor);
    for resolution in [Decision::deny("not today").into(), Resolution::Cancel] {
        let suspension = suspended(&turn, "remove").await;
        assert!(turn.resolve(suspension.id(), resolution).await.is_ok());
    }
    let counted = executor.statistics().snapshot();
    let counted = counted.iter().find(|one| one.tool == "remove").expect("it is counted");
    assert_eq!((counted.denied, counted.refused, counted.failures), (1, 1, 0));
    let records = kept.0.lock().expect("nobody panicked");
    let decisions: Vec<_> = records.iter().map(|record| &record.decision).collect();
    assert!(matches!(decisions[1], AuditDecision::Denied { .. }), "{decisions:?}");
    assert!(matches!(decisions[3], AuditDecision::Cancelled { .. }), "{decisions:?}");
    assert_eq!(records[3].outcome, AuditOutcome::Failure(ErrorKind::Cancelled));
}

#[tokio::test]
async fn an_answer_to_a_question_is_not_recorded_as_an_approval() {
    let (host, kept) = (Host::new(), Arc::new(Kept::default()));
    let executor = host.executor().audit(AuditTrail::new(kept.clone())).build();
    let turn = as_ada(&executor);
    let suspension = suspended(&turn, "greet").await;
    let answer = Resolution::Answer(serde_json::json!({"name": "Ada"}));
    assert!(turn.resolve(suspension.id(), answer).await.is_ok());
    let records = kept.0.lock().expect("nobody panicked");
    let last = &records.last().expect("it is recorded").decision;
    assert!(!matches!(last, AuditDecision::Approved { .. }), "{last:?}");
}

#[tokio::test]
async fn registry_suspension_and_audit_log_know_a_definition_by_one_fingerprint() {
    let (host, kept) = (Host::new(), Arc::new(Kept::default()));
    let executor = host.executor().audit(AuditTrail::new(kept.clone())).build();
    let suspension = suspended(&as_ada(&executor), "remove").await;
    let known = executor.registry().snapshot().fingerprint("remove").expect("it is there");
    assert_eq!(suspension.definition_hash(), known);
    let records = kept.0.lock().expect("nobody panicked");
    assert_eq!(records[0].definition.as_deref(), Some(&*known.to_string()));
}

#[tokio::test]
async fn a_turn_without_the_right_to_approve_cannot_approve_its_own_call() {
    let host = Host::new();
    let values = ContextValues::new().with("user", "ada");
    let caller = host.executor().build().turn(TurnOptions::default().values(values));
    let suspension = suspended(&caller, "remove").await;
    for approval in [Decision::approve(), Decision::approve_changed("{}")] {
        let refused = caller.resolve(suspension.id(), approval.into()).await;
        assert!(matches!(refused, Err(RedeemError::NotAllowed)), "{refused:?}");
    }
    assert_eq!(host.runs.load(Ordering::SeqCst), 0);
    assert!(caller.suspended(suspension.id()).await.expect("it works").is_some());
}

#[tokio::test]
async fn no_approver_is_called_in_a_turn_without_the_right_to_approve() {
    let host = Host::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let approver = Arc::new(move |_: &ApprovalRequest| {
        count.fetch_add(1, Ordering::SeqCst);
        Decision::approve()
    });
    let executor = host.executor().approver(approver.clone()).build();
    for options in [
        TurnOptions::default().may_approve(false),
        TurnOptions::default().may_approve(false).approver(approver),
    ] {
        let turn = executor.turn(options);
        assert!(!turn.may_approve());
        suspended(&turn, "remove").await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    // Values that the host's own code sets count as the host's.
    assert!(executor.turn(TurnOptions::default()).may_approve());
}
