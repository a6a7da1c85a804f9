//! Several parties resolve one call at the same moment: one succeeds, and the others learn who it was.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Barrier;
use toolcrib_core::approval::{Approvals, DecideError, Decision};
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{Run, RunError, RunState};
use toolcrib_core::suspension::{
    Answer, MemorySuspensions, RedeemError, Resolution, ResolutionKind, Suspension,
    SuspensionStore, Waiting, redeem,
};
use toolcrib_core::{Executor, Registration, Registry, RegistryBuilder, Turn, TurnOptions};
use toolcrib_store::{Database, Suspensions};
use toolcrib_tool::{
    Approval, Arguments, CallId, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn,
};

/// How often each race is run.
const RACES: usize = 40;

const EXPIRES: u64 = 1_000;

/// The stores of two servers over the same calls, with what keeps them alive.
type Pair = [Arc<dyn SuspensionStore>; 2];

fn in_memory() -> Pair {
    let store: Arc<dyn SuspensionStore> = Arc::new(MemorySuspensions::new());
    [Arc::clone(&store), store]
}

fn on_disk(home: &Path) -> Pair {
    let open = || -> Arc<dyn SuspensionStore> {
        let database = Database::open(home).expect("several may share it");
        Arc::new(Suspensions::new(&database))
    };
    [open(), open()]
}

fn asks() -> Suspension {
    let definition = ToolDefinition::builder("t").description("A tool.").build();
    let source = Source::new(Layer::Host, "test");
    let entry = ToolEntry::client(definition.expect("it is right"), source);
    let arguments = Arguments::from_validated("{}".to_owned());
    let waiting = Waiting::Approval { reason: "why".into(), rule: "rule".into() };
    let (call, at) = (CallId::new("1"), Timestamp::from_unix_millis);
    Suspension::new(&call, &entry, &arguments, waiting, at(1), at(EXPIRES))
        .expect("there is randomness")
        .for_identity("ada")
}

/// Every way to resolve a call that waits for approval, with the time of the attempt.
fn deeds() -> [(ResolutionKind, Resolution, u64); 5] {
    [
        (ResolutionKind::Approved, Decision::approve().into(), 10),
        (ResolutionKind::Denied, Decision::deny("no").into(), 11),
        (ResolutionKind::Cancelled, Resolution::Cancel, 12),
        // This server's clock is ahead.
        (ResolutionKind::Expired, Resolution::Expire, EXPIRES),
        (ResolutionKind::Revoked, Resolution::Revoke { reason: "it was removed".into() }, 14),
    ]
}

async fn exactly_one_resolution_wins(stores: Pair) {
    for race in 0..RACES {
        let call = asks();
        stores[0].put(&call).await.expect("there is room");
        let start = Arc::new(Barrier::new(deeds().len()));
        let tries = deeds().into_iter().enumerate().map(|(n, (deed, resolution, at))| {
            let (store, start) = (Arc::clone(&stores[(n + race) % 2]), Arc::clone(&start));
            let id = call.id().clone();
            tokio::spawn(async move {
                start.wait().await;
                let now = Timestamp::from_unix_millis(at);
                (deed, redeem(&*store, &id, "ada", now, resolution, deed.as_str()).await)
            })
        });
        let tries: Vec<_> = tries.collect();
        let (mut held, mut told) = (Vec::new(), Vec::new());
        for one in tries {
            match one.await.expect("nobody panics") {
                (deed, Ok(_)) => held.push(deed),
                (_, Err(RedeemError::AlreadyResolved(first))) => told.push(first),
                (deed, Err(error)) => panic!("{deed:?} is not told who was first: {error}"),
            }
        }
        let [winner] = held.as_slice() else { panic!("one deed holds: {held:?}") };
        assert_eq!(told.len(), deeds().len() - 1);
        for first in told {
            assert_eq!((first.kind(), first.by()), (*winner, winner.as_str()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_one_of_concurrent_resolutions_wins_and_the_others_learn_which() {
    exactly_one_resolution_wins(in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_disk_one_of_concurrent_resolutions_wins_and_the_others_learn_which() {
    let home = tempfile::tempdir().expect("there is room");
    exactly_one_resolution_wins(on_disk(home.path())).await;
}

/// A server whose only tool needs approval and counts its runs.
fn server(store: &Arc<dyn SuspensionStore>, ran: &Arc<AtomicUsize>) -> Executor {
    let definition = ToolDefinition::builder("remove")
        .description("Remove.")
        .approval(Approval::Always)
        .build()
        .expect("it is right");
    let ran = Arc::clone(ran);
    let body = tool_fn(move |_: Value, _| {
        let ran = Arc::clone(&ran);
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(2)).await;
            "removed"
        }
    });
    let tool = ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"));
    let mut registry = RegistryBuilder::new();
    assert_eq!(registry.register(tool), Registration::Registered);
    Executor::builder(Registry::new(registry.build())).suspensions(Arc::clone(store)).build()
}

fn approvals(server: &Executor) -> Approvals {
    let boss = server.turn(TurnOptions::default().client("boss").may_approve(true));
    boss.approvals().expect("it has the right")
}

/// The host makes the calls itself; every server knows its rights.
fn agent(server: &Executor) -> Turn {
    server.turn(TurnOptions::default())
}

/// One party approves at one server, a second cancels the run, and a third denies at the other server.
async fn a_cancelled_call_never_runs(stores: Pair) {
    let ran = Arc::new(AtomicUsize::new(0));
    let servers = [server(&stores[0], &ran), server(&stores[1], &ran)];
    let (mut approved, mut cancelled) = (0, 0);
    for race in 0..RACES {
        let before = ran.load(Ordering::SeqCst);
        let (one, other) = (&servers[race % 2], &servers[(race + 1) % 2]);
        let call = ToolCall::new("1", "remove", "{}");
        let run = Run::start(&agent(other), vec![call]).await.expect("there is randomness");
        let mut run = Run::from_record(run.record().clone());
        let id = run.outstanding().next().expect("it waits").id().clone();
        let start = Arc::new(Barrier::new(3));
        let decides = |server: &Executor, decision: Decision| {
            let (approvals, id, start) = (approvals(server), id.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                approvals.decide(&id, decision).await
            })
        };
        let approving = decides(one, Decision::approve());
        let denying = decides(other, Decision::deny("no"));
        start.wait().await;
        let cancel = run.cancel(&agent(other)).await;
        let (approve, deny) =
            (approving.await.expect("no panic"), denying.await.expect("no panic"));
        let lost = |error: &DecideError| {
            matches!(error, DecideError::Redeem(RedeemError::AlreadyResolved(_)))
        };
        assert!(approve.as_ref().err().is_none_or(lost), "{approve:?}");
        assert!(deny.as_ref().err().is_none_or(lost), "{deny:?}");
        let told =
            |error: &RunError| matches!(error, RunError::Redeem(RedeemError::AlreadyResolved(_)));
        assert!(cancel.as_ref().err().is_none_or(told), "{cancel:?}");
        let held = [approve.is_ok(), deny.is_ok(), cancel.is_ok()];
        assert_eq!(held.iter().filter(|held| **held).count(), 1, "{held:?}");
        assert_eq!(cancel.is_ok(), run.state() == RunState::Cancelled, "{:?}", run.record());
        let runs = if let Ok(decided) = approve {
            decided.outcome(Duration::from_secs(20)).await.expect("it ends");
            1
        } else {
            tokio::time::sleep(Duration::from_millis(4)).await;
            0
        };
        assert_eq!(ran.load(Ordering::SeqCst), before + runs, "it ran as often as it was approved");
        approved += runs;
        cancelled += usize::from(cancel.is_ok());
    }
    assert!(approved + cancelled <= RACES);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_one_of_approval_denial_and_cancellation_wins() {
    a_cancelled_call_never_runs(in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_two_servers_one_of_approval_denial_and_cancellation_wins() {
    let home = tempfile::tempdir().expect("there is room");
    a_cancelled_call_never_runs(on_disk(home.path())).await;
}

#[tokio::test]
async fn a_waiting_caller_always_sees_that_its_decided_call_is_running() {
    let home = tempfile::tempdir().expect("there is room");
    let [one, other] = on_disk(home.path());
    let ran = Arc::new(AtomicUsize::new(0));
    let server = server(&one, &ran);
    for _ in 0..RACES {
        let call = ToolCall::new("1", "remove", "{}");
        let Answer::Suspended(waiting) = agent(&server).start(call).await else {
            panic!("it waits")
        };
        let decided = approvals(&server).decide(waiting.id(), Decision::approve()).await;
        let seen = other.settled(waiting.id()).await.expect("it works");
        assert!(seen.is_some(), "a decision that holds is seen by every server at once");
        decided.expect("it holds").outcome(Duration::from_secs(20)).await.expect("it ends");
    }
}
