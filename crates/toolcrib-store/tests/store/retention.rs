//! What is too old or too much is removed; what waits or runs is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolcrib_core::Answer;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{Journal as _, JournalEntry, RunId, RunStore as _};
use toolcrib_core::spill::{Owner, SpillError, SpillLimits, SpillStore as _, Spilled};
use toolcrib_core::suspension::{Settled, StoreError, SuspensionStore as _};
use toolcrib_store::{Database, Kept, Retention, Runs, Spills, StateReport, Suspensions};
use toolcrib_tool::{CallId, ContextValues, ToolOutput, ToolResult};

use crate::fixture::{is_kept, on_disk, resolved, run, suspended, waiting_run};
use crate::journal::{first_step, step};

const HOUR: u64 = 60 * 60 * 1_000;

fn hours(hours: u64) -> Duration {
    Duration::from_millis(hours * HOUR)
}

/// A database on disk with a clock of the test's.
fn with_clock() -> (tempfile::TempDir, Database, Arc<AtomicU64>) {
    let home = tempfile::tempdir().expect("there is room");
    let now = Arc::new(AtomicU64::new(HOUR));
    let read = Arc::clone(&now);
    let clock = move || Timestamp::from_unix_millis(read.load(Ordering::Relaxed));
    let database = Database::open_with_clock(home.path(), Arc::new(clock)).expect("it opens");
    (home, database, now)
}

fn ages(runs: u64, outputs: u64, decisions: u64) -> Retention {
    let mut retention = Retention::default();
    retention.runs = Kept::new(Some(hours(runs)), None);
    retention.outputs = Kept::new(Some(hours(outputs)), None);
    retention.decisions = Some(hours(decisions));
    retention
}

fn forever() -> SpillLimits {
    let mut limits = SpillLimits::default();
    limits.ttl = Duration::MAX;
    limits
}

fn ada() -> Owner {
    Owner::of(&ContextValues::new().with("user", "ada"), None)
}

#[tokio::test]
async fn what_is_older_than_its_age_is_removed_and_answered_as_expired() {
    let (_home, database, now) = with_clock();
    let (runs, spills) = (Runs::new(&database), Spills::new(&database, forever()));
    database.keep(ages(2, 1, 24));
    let old = run("ada", HOUR);
    runs.save(&old).await.expect("there is room");
    let handle = spills.put(&ada(), Spilled::text("long")).await.expect("there is room");

    now.store(2 * HOUR, Ordering::Relaxed);
    let expired = spills.read(&ada(), &handle, 0, 9).await;
    assert_eq!(expired, Err(SpillError::Expired), "also before it is removed");
    let swept = database.sweep().await.expect("it works");
    assert_eq!((swept.runs, swept.outputs), (0, 1));
    assert_eq!(spills.read(&ada(), &handle, 0, 9).await, Err(SpillError::Expired));
    let bob = Owner::of(&ContextValues::new().with("user", "bob"), None);
    assert_eq!(spills.read(&bob, &handle, 0, 9).await, Err(SpillError::NotFound), "not his");
    runs.load(old.id()).await.expect("it works").expect("it is young enough");

    now.store(3 * HOUR, Ordering::Relaxed);
    let new = run("ada", 3 * HOUR);
    runs.save(&new).await.expect("there is room");
    assert_eq!(database.sweep().await.expect("it works").runs, 1);
    let gone = runs.load(old.id()).await;
    assert!(matches!(gone, Err(StoreError::Expired)), "{gone:?}");
    assert!(runs.load(new.id()).await.expect("it works").is_some());
    assert_eq!(runs.load(run("ada", 1).id()).await.expect("it works"), None, "never seen");
}

#[tokio::test]
async fn an_agents_run_that_nobody_resumes_is_kept_as_long_as_runs_are() {
    let (_home, database, now) = with_clock();
    let runs = Runs::new(&database);
    database.keep(ages(2, 1, 1));
    let id = || RunId::random().expect("there is randomness");
    let (paused, waits, driven) = (id(), id(), id());
    for run in [&paused, &waits, &driven] {
        runs.append(run, 0, &[first_step("ada", HOUR)], None).await.expect("there is room");
    }
    let claim = runs.claim(&driven).await.expect("it works");
    let until = suspended("ada", HOUR, 10 * HOUR);
    let waiting = [JournalEntry::Step(step().waiting(0, &until))];
    runs.append(&waits, 1, &waiting, None).await.expect("it goes on");
    let kept = async |run: &RunId| is_kept(runs.read(run, 0, 1).await);
    for (hours, expected) in [(2, [true; 3]), (4, [false, true, true]), (20, [false, false, true])]
    {
        now.store(hours * HOUR, Ordering::Relaxed);
        database.sweep().await.expect("it works");
        let found = [kept(&paused).await, kept(&waits).await, kept(&driven).await];
        assert_eq!(found, expected, "after {hours} hours");
    }
    runs.release(&claim.expect("it is there")).await.expect("it works");
    database.sweep().await.expect("it works");
    assert!(!kept(&driven).await);
}

#[tokio::test]
async fn what_waits_or_runs_is_kept_whatever_its_age() {
    let (_home, database, now) = with_clock();
    let (runs, suspensions) = (Runs::new(&database), Suspensions::new(&database));
    database.keep(ages(1, 1, 1));
    // One waits, one is being run by this server, one is over.
    let waits = suspended("ada", HOUR, u64::MAX);
    let runs_now = suspended("ada", HOUR, 2 * HOUR);
    for call in [&waits, &runs_now] {
        suspensions.put(call).await.expect("there is room");
    }
    let mut value = serde_json::to_value(waiting_run("ada", HOUR)).expect("plain data");
    let (mut ids, mut kept) = (Vec::new(), Vec::new());
    for call in [&waits, &runs_now] {
        let id = toolcrib_core::run::RunId::random().expect("there is randomness");
        value["id"] = id.as_str().into();
        value["slots"] = serde_json::json!([{"waiting": call}]);
        let record = serde_json::from_value(value.clone()).expect("it is a record");
        runs.save(&record).await.expect("there is room");
        ids.push(id);
    }
    let by = resolved(&runs_now, "bob", HOUR);
    let taken = suspensions.take_for_caller(runs_now.id(), &by).await.expect("it works");
    let running = Settled::running(taken.expect("it waits"), Timestamp::from_unix_millis(HOUR));

    now.store(100 * HOUR, Ordering::Relaxed);
    let swept = database.sweep().await.expect("it works");
    assert_eq!(swept.runs, 0, "{swept}");
    for id in &ids {
        kept.push(runs.load(id).await.expect("it works").expect("it is kept"));
    }
    assert_eq!(kept.len(), 2);
    assert_eq!(suspensions.all().await.expect("it works"), std::slice::from_ref(&waits));
    assert!(suspensions.settled(runs_now.id()).await.expect("it works").is_some(), "it runs");

    // Once its answer is there, the age counts from then.
    let result =
        ToolResult::success(CallId::new("1"), "t", ToolOutput::from("done"), Duration::ZERO);
    suspensions.settle(&running.ended(Answer::Done(result))).await.expect("it is the taker");
    database.sweep().await.expect("it works");
    assert!(runs.load(&ids[1]).await.expect("it works").is_some(), "it has just changed");
    now.store(102 * HOUR, Ordering::Relaxed);
    database.sweep().await.expect("it works");
    assert!(matches!(runs.load(&ids[1]).await, Err(StoreError::Expired)));
    assert!(runs.load(&ids[0]).await.expect("it works").is_some(), "it waits for a person");
}

#[tokio::test]
async fn an_output_that_is_being_read_is_kept_until_its_reader_has_had_time_for_the_rest() {
    let (_home, database, now) = with_clock();
    let spills = Spills::new(&database, forever());
    database.keep(ages(1, 1, 1));
    let read = spills.put(&ada(), Spilled::text("first second")).await.expect("room");
    let other = spills.put(&ada(), Spilled::text("x".repeat(99))).await.expect("room");
    let minute = 60 * 1_000;
    now.store(2 * HOUR - minute, Ordering::Relaxed);
    assert_eq!(spills.read(&ada(), &read, 0, 6).await.expect("it is young").text, "first ");
    now.store(2 * HOUR + minute, Ordering::Relaxed);
    assert_eq!(database.sweep().await.expect("it works").outputs, 1, "only the other");
    assert_eq!(spills.read(&ada(), &other, 0, 6).await, Err(SpillError::Expired));
    assert_eq!(spills.read(&ada(), &read, 6, 6).await.expect("it is being read").text, "second");

    // Nor is it the one that makes room.
    let newer = spills.put(&ada(), Spilled::text("x".repeat(99))).await.expect("room");
    let mut retention = ages(1, 1, 1);
    retention.outputs = Kept::new(Some(hours(1)), Some(50));
    database.keep(retention);
    database.sweep().await.expect("it works");
    assert_eq!(spills.read(&ada(), &newer, 0, 6).await, Err(SpillError::Expired));
    spills.read(&ada(), &read, 0, 6).await.expect("it is being read");
    now.store(2 * HOUR + 12 * minute, Ordering::Relaxed);
    assert_eq!(database.sweep().await.expect("it works").outputs, 1);
    assert_eq!(spills.read(&ada(), &read, 0, 6).await, Err(SpillError::Expired));
}

#[tokio::test]
async fn a_clock_that_is_set_back_removes_nothing_early_and_stops_no_later_sweep() {
    let (home, database, now) = with_clock();
    let spills = Spills::new(&database, forever());
    database.keep(ages(1, 1, 1));
    now.store(100 * HOUR, Ordering::Relaxed);
    let handle = spills.put(&ada(), Spilled::text("long")).await.expect("there is room");
    spills.read(&ada(), &handle, 0, 9).await.expect("it is there");
    let after = Arc::clone(&now);
    let clock = move || Timestamp::from_unix_millis(after.load(Ordering::Relaxed));
    let other = Database::open_with_clock(home.path(), Arc::new(clock)).expect("it is shared");
    other.keep(ages(1, 1, 1));
    now.store(50 * HOUR, Ordering::Relaxed);
    for database in [&database, &other] {
        assert_eq!(database.sweep().await.expect("it works").total(), 0);
    }
    spills.read(&ada(), &handle, 0, 9).await.expect("it is younger than its age");
    now.store(102 * HOUR, Ordering::Relaxed);
    assert_eq!(other.sweep().await.expect("it works").outputs, 1);
}

#[tokio::test]
async fn beyond_the_bytes_the_oldest_of_the_identity_that_uses_most_go() {
    let (_home, database, now) = with_clock();
    let spills = Spills::new(&database, forever());
    let bob = Owner::of(&ContextValues::new().with("user", "bob"), None);
    let small = spills.put(&bob, Spilled::text("x".repeat(1_000))).await.expect("room");
    let mut handles = Vec::new();
    for _ in 0..8 {
        now.fetch_add(1, Ordering::Relaxed);
        handles.push(spills.put(&ada(), Spilled::text("x".repeat(10_000))).await.expect("room"));
    }
    let mut retention = Retention::default();
    retention.outputs = Kept::new(None, Some(35_000));
    database.keep(retention);
    assert_eq!(database.sweep().await.expect("it works").outputs, 5);
    for (number, handle) in handles.iter().enumerate() {
        let found = spills.read(&ada(), handle, 0, 1).await;
        assert_eq!(found.is_ok(), number >= 5, "{number}: {found:?}");
    }
    spills.read(&bob, &small, 0, 1).await.expect("his are older and stay");
}

#[tokio::test]
async fn a_shorter_age_applies_at_once_and_freed_space_is_given_back() {
    let (home, database) = on_disk();
    let spills = Spills::new(&database, forever());
    database.keep(Retention::default());
    for _ in 0..40 {
        let text = "x".repeat(200_000);
        spills.put(&ada(), Spilled::text(text)).await.expect("there is room");
    }
    let file = home.path().join("toolcrib.db");
    let full = StateReport::read(home.path()).expect("it works").expect("it is there");
    let outputs = full.kinds.iter().find(|own| own.kind == "outputs").expect("a kind");
    assert!(outputs.entries == 40 && outputs.bytes == 8_000_000 && outputs.oldest.is_some());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut retention = Retention::default();
    retention.outputs = Kept::new(Some(Duration::from_millis(10)), None);
    database.keep(retention);
    assert_eq!(database.sweep().await.expect("it works").outputs + 40, 40, "the change swept");
    let report = database.report().expect("it works");
    assert!(report.free_bytes <= 2 << 20, "{report:?}");
    let length = file.metadata().expect("it is there").len();
    assert!(length < 4_000_000, "{length}");
}

#[tokio::test]
async fn of_two_servers_with_one_database_each_sweep_removes_each_thing_once() {
    let (home, one) = on_disk();
    let other = Database::open(home.path()).expect("several may share it");
    let spills = Spills::new(&one, forever());
    for _ in 0..200 {
        spills.put(&ada(), Spilled::text("short")).await.expect("there is room");
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut retention = Retention::default();
    retention.outputs = Kept::new(Some(Duration::from_millis(1)), None);
    for database in [&one, &other] {
        database.keep(retention);
    }
    let (first, second) = tokio::join!(one.sweep(), other.sweep());
    let total = first.expect("it works").outputs + second.expect("it works").outputs;
    assert!(total <= 200, "{total}");
    let report = one.report().expect("it works");
    let outputs = report.kinds.iter().find(|own| own.kind == "outputs").expect("a kind");
    assert_eq!(outputs.entries, 0);
}

#[tokio::test]
async fn calls_do_not_wait_while_much_is_removed() {
    let (_home, database) = on_disk();
    let (spills, suspensions) = (Spills::new(&database, forever()), Suspensions::new(&database));
    let mut limits = forever();
    limits.max_bytes = 1 << 30;
    limits.max_owner_bytes = 1 << 30;
    let large = Spills::new(&database, limits);
    for _ in 0..150 {
        large.put(&ada(), Spilled::text("x".repeat(500_000))).await.expect("there is room");
    }
    drop(spills);
    let mut retention = Retention::default();
    retention.outputs = Kept::new(Some(Duration::from_millis(1)), None);
    database.keep(retention);
    let sweeping = tokio::spawn({
        let database = database.clone();
        async move { database.sweep().await }
    });
    let mut longest = Duration::ZERO;
    while !sweeping.is_finished() {
        let began = std::time::Instant::now();
        suspensions.put(&suspended("ada", 1, u64::MAX)).await.expect("there is room");
        longest = longest.max(began.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
        if suspensions.all().await.expect("it works").len() > 900 {
            break;
        }
    }
    sweeping.await.expect("no panic").expect("it works");
    // A tenth of a second is much for a busy machine, and far less than the whole.
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}
