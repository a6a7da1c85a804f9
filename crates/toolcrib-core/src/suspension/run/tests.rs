//! How runs come to their answers, against a turn whose tools do what their names say.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::json;
use toolcrib_tool::{
    Arguments, CallId, ErrorKind, Layer, Source, ToolCall, ToolDefinition, ToolEntry, ToolError,
    ToolOutput, ToolResult,
};

use super::*;
use crate::approval::Decision;
use crate::call::nested::ResumePermit;
use crate::suspension::run::turn_access::Sealed;
use crate::suspension::{
    Grant, Granted, MemorySuspensions, ResolutionKind, SuspensionStore, Waiting,
};

/// `echo` answers, `client` waits for the client, `ask` for approval, `ask_client` for both in turn;
/// `hang` waits for approval and never ends.
#[derive(Default)]
struct Fake {
    suspended: MemorySuspensions,
    now: AtomicU64,
    identity: String,
    /// How often each call ran or was answered.
    answered: Mutex<HashMap<String, usize>>,
}

const LIFE: u64 = 10_000;

impl Fake {
    fn of(identity: &str) -> Self {
        Self { identity: identity.to_owned(), ..Self::default() }
    }

    fn pass(&self, millis: u64) {
        self.now.fetch_add(millis, Ordering::Relaxed);
    }

    fn done(&self, call: &ToolCall, outcome: Result<ToolOutput, ToolError>) -> Answer {
        let id = call.id().clone();
        *self.answered.lock().unwrap().entry(id.as_str().to_owned()).or_default() += 1;
        let zero = std::time::Duration::ZERO;
        Answer::Done(match outcome {
            Ok(output) => ToolResult::success(id, call.name(), output, zero),
            Err(error) => ToolResult::failure(id, call.name(), error, zero),
        })
    }

    async fn suspend(&self, call: &ToolCall, waiting: Waiting) -> Answer {
        let definition = ToolDefinition::builder(call.name()).description("A tool.").build();
        let entry = ToolEntry::client(definition.unwrap(), Source::new(Layer::Host, "test"));
        let arguments = Arguments::from_validated(call.arguments().as_str().to_owned());
        let (now, end) = (self.now(), Timestamp::from_unix_millis(LIFE));
        let suspension = Suspension::new(call.id(), &entry, &arguments, waiting, now, end)
            .unwrap()
            .for_identity(self.identity.as_str());
        self.suspended.put(&suspension).await.unwrap();
        Answer::Suspended(Box::new(suspension))
    }
}

impl Sealed for Fake {}

impl TurnAccess for Fake {
    async fn start_batch(&self, calls: Vec<ToolCall>) -> Vec<Answer> {
        let mut answers = Vec::new();
        for call in calls {
            let approval = Waiting::Approval { reason: "why".into(), rule: "rule".into() };
            answers.push(match call.name() {
                "client" => self.suspend(&call, Waiting::Client).await,
                "ask" | "ask_client" | "hang" => self.suspend(&call, approval).await,
                _ => self.done(&call, Ok("echo".into())),
            });
        }
        answers
    }

    async fn resume(&self, grant: Grant, _: ResumePermit) -> Answer {
        let call = grant.call();
        if let Some(error) = grant.refusal() {
            tokio::task::yield_now().await;
            return self.done(&call, Err(error));
        }
        match grant.into_granted() {
            Granted::Output(output) => self.done(&call, Ok(output)),
            _ if call.name() == "hang" => std::future::pending().await,
            _ if call.name() == "ask_client" => self.suspend(&call, Waiting::Client).await,
            _ => self.done(&call, Ok("approved".into())),
        }
    }

    fn accept(&self, _: &Suspension, output: ToolOutput) -> Result<ToolOutput, ToolError> {
        if output.text() == "odd" { Err(ToolError::execution("it is odd")) } else { Ok(output) }
    }

    fn store(&self) -> Option<&dyn SuspensionStore> {
        Some(&self.suspended)
    }

    fn may_approve(&self) -> bool {
        true
    }

    fn name(&self) -> &'static str {
        "fake"
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now.load(Ordering::Relaxed))
    }
}

fn calls(names: &[&str]) -> Vec<ToolCall> {
    let call = |(position, name): (usize, &&str)| ToolCall::new(format!("{position}"), *name, "{}");
    names.iter().enumerate().map(call).collect()
}

async fn started(turn: &Fake, names: &[&str]) -> Run {
    Run::start(turn, calls(names)).await.expect("there is randomness")
}

/// The run in another process.
fn carried(run: &Run) -> Run {
    let text = serde_json::to_string(run.record()).expect("it is plain data");
    Run::from_record(serde_json::from_str(&text).expect("what was written is read"))
}

fn texts(run: &Run) -> Vec<String> {
    run.results().expect("it is over").iter().map(|result| result.text().into_owned()).collect()
}

fn waiting_for(run: &Run, call: &str) -> SuspensionId {
    let one = run.outstanding().find(|one| one.call_id() == call).expect("it waits");
    one.id().clone()
}

#[tokio::test]
async fn a_run_goes_on_in_another_process_until_every_call_is_answered_in_order() {
    let turn = Fake::of("ada");
    let run = started(&turn, &["client", "echo", "ask", "client"]).await;
    assert_eq!(run.state(), RunState::RequiresAction);
    assert!(run.results().is_none());

    let mut run = carried(&run);
    let outputs = vec![Submission::new("3", "three"), Submission::new("0", "null")];
    run.submit(&turn, outputs).await.expect("all are there");
    assert_eq!(run.state(), RunState::RequiresAction);

    let mut run = carried(&run);
    let id = waiting_for(&run, "2");
    run.resolve(&turn, &id, Decision::approve().into()).await.expect("it waits");
    assert_eq!(run.state(), RunState::Completed);
    assert_eq!(texts(&carried(&run)), ["null", "echo", "approved", "three"]);
}

#[tokio::test]
async fn what_requires_action_is_listed_by_what_it_waits_for() {
    let turn = Fake::of("");
    let run = started(&turn, &["client", "ask"]).await;
    let shown = run.to_value();
    assert_eq!(shown["status"], "requires_action");
    assert_eq!(
        shown["required_action"],
        json!({
            "type": "submit_tool_outputs",
            "submit_tool_outputs": {"tool_calls": [
                {"id": "0", "type": "function", "function": {"name": "client", "arguments": "{}"}},
            ]},
        })
    );
    assert_eq!(shown["waiting"][0]["id"], waiting_for(&run, "1").as_str());
    assert_eq!(shown["waiting"][0]["type"], "approval");

    let plain = started(&turn, &["echo"]).await;
    assert_eq!(plain.to_value(), json!({"id": plain.id().as_str(), "status": "completed"}));
}

#[tokio::test]
async fn an_approved_client_call_then_waits_for_its_client() {
    let turn = Fake::of("");
    let mut run = started(&turn, &["ask_client"]).await;
    assert!(run.submit(&turn, vec![]).await.is_ok(), "nothing waits for the client yet");
    let id = waiting_for(&run, "0");
    run.resolve(&turn, &id, Decision::approve().into()).await.expect("it waits");
    assert_eq!(run.state(), RunState::RequiresAction);
    run.submit(&turn, vec![Submission::new("0", "at last")]).await.expect("now it does");
    assert_eq!(texts(&run), ["at last"]);
}

#[tokio::test]
async fn refused_submissions_change_nothing() {
    let turn = Fake::of("");
    let mut run = started(&turn, &["client", "client", "echo"]).await;
    let before = run.record().clone();
    for (outputs, message) in [
        (vec![("0", "x")], "missing: 1"),
        (vec![("0", "x"), ("1", "x"), ("9", "x")], "no call of the id 9 waits"),
        (vec![("0", "x"), ("1", "odd")], "the output of the call 1 is not right: it is odd"),
    ] {
        let outputs = outputs.into_iter().map(|(id, text)| Submission::new(id, text)).collect();
        let error = run.submit(&turn, outputs).await.expect_err("it is wrong");
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(run.record(), &before);
    }
    let outputs = ["0", "1", "2"].map(|id| Submission::new(id, "x")).to_vec();
    run.submit(&turn, outputs).await.expect("what is answered is skipped");
    assert_eq!(texts(&run), ["x", "x", "echo"]);
}

#[tokio::test]
async fn nobody_else_gets_at_a_run() {
    let turn = Fake::of("ada");
    let mut run = started(&turn, &["client", "ask"]).await;
    let eve = Fake { identity: "eve".to_owned(), suspended: turn.suspended, ..Fake::default() };
    let id = waiting_for(&run, "1");
    assert!(run.submit(&eve, vec![Submission::new("0", "x")]).await.is_err());
    assert!(run.resolve(&eve, &id, Decision::approve().into()).await.is_err());
    assert!(run.cancel(&eve).await.is_err());
    assert_eq!(run.outstanding().count(), 2);
}

#[tokio::test]
async fn a_cancelled_run_answers_what_waited() {
    let turn = Fake::of("");
    let mut run = started(&turn, &["client", "echo", "ask"]).await;
    run.cancel(&turn).await.expect("it can be");
    assert_eq!(run.state(), RunState::Cancelled);
    let results = run.results().expect("it is over");
    let kinds: Vec<_> = results.iter().map(ToolResult::error_kind).collect();
    assert_eq!(kinds, [Some(ErrorKind::Cancelled), None, Some(ErrorKind::Cancelled)]);

    assert!(!run.cancel(&turn).await.expect("it is over"), "there is nothing left to cancel");
    let mut over = started(&turn, &["echo"]).await;
    assert!(!over.cancel(&turn).await.expect("nothing waits"));
    assert_eq!(over.state(), RunState::Completed);
}

#[tokio::test]
async fn of_two_cancellations_of_one_run_one_succeeds_and_the_other_changes_nothing() {
    let turn = Fake::of("");
    let mut one = started(&turn, &["ask", "ask", "client"]).await;
    let mut other = carried(&one);
    // The second begins while the first is between two calls.
    let (first, second) = futures_util::future::join(one.cancel(&turn), other.cancel(&turn)).await;
    assert!(first.expect("it was first"));
    assert_eq!(one.state(), RunState::Cancelled);
    let Err(RunError::Redeem(RedeemError::AlreadyResolved(told))) = second else {
        panic!("{second:?}")
    };
    assert_eq!((told.kind(), told.by()), (ResolutionKind::Cancelled, "fake"));
    assert_eq!(other.outstanding().count(), 3, "it left all calls to the first");
    assert!(turn.answered.lock().unwrap().values().all(|times| *times == 1));
}

#[tokio::test]
async fn the_last_resolution_of_a_run_that_is_over_is_found_by_its_owner_only() {
    let turn = Fake::of("ada");
    let store = MemoryRuns::new();
    let mut run = started(&turn, &["ask", "ask"]).await;
    run.save(&store).await.expect("it is new");
    let (first, second) = (waiting_for(&run, "0"), waiting_for(&run, "1"));
    run.resolve(&turn, &second, Decision::deny("no").into()).await.expect("it waits");
    turn.pass(5);
    run.resolve(&turn, &first, Decision::approve().into()).await.expect("it waits");
    run.save(&store).await.expect("nobody else has changed it");
    let last = run.last_resolution(&turn, &store).await.expect("it can be read");
    assert_eq!(last.map(|last| last.kind()), Some(ResolutionKind::Approved));
    let eve = Fake { identity: "eve".to_owned(), suspended: turn.suspended, ..Fake::default() };
    assert!(run.last_resolution(&eve, &store).await.is_err());
}

#[tokio::test]
async fn calls_expire_at_their_time_and_not_before() {
    let turn = Fake::of("");
    let mut run = started(&turn, &["client", "ask"]).await;
    let next = run.expire(&turn).await.expect("nothing has expired");
    assert_eq!(next, Some(Timestamp::from_unix_millis(LIFE)));
    turn.pass(LIFE);
    let late = run.submit(&turn, vec![Submission::new("0", "late")]).await;
    assert!(matches!(late, Err(RunError::Redeem(RedeemError::Expired))));
    assert_eq!(run.expire(&turn).await.expect("both have"), None);
    assert_eq!(run.state(), RunState::Expired);
    let kinds: Vec<_> = run.results().unwrap().iter().map(ToolResult::error_kind).collect();
    assert_eq!(kinds, [Some(ErrorKind::Timeout), Some(ErrorKind::Denied)]);
}

#[tokio::test]
async fn a_call_whose_taker_gave_up_is_answered_and_not_run_again() {
    let turn = Fake::of("");
    let mut run = started(&turn, &["hang"]).await;
    let id = waiting_for(&run, "0");
    let resolving = run.resolve(&turn, &id, Decision::approve().into());
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), resolving).await;
    assert!(given_up.is_err(), "it never ends");

    run.cancel(&turn).await.expect("nobody else works on it");
    assert_eq!(run.results().unwrap()[0].error_kind(), Some(ErrorKind::OutcomeUnknown));
    assert!(turn.answered.lock().unwrap().is_empty());
}

#[tokio::test]
async fn whoever_cancels_what_another_process_has_approved_is_told_so() {
    let turn = Fake::of("");
    let mut one = started(&turn, &["hang", "client"]).await;
    let mut other = carried(&one);
    let id = waiting_for(&one, "0");
    let mut resolving = Box::pin(one.resolve(&turn, &id, Decision::approve().into()));
    assert!((&mut resolving).now_or_never().is_none(), "it is at work");

    let refused = other.cancel(&turn).await;
    let Err(RunError::PartlyCancelled(first)) = &refused else { panic!("{refused:?}") };
    assert_eq!((first.kind(), first.by()), (ResolutionKind::Approved, "fake"));
    let told = refused.expect_err("a call goes on").to_string();
    assert!(told.ends_with("; the other waiting calls of the run were cancelled"), "{told}");
    assert_eq!(other.state(), RunState::RequiresAction, "the call goes on");
    let kinds: Vec<_> = other.answered().map(|result| result.error_kind()).collect();
    assert_eq!(kinds, [Some(ErrorKind::Cancelled)], "the other call is cancelled");
    turn.pass(LIFE);
    other.expire(&turn).await.expect("the other process answers it");
    assert_eq!(other.state(), RunState::RequiresAction);
}

#[tokio::test]
async fn two_processes_bring_together_what_each_has_done() {
    let turn = Fake::of("");
    let store = MemoryRuns::new();
    let mut one = started(&turn, &["ask", "ask", "echo"]).await;
    one.save(&store).await.expect("it is new");
    let kept = store.load(one.id()).await.expect("it works").expect("it is there");
    let mut other = Run::from_record(kept);

    let (first, second) = (waiting_for(&one, "0"), waiting_for(&one, "1"));
    one.resolve(&turn, &first, Decision::approve().into()).await.expect("it waits");
    other.resolve(&turn, &second, Decision::deny("no").into()).await.expect("it waits");
    let twice = other.resolve(&turn, &first, Decision::approve().into()).await;
    assert!(twice.is_err(), "the first process has resolved it");

    one.save(&store).await.expect("it saw the last version");
    other.save(&store).await.expect("it takes over what the first did");
    assert_eq!(other.state(), RunState::Completed);
    let kept = store.load(one.id()).await.expect("it works").expect("it is there");
    let texts = texts(&Run::from_record(kept));
    assert_eq!(texts[0], "approved");
    assert!(texts[1].contains("no"), "{}", texts[1]);
}

#[derive(Debug, Clone)]
enum RunStep {
    Submit(Vec<usize>),
    Approve(usize),
    Deny(usize),
    Pass(u64),
    Expire,
    Cancel,
}

fn step() -> impl Strategy<Value = RunStep> {
    prop_oneof![
        prop::collection::vec(0..5_usize, 0..5).prop_map(RunStep::Submit),
        (0..5_usize).prop_map(RunStep::Approve),
        (0..5_usize).prop_map(RunStep::Deny),
        (0..6_000_u64).prop_map(RunStep::Pass),
        Just(RunStep::Expire),
        Just(RunStep::Cancel),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_every_call_gets_one_answer(
        names in prop::collection::vec(
            prop_oneof![Just("echo"), Just("client"), Just("ask"), Just("ask_client")], 1..5),
        steps in prop::collection::vec(step(), 0..10),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let turn = Fake::of("ada");
            let mut run = started(&turn, &names).await;
            for step in steps {
                run = carried(&run);
                let of = |n: usize| {
                    let id = n.to_string();
                    run.outstanding().find(|one| one.call_id() == id).map(|one| one.id().clone())
                };
                // What is refused changes nothing: that is held by the end.
                match step {
                    RunStep::Submit(ids) => {
                        let outputs =
                            ids.iter().map(|n| Submission::new(n.to_string(), "out")).collect();
                        let _ = run.submit(&turn, outputs).await;
                    }
                    RunStep::Approve(n) => if let Some(id) = of(n) {
                        let _ = run.resolve(&turn, &id, Decision::approve().into()).await;
                    },
                    RunStep::Deny(n) => if let Some(id) = of(n) {
                        let _ = run.resolve(&turn, &id, Decision::deny("no").into()).await;
                    },
                    RunStep::Pass(millis) => turn.pass(millis),
                    RunStep::Expire => { run.expire(&turn).await.unwrap(); }
                    RunStep::Cancel => { run.cancel(&turn).await.unwrap(); }
                }
            }
            run.cancel(&turn).await.unwrap();
            let results = run.results().unwrap();
            let ids: Vec<_> = results.iter().map(|result| result.call_id().clone()).collect();
            let expected: Vec<_> = (0..names.len()).map(|n| CallId::new(n.to_string())).collect();
            prop_assert_eq!(ids, expected);
            prop_assert!(turn.answered.lock().unwrap().values().all(|times| *times == 1));
            prop_assert_eq!(turn.suspended.list("ada").await.unwrap().len(), 0);
            Ok(())
        })?;
    }
}
