//! Which runs count against their identity's share, and which no longer do.

use std::time::Duration;

use toolcrib_core::Answer;
use toolcrib_core::bounds::Bounds;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{RunRecord, RunStore};
use toolcrib_core::suspension::{Settled, StoreError, Suspension, SuspensionStore as _};
use toolcrib_store::{Database, Runs, Suspensions};
use toolcrib_tool::{CallId, ToolOutput, ToolResult};

use crate::fixture::{is_kept, resolved, suspended, waiting_run};

/// How many runs an identity may have.
const SHARE: usize = 3;

struct Fixture {
    runs: Runs,
    suspensions: Suspensions,
}

impl Fixture {
    fn new() -> Self {
        let database = Database::in_memory().expect("there is memory");
        let bounds = Bounds::per_identity(SHARE);
        Self {
            runs: Runs::within(&database, bounds),
            suspensions: Suspensions::within(&database, Bounds::default()),
        }
    }

    /// A run of one call that waits.
    async fn waits(&self, identity: &str, created: u64) -> Result<RunRecord, StoreError> {
        let run = waiting_run(identity, created);
        let call = run.outstanding().next().expect("it waits");
        self.suspensions.put(call).await.expect("there is room");
        let version = self.runs.save(&run).await?;
        Ok(run.with_version(version))
    }

    /// Somebody decides on a call, with this result.
    async fn decides(&self, call: &Suspension, answer: Answer) {
        let by = resolved(call, "ops", 50);
        let taken = self.suspensions.take_for_caller(call.id(), &by).await;
        let taken = taken.expect("it works").expect("it waits");
        let running = Settled::running(taken, Timestamp::from_unix_millis(50));
        self.suspensions.settle(&running.ended(answer)).await.expect("it is the taker");
    }

    async fn is_there(&self, run: &RunRecord) -> bool {
        is_kept(self.runs.load(run.id()).await)
    }
}

fn done() -> Answer {
    let output = ToolOutput::from("done");
    Answer::Done(ToolResult::success(CallId::new("1"), "t", output, Duration::ZERO))
}

fn call_of(run: &RunRecord) -> Suspension {
    run.outstanding().next().expect("it waits").clone()
}

#[tokio::test]
async fn an_answered_run_leaves_the_quota_and_can_still_be_read() {
    let kept = Fixture::new();
    let mut runs = Vec::new();
    for created in 0..SHARE as u64 {
        runs.push(kept.waits("ada", created).await.expect("there is room"));
    }
    let full = kept.waits("ada", 60).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    for run in &runs {
        kept.decides(&call_of(run), done()).await;
    }
    for created in 100..100 + SHARE as u64 {
        kept.waits("ada", created).await.expect("an answered one has given up its place");
    }
    for run in &runs {
        assert!(kept.is_there(run).await, "nobody has read it");
    }
    let full = kept.waits("ada", 200).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "these wait: {full:?}");
}

#[tokio::test]
async fn unread_answers_have_a_quota_of_the_same_size_and_the_oldest_are_removed() {
    let kept = Fixture::new();
    let bobs = kept.waits("bob", 1).await.expect("there is room");
    kept.decides(&call_of(&bobs), done()).await;
    let mut runs = Vec::new();
    for created in 100..100 + 3 * SHARE as u64 {
        let run = kept.waits("ada", created).await.expect("all before it were answered");
        kept.decides(&call_of(&run), done()).await;
        runs.push(run);
    }
    let mut there = Vec::new();
    for run in &runs {
        there.push(kept.is_there(run).await);
    }
    let expected = [vec![false; 2 * SHARE - 1], vec![true; SHARE + 1]].concat();
    assert_eq!(there, expected, "the last one came when there were as many as may be");
    assert!(kept.is_there(&bobs).await, "hers made no room of his");
}

#[tokio::test]
async fn a_run_whose_call_waits_again_counts_against_the_quota() {
    let kept = Fixture::new();
    let mut runs = Vec::new();
    for created in 0..SHARE as u64 {
        runs.push(kept.waits("ada", created).await.expect("there is room"));
    }
    let next = suspended("ada", 50, 500);
    kept.suspensions.put(&next).await.expect("there is room");
    kept.decides(&call_of(&runs[0]), Answer::Suspended(Box::new(next.clone()))).await;
    let full = kept.waits("ada", 60).await;
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    kept.decides(&next, done()).await;
    kept.waits("ada", 70).await.expect("now it waits no more");
    assert!(kept.is_there(&runs[0]).await);
}
