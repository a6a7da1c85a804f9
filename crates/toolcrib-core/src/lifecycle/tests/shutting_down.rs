//! No new calls, a grace, then cancellation; everybody is answered.

use std::sync::Arc;
use std::time::Duration;

use toolcrib_tool::ErrorKind;

use super::{counted, quiet, settled, snapshot};
use crate::Registry;
use crate::lifecycle::{Shutdown, ShutdownReport};

/// A call as the pipeline makes it: its answer, and how it ended.
async fn call(shutdown: Arc<Shutdown>, takes: Duration) -> Result<(), ErrorKind> {
    let _entered = shutdown.enter().map_err(|error| error.kind())?;
    tokio::select! {
        biased;
        () = tokio::time::sleep(takes) => Ok(()),
        () = shutdown.cancelled() => Err(ErrorKind::Cancelled),
    }
}

#[tokio::test(start_paused = true)]
async fn running_calls_finish_within_the_grace_and_new_ones_are_refused() {
    let shutdown = Arc::new(Shutdown::default());
    let running = tokio::spawn(call(Arc::clone(&shutdown), Duration::from_secs(2)));
    tokio::task::yield_now().await;
    assert_eq!(shutdown.running(), 1);
    let ending = {
        let shutdown = Arc::clone(&shutdown);
        tokio::spawn(async move { shutdown.run(Duration::from_secs(5)).await })
    };
    tokio::task::yield_now().await;
    assert!(shutdown.has_begun());
    assert_eq!(call(Arc::clone(&shutdown), Duration::ZERO).await, Err(ErrorKind::Unavailable));
    assert_eq!(running.await.unwrap(), Ok(()));
    assert_eq!(ending.await.unwrap(), ShutdownReport::default());
    assert_eq!(shutdown.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_grace_are_cancelled_and_answered() {
    let shutdown = Arc::new(Shutdown::default());
    let calls: Vec<_> = (0..5)
        .map(|seconds| tokio::spawn(call(Arc::clone(&shutdown), Duration::from_secs(seconds * 4))))
        .collect();
    tokio::task::yield_now().await;
    let report = shutdown.run(Duration::from_secs(5)).await;
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    let cancelled = Err(ErrorKind::Cancelled);
    assert_eq!(answers, [Ok(()), Ok(()), cancelled, cancelled, cancelled]);
    assert_eq!((report.cancelled, report.abandoned), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_answers_does_not_hold_up_the_end() {
    let shutdown = Shutdown::default();
    let _deaf = shutdown.enter().unwrap();
    let report = shutdown.run(Duration::from_secs(1)).await;
    assert_eq!((report.cancelled, report.abandoned), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn shutting_down_twice_is_like_once() {
    let shutdown = Shutdown::default();
    let (first, second) =
        tokio::join!(shutdown.run(Duration::from_secs(1)), shutdown.run(Duration::from_secs(2)));
    assert_eq!((first, second), (ShutdownReport::default(), ShutdownReport::default()));
}

#[tokio::test]
async fn the_registry_s_bodies_are_closed_though_turns_hold_them() {
    let ((current, counts), (removed, removed_counts)) = (counted(quiet), counted(quiet));
    let registry = Registry::new(snapshot([("a", &current), ("b", &removed)]));
    let old = registry.snapshot();
    registry.publish(snapshot([("a", &current)]));
    registry.close().await;
    assert_eq!((counts.closed(), removed_counts.closed()), (1, 1));
    assert!(old.bodies().all(|body| body.is_closed()));

    // What is published to a registry that is over is closed with its snapshot.
    let (late, late_counts) = counted(quiet);
    registry.publish(snapshot([("late", &late)]));
    registry.close().await;
    drop((registry, old));
    settled().await;
    assert_eq!((counts.closed(), removed_counts.closed(), late_counts.closed()), (1, 1, 1));
}
