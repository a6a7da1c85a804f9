//! One suite for all implementations of a store.

use std::collections::HashSet;
use std::sync::Arc;

use toolcrib_core::Answer;
use toolcrib_core::bounds::Bounds;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{MemoryRuns, RunCursor, RunStore};
use toolcrib_core::suspension::{
    MemorySuspensions, Outcome, ResolutionKind, Resolved, Settled, StoreError, Suspension,
    SuspensionId, SuspensionStore,
};
use toolcrib_store::{Database, Runs, Suspensions};
use toolcrib_tool::{CallId, ToolOutput, ToolResult};

use crate::fixture::{is_kept, on_disk, resolved, run, suspended, waiting_run};

/// How many entries one identity may have.
const SHARE: usize = 100;

fn unknown_id() -> SuspensionId {
    SuspensionId::random().expect("there is randomness")
}

async fn suspensions_are_put_found_listed_and_taken_once(store: Arc<dyn SuspensionStore>) {
    let (late, early) = (suspended("ada", 2, 100), suspended("ada", 1, 100));
    let other = suspended("bob", 1, 100);
    for one in [&late, &early, &other] {
        store.put(one).await.expect("there is room");
    }
    assert_eq!(store.find(late.id()).await.expect("found"), Some(late.clone()));
    assert_eq!(store.find(&unknown_id()).await.expect("looked"), None);
    let ids = |all: Vec<toolcrib_core::suspension::Suspension>| {
        all.iter().map(|one| one.id().clone()).collect::<Vec<_>>()
    };
    let hers = ids(store.list("ada").await.expect("listed"));
    assert_eq!(hers, [early.id().clone(), late.id().clone()], "the oldest first, and only hers");
    assert!(store.list("").await.expect("listed").is_empty());
    assert_eq!(store.all().await.expect("listed").len(), 3);

    for _ in 0..20 {
        let contested = suspended("ada", 3, 100);
        store.put(&contested).await.expect("there is room");
        let takers: Vec<_> = (0..8)
            .map(|n| {
                let (store, id) = (Arc::clone(&store), contested.id().clone());
                let by = resolved(&contested, &n.to_string(), 4);
                tokio::spawn(async move {
                    let taken = if n % 2 == 0 {
                        store.take(&id, &by).await
                    } else {
                        store.take_for_caller(&id, &by).await
                    };
                    taken.expect("it works").map(|call| (call, by))
                })
            })
            .collect();
        let mut taken = Vec::new();
        for taker in takers {
            taken.extend(taker.await.expect("nobody panics"));
        }
        let [(call, by)] = taken.as_slice() else { panic!("one of all takers has it: {taken:?}") };
        assert_eq!(call, &contested);
        let kept = store.resolved(contested.id()).await.expect("it works");
        assert_eq!(kept.as_ref(), Some(by), "the others learn who was first");
        let settled = store.settled(contested.id()).await.expect("it works");
        let for_caller = by.by().parse::<u8>().expect("it is a number") % 2 == 1;
        assert_eq!(settled.is_some(), for_caller, "one step takes it and says that it runs");
    }
    let nobody = resolved(&late, "nobody", 5);
    assert_eq!(store.take(&unknown_id(), &nobody).await.expect("looked"), None);
    assert_eq!(store.take_for_caller(&unknown_id(), &nobody).await.expect("looked"), None);
    assert_eq!(store.resolved(late.id()).await.expect("looked"), None, "it still waits");
}

async fn outcomes_are_kept_for_their_identity_and_taken_once(store: Arc<dyn SuspensionStore>) {
    let call = suspended("ada", 1, 100);
    store.put(&call).await.expect("there is room");
    let taken = store.take(call.id(), &resolved(&call, "bob", 50)).await;
    let taken = taken.expect("it works").expect("it waits");
    let running = Settled::running(taken, Timestamp::from_unix_millis(50));
    store.settle(&running).await.expect("kept");
    let found = store.settled(call.id()).await.expect("found").expect("it is known");
    assert_eq!(found.outcome(), &Outcome::Running);

    let result = ToolResult::success(
        CallId::new("1"),
        "t",
        ToolOutput::from("done"),
        std::time::Duration::ZERO,
    );
    store.settle(&running.ended(Answer::Done(result))).await.expect("kept");
    let listed = store.list_settled("ada").await.expect("listed");
    assert_eq!(listed.len(), 1);
    assert!(store.list_settled("bob").await.expect("listed").is_empty());
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let (store, id) = (Arc::clone(&store), call.id().clone());
            tokio::spawn(async move { store.take_settled(&id).await.expect("it works") })
        })
        .collect();
    let mut texts = Vec::new();
    for taker in takers {
        let settled = taker.await.expect("nobody panics");
        texts.extend(settled.and_then(|one| one.result()).map(|result| result.text().into_owned()));
    }
    assert_eq!(texts, ["done"]);
    assert!(store.settled(call.id()).await.expect("looked").is_none());
}

async fn a_full_share_drops_only_the_owners_expired_calls(store: Arc<dyn SuspensionStore>) {
    let bobs = suspended("bob", 0, 1);
    store.put(&bobs).await.expect("there is room");
    for n in 0..SHARE {
        let expires = if n == 0 { 10 } else { 1_000 };
        store.put(&suspended("ada", 0, expires)).await.expect("there is room");
    }
    let refused = store.put(&suspended("ada", 9, 1_000)).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    store.put(&suspended("ada", 10, 1_000)).await.expect("one has expired");
    store.put(&suspended("bob", 10, 1_000)).await.expect("his share is his");
    assert!(store.find(bobs.id()).await.expect("looked").is_some(), "hers made no room of his");
}

/// A call as clients make it that can join an equal call, in one of several sessions.
fn joinable(session: &str, created: u64, expires: u64) -> Suspension {
    let one = suspended("ada", created, expires).in_session(session);
    let mut value = serde_json::to_value(&one).expect("it is plain data");
    value["caller"]["joinable"] = true.into();
    serde_json::from_value(value).expect("it is a record")
}

async fn an_equal_call_is_found_by_its_key(store: Arc<dyn SuspensionStore>) {
    let at = Timestamp::from_unix_millis;
    let (first, second) = (joinable("s", 1, 100), joinable("s", 2, 100));
    let others =
        [joinable("t", 0, 100), joinable("s", 0, 5), suspended("ada", 0, 100).in_session("s")];
    for one in others.iter().chain([&first, &second]) {
        store.put(one).await.expect("there is room");
    }
    let again = joinable("s", 10, 100);
    let same = async |call: &Suspension, now| {
        let found = store.same_call(call, at(now)).await.expect("looked");
        found.map(|one| one.id().clone())
    };
    assert_eq!(
        same(&again, 10).await.as_ref(),
        Some(first.id()),
        "the oldest that has not expired"
    );
    assert_eq!(same(&first, 10).await.as_ref(), Some(second.id()), "another one than itself");
    assert_eq!(same(&joinable("u", 10, 100), 10).await, None);
    assert_eq!(same(&again, 100).await, None, "both have expired");

    // A call with an outcome is preferred to a waiting one, until its outcome is taken.
    let resolved = Resolved::new(&second, ResolutionKind::Approved, "ops", at(20));
    store.take_for_caller(second.id(), &resolved).await.expect("it works").expect("it waits");
    assert_eq!(same(&again, 20).await.as_ref(), Some(second.id()));
    store.take_settled(second.id()).await.expect("it works").expect("it is there");
    assert_eq!(same(&again, 20).await.as_ref(), Some(first.id()));
    store.take(first.id(), &resolved).await.expect("it works").expect("it waits");
    assert_eq!(same(&again, 20).await, None);
}

async fn runs_are_saved_by_version_and_listed_in_order(store: Arc<dyn RunStore>) {
    let (late, early, other) = (run("ada", 2), waiting_run("ada", 1), run("bob", 1));
    for (one, entries) in [(&late, 1), (&early, 2), (&other, 1)] {
        assert_eq!(store.save(one).await.expect("it is new"), entries);
    }
    let again = store.save(&late).await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
    let kept = late.clone().with_version(1);
    assert_eq!(store.load(late.id()).await.expect("loaded"), Some(kept.clone()));
    assert_eq!(store.save(&kept).await.expect("nothing of it is new"), 1);
    let hers = store.page("ada", None, 10).await.expect("listed");
    let ids: Vec<_> = hers.iter().map(|run| run.id().clone()).collect();
    assert_eq!(ids, [early.id().clone(), late.id().clone()]);
    let first = store.page("ada", None, 1).await.expect("listed");
    let behind = RunCursor::of(&first[0]);
    let second = store.page("ada", Some(&behind), 1).await.expect("listed");
    assert_eq!((first[0].id(), second[0].id()), (early.id(), late.id()));
    let behind = RunCursor::of(&second[0]);
    assert!(store.page("ada", Some(&behind), 1).await.expect("listed").is_empty());
    store.remove(late.id()).await.expect("removed");
    store.remove(late.id()).await.expect("it is gone already");
    assert_eq!(store.load(late.id()).await.expect("looked"), None);

    let contested = run("ada", 3);
    let savers: Vec<_> = (0..8)
        .map(|_| {
            let (store, run) = (Arc::clone(&store), contested.clone());
            tokio::spawn(async move { store.save(&run).await })
        })
        .collect();
    let mut saved = 0;
    for saver in savers {
        match saver.await.expect("nobody panics") {
            Ok(version) => saved += version,
            Err(error) => assert!(matches!(error, StoreError::Conflict), "{error}"),
        }
    }
    assert_eq!(saved, 1, "of several that save one version, one succeeds");
}

async fn a_full_share_of_runs_drops_the_oldest_finished_run(store: Arc<dyn RunStore>) {
    let (waits, over) = (waiting_run("ada", 0), run("ada", 1));
    let bobs = run("bob", 0);
    for one in [&waits, &over, &bobs] {
        store.save(one).await.expect("there is room");
    }
    for n in 2..SHARE {
        store.save(&waiting_run("ada", n as u64)).await.expect("there is room");
    }
    store.save(&waiting_run("ada", 5)).await.expect("one that is over makes room");
    let ids = [waits.id(), over.id(), bobs.id()];
    let mut kept = HashSet::new();
    for id in ids {
        if is_kept(store.load(id).await) {
            kept.insert(id);
        }
    }
    assert_eq!(kept, HashSet::from([waits.id(), bobs.id()]));
    let refused = store.save(&run("ada", 6)).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    store.save(&run("bob", 6)).await.expect("his share is his");
}

async fn a_new_client_gets_its_share_of_waiting_calls_when_others_are_full(
    store: Arc<dyn SuspensionStore>,
) {
    for client in 0..10 {
        for _ in 0..SHARE {
            let one = suspended(&format!("client {client}"), 0, 1_000_000);
            store.put(&one).await.expect("its share is its own");
        }
    }
    for n in 0..SHARE / 10 {
        let one = suspended("newcomer", n as u64, 1_000_000);
        store.put(&one).await.unwrap_or_else(|error| panic!("call {n}: {error}"));
    }
    let refused = store.put(&suspended("newcomer", 1, 1_000_000)).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "its reserve is all it has: {refused:?}");
    assert_eq!(store.list("client 0").await.expect("listed").len(), SHARE, "nobody lost any");
}

async fn outcomes_of_full_clients_do_not_push_out_others(store: Arc<dyn SuspensionStore>) {
    let outcome = |identity: &str, n: usize| {
        let at = Timestamp::from_unix_millis(n as u64);
        Settled::running(suspended(identity, 0, 1_000_000), at)
    };
    let (small, known) = (outcome("small", 0), suspended("small", 0, 1_000_000));
    store.settle(&small).await.expect("kept");
    store.put(&known).await.expect("there is room");
    store.take(known.id(), &resolved(&known, "ops", 0)).await.expect("it works");
    for client in 0..12 {
        let identity = format!("client {client}");
        for n in 1..=SHARE {
            store.settle(&outcome(&identity, n)).await.expect("an old one makes room");
            let call = suspended(&identity, 0, 1_000_000);
            store.put(&call).await.expect("there is room");
            store.take(call.id(), &resolved(&call, "ops", n as u64)).await.expect("it works");
        }
    }
    let found = store.settled(small.suspension().id()).await.expect("looked");
    assert!(found.is_some(), "the oldest of all, but the only one of its client");
    assert!(store.resolved(known.id()).await.expect("looked").is_some());
    assert!(store.list_settled("client 11").await.expect("listed").len() >= SHARE / 2);
}

async fn a_new_client_gets_its_share_of_runs_when_others_are_full(store: Arc<dyn RunStore>) {
    let small = run("small", 0);
    store.save(&small).await.expect("there is room");
    for client in 0..10 {
        for n in 0..SHARE {
            let one = waiting_run(&format!("client {client}"), n as u64);
            if client < 9 || n < SHARE - 1 {
                store.save(&one).await.expect("its share is its own");
            }
        }
    }
    for n in 0..SHARE / 10 {
        let one = waiting_run("newcomer", n as u64);
        store.save(&one).await.unwrap_or_else(|error| panic!("run {n}: {error}"));
    }
    assert!(store.load(small.id()).await.expect("looked").is_some(), "it was in nobody's way");
}

async fn runs_of_full_clients_do_not_push_out_others(store: Arc<dyn RunStore>) {
    let small = run("small", 0);
    store.save(&small).await.expect("there is room");
    for client in 0..12 {
        for n in 1..=SHARE {
            let one = run(&format!("client {client}"), n as u64);
            store.save(&one).await.expect("one that is over makes room");
        }
    }
    assert!(store.load(small.id()).await.expect("looked").is_some());
}

/// Runs a part of the suite over every implementation of suspensions.
macro_rules! suspensions {
    ($($name:ident),*) => { $(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_database_on_disk() {
                let (_home, database) = on_disk();
                super::$name(Arc::new(Suspensions::within(&database, Bounds::per_identity(SHARE)))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_database_in_memory() {
                let database = Database::in_memory().expect("there is memory");
                super::$name(Arc::new(Suspensions::within(&database, Bounds::per_identity(SHARE)))).await;
            }
        }
    )* };
}

/// Runs a part of the suite over every implementation of runs.
macro_rules! runs {
    ($($name:ident),*) => { $(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_database_on_disk() {
                let (_home, database) = on_disk();
                super::$name(Arc::new(Runs::within(&database, Bounds::per_identity(SHARE)))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_database_in_memory() {
                let database = Database::in_memory().expect("there is memory");
                super::$name(Arc::new(Runs::within(&database, Bounds::per_identity(SHARE)))).await;
            }
        }
    )* };
}

suspensions!(
    suspensions_are_put_found_listed_and_taken_once,
    outcomes_are_kept_for_their_identity_and_taken_once,
    a_full_share_drops_only_the_owners_expired_calls,
    a_new_client_gets_its_share_of_waiting_calls_when_others_are_full,
    outcomes_of_full_clients_do_not_push_out_others,
    an_equal_call_is_found_by_its_key
);
runs!(
    runs_are_saved_by_version_and_listed_in_order,
    a_full_share_of_runs_drops_the_oldest_finished_run,
    a_new_client_gets_its_share_of_runs_when_others_are_full,
    runs_of_full_clients_do_not_push_out_others
);

#[tokio::test]
async fn the_cores_memory_stores_behave_the_same() {
    let calls = || Arc::new(MemorySuspensions::within(Bounds::per_identity(SHARE)));
    suspensions_are_put_found_listed_and_taken_once(calls()).await;
    outcomes_are_kept_for_their_identity_and_taken_once(calls()).await;
    a_full_share_drops_only_the_owners_expired_calls(calls()).await;
    a_new_client_gets_its_share_of_waiting_calls_when_others_are_full(calls()).await;
    outcomes_of_full_clients_do_not_push_out_others(calls()).await;
    an_equal_call_is_found_by_its_key(calls()).await;
    let runs = || Arc::new(MemoryRuns::within(Bounds::per_identity(SHARE)));
    runs_are_saved_by_version_and_listed_in_order(runs()).await;
    a_full_share_of_runs_drops_the_oldest_finished_run(runs()).await;
    a_new_client_gets_its_share_of_runs_when_others_are_full(runs()).await;
    runs_of_full_clients_do_not_push_out_others(runs()).await;
}
