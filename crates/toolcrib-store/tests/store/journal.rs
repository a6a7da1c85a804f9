//! One suite for all journals of runs, and tests of the guarantees that only journals on disk give.

use std::sync::Arc;

use toolcrib_core::bounds::Bounds;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{
    Claim, Journal, JournalEntry, MESSAGES_MAX, MemoryRuns, RunCursor, RunId, RunLimits, RunRecord,
    RunRequests, RunStep, RunStore, Seq,
};
use toolcrib_core::suspension::StoreError;
use toolcrib_store::{Database, Runs};

use crate::fixture::{is_kept, on_disk, suspended, waiting_run};

fn limits() -> RunLimits {
    let mut limits = RunLimits::from(Bounds::per_identity(20));
    limits.entry_bytes = 4_096;
    limits.entries = 50;
    limits.identity_bytes = 40_000;
    limits
}

fn id() -> RunId {
    RunId::random().expect("there is randomness")
}

/// The entry that begins a run.
pub(crate) fn started(identity: &str, created: u64) -> JournalEntry {
    let created_at = Timestamp::from_unix_millis(created);
    JournalEntry::Started { format: 1, identity: identity.to_owned(), created_at }
}

/// An entry: the first call of a run waits, now as another suspended call.
pub(crate) fn waits(identity: &str) -> JournalEntry {
    JournalEntry::CallSuspended { call: 0, suspension: Box::new(suspended(identity, 1, 100)) }
}

async fn all(journal: &dyn Journal, run: &RunId) -> Vec<JournalEntry> {
    let page = journal.read(run, 0, 1_000).await.expect("it works").expect("it is there");
    assert_eq!(page.last, page.entries.len() as Seq);
    page.entries.into_iter().map(|(_, entry)| entry).collect()
}

fn is_conflict(result: &Result<Seq, StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict))
}

async fn entries_are_numbered_without_gaps_and_read_in_pages(journal: Arc<dyn Journal>) {
    let run = id();
    assert!(journal.read(&run, 0, 10).await.expect("it works").is_none());
    let unbegun = journal.append(&run, 0, &[waits("ada")], None).await;
    assert!(matches!(unbegun, Err(StoreError::Failed { .. })), "{unbegun:?}");
    let early = journal.append(&run, 1, &[waits("ada")], None).await;
    assert!(is_conflict(&early), "{early:?}");
    let first = [started("ada", 1), waits("ada")];
    assert_eq!(journal.append(&run, 0, &first, None).await.expect("it is new"), 2);
    let next: Vec<_> = (0..5).map(|_| waits("ada")).collect();
    for wrong in [0, 1, 3, 40] {
        let entries = if wrong == 0 { &first[..] } else { &next[..] };
        let refused = journal.append(&run, wrong, entries, None).await;
        assert!(is_conflict(&refused), "behind {wrong}: {refused:?}");
    }
    let again = journal.append(&run, 2, &[waits("ada"), started("ada", 1)], None).await;
    assert!(matches!(again, Err(StoreError::Failed { .. })), "{again:?}");
    assert_eq!(all(&*journal, &run).await, first, "what was refused has left nothing");
    assert_eq!(journal.append(&run, 2, &next, None).await.expect("it goes on"), 7);

    let (mut known, mut pages) = (0, Vec::new());
    loop {
        let page = journal.read(&run, known, 3).await.expect("it works").expect("it is there");
        assert_eq!(page.last, 7);
        let Some((last, _)) = page.entries.last() else { break };
        known = *last;
        pages.push(page.entries);
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    let expected: Vec<_> = (1..).zip(first.into_iter().chain(next)).collect();
    assert_eq!(pages.concat(), expected);
}

async fn one_of_several_concurrent_appends_succeeds(journal: Arc<dyn Journal>) {
    let run = id();
    journal.append(&run, 0, &[started("ada", 1)], None).await.expect("it is new");
    for last in [1, 3] {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let (journal, run) = (Arc::clone(&journal), run.clone());
                tokio::spawn(async move {
                    let entries = [waits("ada"), waits("ada")];
                    let appended = journal.append(&run, last, &entries, None).await;
                    (appended, entries)
                })
            })
            .collect();
        let mut won = Vec::new();
        for writer in writers {
            match writer.await.expect("nobody panics") {
                (Ok(seq), entries) => won.push((seq, entries)),
                (Err(error), _) => assert!(matches!(error, StoreError::Conflict), "{error}"),
            }
        }
        let [(seq, entries)] = won.as_slice() else { panic!("{won:?}") };
        assert_eq!(*seq, last + 2);
        let kept = all(&*journal, &run).await;
        let behind = usize::try_from(last).expect("it is small");
        assert_eq!(&kept[behind..], entries, "and both of its entries are there");
    }
}

async fn an_append_without_the_current_claim_is_refused(journal: Arc<dyn Journal>) {
    let run = id();
    assert!(journal.claim(&run).await.expect("it works").is_none(), "there is no such run");
    journal.append(&run, 0, &[started("ada", 1)], None).await.expect("it is new");
    let claimed = async || journal.claim(&run).await.expect("it works").expect("it is there");
    let append = async |after: Seq, claim: Option<&Claim>| {
        journal.append(&run, after, &[waits("ada")], claim).await
    };
    let first = claimed().await;
    let unclaimed = append(1, None).await;
    assert!(matches!(unclaimed, Err(StoreError::Claimed { .. })), "{unclaimed:?}");
    let erased = journal.erase(&run).await;
    assert!(matches!(erased, Err(StoreError::Claimed { .. })), "{erased:?}");
    assert_eq!(append(1, Some(&first)).await.expect("it holds"), 2);

    let second = claimed().await;
    let lost = append(2, Some(&first)).await;
    assert!(matches!(lost, Err(StoreError::ClaimLost)), "{lost:?}");
    journal.release(&first).await.expect("it is no error");
    assert_eq!(append(2, Some(&second)).await.expect("it holds still"), 3);
    let behind = append(2, Some(&second)).await;
    assert!(is_conflict(&behind), "a claim is no leave to overwrite: {behind:?}");

    journal.release(&second).await.expect("it works");
    let released = append(3, Some(&second)).await;
    assert!(matches!(released, Err(StoreError::ClaimLost)), "{released:?}");
    assert_eq!(append(3, None).await.expect("nobody has claimed it"), 4);
    journal.erase(&run).await.expect("nobody has claimed it");
    let gone = append(4, Some(&second)).await;
    assert!(matches!(gone, Err(StoreError::ClaimLost)), "{gone:?}");
    assert!(is_conflict(&append(4, None).await));
}

async fn a_claimed_run_is_not_removed(journal: Arc<dyn Journal>) {
    let runs: Vec<RunId> = (0..20).map(|_| id()).collect();
    for (run, created) in runs.iter().zip(1..) {
        journal.append(run, 0, &[started("ada", created)], None).await.expect("there is room");
    }
    let oldest = journal.claim(&runs[0]).await.expect("it works").expect("it is there");
    journal.append(&id(), 0, &[started("ada", 50)], None).await.expect("one makes room");
    let there = async |run: &RunId| is_kept(journal.read(run, 0, 1).await);
    assert!(there(&runs[0]).await && !there(&runs[1]).await);
    journal.release(&oldest).await.expect("it works");
    journal.append(&id(), 0, &[started("ada", 51)], None).await.expect("one makes room");
    assert!(!there(&runs[0]).await && there(&runs[2]).await);
}

async fn entries_runs_and_shares_have_bounds(journal: Arc<dyn Journal>) {
    let run = id();
    journal.append(&run, 0, &[started("ada", 1)], None).await.expect("it is new");
    let large = started(&"x".repeat(5_000), 1);
    let refused = journal.append(&id(), 0, &[large], None).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { limit: 4_096, .. })), "{refused:?}");
    let many: Vec<_> = (0..50).map(|_| waits("ada")).collect();
    let refused = journal.append(&run, 1, &many, None).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { limit: 50, .. })), "{refused:?}");
    assert_eq!(journal.append(&run, 1, &many[1..], None).await.expect("as many as may be"), 50);
    assert_eq!(all(&*journal, &run).await.len(), 50);

    // A run of many bytes keeps its identity from beginning another, but no other identity.
    let mut runs = vec![run];
    let full = loop {
        let next = id();
        let entries: Vec<_> =
            std::iter::once(started("ada", 2)).chain(many.iter().take(40).cloned()).collect();
        match journal.append(&next, 0, &entries, None).await {
            Ok(_) => runs.push(next),
            Err(error) => break error,
        }
    };
    assert!(full.to_string().contains("bytes of runs"), "{full}");
    assert!(runs.len() < 5, "{}", runs.len());
    let last = runs.last().expect("there is one");
    assert_eq!(journal.append(last, 41, &[waits("ada")], None).await.expect("it goes on"), 42);
    journal.append(&id(), 0, &[started("bob", 2)], None).await.expect("his share is his");
    for run in &runs {
        journal.erase(run).await.expect("it works");
    }
    journal.append(&id(), 0, &[started("ada", 3)], None).await.expect("there is room again");
}

async fn a_journal_belongs_to_its_identity_and_is_removed_with_its_run(journal: Arc<dyn Journal>) {
    let (hers, his) = (id(), id());
    journal.append(&hers, 0, &[started("ada", 1), waits("ada")], None).await.expect("it is new");
    journal.append(&his, 0, &[started("bob", 1)], None).await.expect("it is new");
    let listed = journal.list("ada", None, 10).await.expect("listed");
    assert_eq!(listed.iter().map(RunCursor::id).collect::<Vec<_>>(), [&hers]);
    assert!(journal.list("", None, 10).await.expect("listed").is_empty());
    journal.erase(&hers).await.expect("it works");
    assert!(journal.read(&hers, 0, 10).await.expect("it works").is_none());
    journal.append(&hers, 0, &[started("ada", 9)], None).await.expect("nothing is left of it");
    assert_eq!(all(&*journal, &hers).await, [started("ada", 9)]);
    assert_eq!(all(&*journal, &his).await, [started("bob", 1)]);
}

/// The first step of an agent's run.
pub(crate) fn first_step(identity: &str, created: u64) -> JournalEntry {
    let created_at = Timestamp::from_unix_millis(created);
    JournalEntry::Step(RunStep::new(serde_json::json!({"n": 1})).beginning(identity, created_at))
}

/// A further step of an agent's run.
pub(crate) fn step() -> RunStep {
    RunStep::new(serde_json::json!({"text": "é \u{0} \"", "number": 0.1}))
}

async fn steps_of_agents_are_stored_as_they_are_and_are_no_batches(journal: Arc<dyn Journal>) {
    let run = id();
    let unbegun = journal.append(&run, 0, &[JournalEntry::Step(step())], None).await;
    assert!(matches!(unbegun, Err(StoreError::Failed { .. })), "{unbegun:?}");
    let waits = suspended("ada", 1, 100);
    let entries = [
        first_step("ada", 1),
        JournalEntry::Step(step().waiting(0, &waits)),
        JournalEntry::Step(step().answering(0)),
        JournalEntry::Step(step().ending()),
        JournalEntry::Step(step()),
    ];
    journal.append(&run, 0, &entries, None).await.expect("it is new");
    assert_eq!(all(&*journal, &run).await, entries);
    let again = journal.append(&run, 5, &[first_step("ada", 1)], None).await;
    assert!(matches!(again, Err(StoreError::Failed { .. })), "{again:?}");
    let batch = waiting_run("ada", 2);
    journal.save(&batch).await.expect("it is new");
    let listed = journal.list("ada", None, 10).await.expect("listed");
    assert_eq!(listed.iter().map(RunCursor::id).collect::<Vec<_>>(), [&run, batch.id()]);

    assert_eq!(journal.load(&run).await.expect("looked"), None, "it is no batch");
    let batches = journal.page("ada", None, 10).await.expect("listed");
    assert_eq!(batches.iter().map(RunRecord::id).collect::<Vec<_>>(), [batch.id()]);
}

async fn an_agents_run_makes_room_only_when_it_is_over(journal: Arc<dyn Journal>) {
    let runs: Vec<RunId> = (0..20).map(|_| id()).collect();
    for (run, created) in runs.iter().zip(1..) {
        journal.append(run, 0, &[first_step("ada", created)], None).await.expect("there is room");
    }
    let begin = async |created| journal.append(&id(), 0, &[first_step("ada", created)], None).await;
    let append = async |run: &RunId, after: Seq, step: RunStep| {
        journal.append(run, after, &[JournalEntry::Step(step)], None).await.expect("it goes on")
    };
    let there = async |run: &RunId| is_kept(journal.read(run, 0, 1).await);
    let refused = begin(50).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "all can go on: {refused:?}");

    // One that was reopened can go on again.
    append(&runs[0], 1, step().ending()).await;
    append(&runs[0], 2, step()).await;
    // One that ends does not wait any more.
    append(&runs[3], 1, step().waiting(0, &suspended("ada", 1, u64::MAX))).await;
    append(&runs[3], 2, step().ending()).await;
    begin(51).await.expect("one is over");
    assert!(there(&runs[0]).await && !there(&runs[3]).await);
    let refused = begin(52).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
}

async fn a_message_is_taken_up_by_one_entry_or_withdrawn(journal: Arc<dyn Journal>) {
    let (run, other) = (id(), id());
    let leave = async |text: &str| journal.leave_message(&run, text).await;
    assert_eq!(leave("early").await.expect("it works"), None, "there is no such run");
    for run in [&run, &other] {
        journal.append(run, 0, &[first_step("ada", 1)], None).await.expect("it is new");
    }
    let first = leave("first").await.expect("it works").expect("it goes on");
    let second = leave("second").await.expect("it works").expect("it goes on");
    assert!(journal.ask_to_cancel(&run, "enough").await.expect("it works"));
    let requests = journal.requests(&run).await.expect("it works");
    assert_eq!(requests.cancel.as_deref(), Some("enough"));
    assert_eq!(requests.messages, [(first, "first".to_owned()), (second, "second".to_owned())]);
    assert_eq!(journal.requests(&other).await.expect("it works"), RunRequests::default());

    let taking = |message| [JournalEntry::Step(step().taking(message))];
    assert!(!journal.withdraw_message(&other, first).await.expect("it works"), "it is not its");
    journal.append(&run, 1, &taking(first), None).await.expect("it is there");
    assert!(!journal.withdraw_message(&run, first).await.expect("it works"), "it is taken up");
    let again = journal.append(&run, 2, &taking(first), None).await;
    assert!(is_conflict(&again), "only once: {again:?}");
    assert!(journal.withdraw_message(&run, second).await.expect("it works"));
    let late = journal.append(&run, 2, &taking(second), None).await;
    assert!(is_conflict(&late), "nobody has said it: {late:?}");
    assert_eq!(all(&*journal, &run).await.len(), 2, "what was refused has left nothing");

    for number in 0..MESSAGES_MAX {
        assert!(leave("more").await.expect("there is room").is_some(), "{number}");
    }
    let refused = leave("too much").await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    journal.append(&run, 2, &[JournalEntry::Step(step().ending())], None).await.expect("it ends");
    journal.erase(&run).await.expect("nobody has claimed it");
    journal.append(&run, 0, &[first_step("ada", 1)], None).await.expect("it is new");
    assert_eq!(journal.requests(&run).await.expect("it works"), RunRequests::default());
    journal.append(&run, 1, &[JournalEntry::Step(step().ending())], None).await.expect("it ends");
    assert_eq!(leave("late").await.expect("it works"), None, "it is over");
}

/// Runs the suite over every implementation of a journal.
macro_rules! journals {
    ($($name:ident),*) => { $(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_database_on_disk() {
                let (_home, database) = on_disk();
                super::$name(Arc::new(Runs::within(&database, limits()))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_a_database_in_memory() {
                let database = Database::in_memory().expect("there is memory");
                super::$name(Arc::new(Runs::within(&database, limits()))).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_the_cores_memory() {
                super::$name(Arc::new(MemoryRuns::within(limits()))).await;
            }
        }
    )* };
}

journals!(
    entries_are_numbered_without_gaps_and_read_in_pages,
    one_of_several_concurrent_appends_succeeds,
    an_append_without_the_current_claim_is_refused,
    a_claimed_run_is_not_removed,
    entries_runs_and_shares_have_bounds,
    a_journal_belongs_to_its_identity_and_is_removed_with_its_run,
    steps_of_agents_are_stored_as_they_are_and_are_no_batches,
    an_agents_run_makes_room_only_when_it_is_over,
    a_message_is_taken_up_by_one_entry_or_withdrawn
);

#[tokio::test]
async fn a_server_that_ends_loses_its_claims_but_no_entries() {
    let (home, database) = on_disk();
    let other = Database::open(home.path()).expect("several may share it");
    let (one, two) = (Runs::new(&database), Runs::new(&other));
    let run = id();
    one.append(&run, 0, &[started("ada", 1)], None).await.expect("it is new");
    let claim = one.claim(&run).await.expect("it works").expect("it is there");
    one.append(&run, 1, &[waits("ada")], Some(&claim)).await.expect("it holds");
    let taken = two.claim(&run).await;
    let Err(StoreError::Claimed { process }) = taken else { panic!("{taken:?}") };
    assert_eq!(process, std::process::id());
    let stolen = two.append(&run, 2, &[waits("ada")], Some(&claim)).await;
    assert!(matches!(stolen, Err(StoreError::ClaimLost)), "it is good in its server: {stolen:?}");
    let kept = all(&one, &run).await;
    let elsewhere = async |runs: &Runs| runs.claimed_elsewhere(&run).await.expect("it works");
    let seen = (elsewhere(&one).await, elsewhere(&two).await);
    assert_eq!(seen, (None, Some(std::process::id())));

    drop((one, database));
    let claim = loop {
        // The thread that ends the registration may take a moment.
        match two.claim(&run).await {
            Ok(claim) => break claim.expect("it is there"),
            Err(StoreError::Claimed { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(claim.term(), 2);
    assert_eq!(elsewhere(&two).await, None, "that server is gone");
    two.append(&run, 2, &[waits("ada")], Some(&claim)).await.expect("it holds");
    drop((two, other));

    let database = Database::open(home.path()).expect("it is ours");
    let found = all(&Runs::new(&database), &run).await;
    assert_eq!(found[..2], kept);
    assert_eq!(found.len(), 3);
}

#[tokio::test]
async fn a_journal_with_a_gap_is_reported_and_hides_no_other_run() {
    let (home, database) = on_disk();
    let runs = Runs::new(&database);
    let (broken, whole) = (waiting_run("ada", 1), waiting_run("ada", 2));
    for run in [&broken, &whole] {
        runs.save(run).await.expect("it is new");
    }
    let file = rusqlite::Connection::open(home.path().join("toolcrib.db")).expect("it is ours");
    let sql = "DELETE FROM journal WHERE run = ?1 AND seq = 2";
    assert_eq!(file.execute(sql, [broken.id().as_str()]).expect("it is there"), 1);
    let error = runs.load(broken.id()).await.expect_err("it is broken");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("entry 2 of 2 is missing"), "{error}");
    let listed = runs.page("ada", None, 1).await.expect("listed");
    assert_eq!(listed, [whole.with_version(2)]);
}

#[tokio::test]
async fn a_journal_in_a_newer_format_is_refused_and_left_unchanged() {
    let (_home, database) = on_disk();
    let runs = Runs::new(&database);
    let run = id();
    let created_at = Timestamp::from_unix_millis(1);
    let newer = JournalEntry::Started { format: 2, identity: "ada".to_owned(), created_at };
    runs.append(&run, 0, std::slice::from_ref(&newer), None).await.expect("it is new");
    let error = runs.load(&run).await.expect_err("it is newer");
    assert!(error.to_string().contains("a newer toolcrib wrote it (format 2"), "{error}");
    assert_eq!(all(&runs, &run).await, [newer]);
}
