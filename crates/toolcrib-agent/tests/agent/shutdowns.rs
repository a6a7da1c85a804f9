//! Servers that begin to shut down at each moment of a run, which goes on in the next one.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::{Agent, AgentError, AgentEvent, JournalEntry, RunControl};
use toolcrib_core::approval::Decision;
use toolcrib_core::run::RunError;
use toolcrib_core::suspension::RedeemError;
use toolcrib_core::{Executor, TurnOptions};
use toolcrib_store::{Database, Runs, Suspensions};

use crate::fixture::{Counts, executor_with, quick_retries};

/// More servers than a run needs that is interrupted once.
const SERVERS: usize = 5;

/// Calls `write`, then `deploy`, which needs approval, until each has worked.
fn next_turn(request: &Value) -> ScriptedTurn {
    let said = request.to_string();
    if said.contains("deployed") {
        ScriptedTurn::text("Done.")
    } else if said.contains("written, for the 1. time") {
        ScriptedTurn::call("deploy", json!({}))
    } else {
        ScriptedTurn::call("write", json!({}))
    }
}

/// Begins to shut a server down when this many rows of the run were stored.
struct ShutdownAt {
    rows: usize,
    stored: AtomicUsize,
    /// Whether it is this server that shuts down.
    has_begun: AtomicBool,
    /// Stops the run a moment later, as a server does that shuts down.
    control: RunControl,
}

impl ShutdownAt {
    fn see(&self, executor: &Executor, event: &AgentEvent<'_>) {
        let AgentEvent::Recorded { entry, .. } = event else { return };
        let is_request = matches!(entry, JournalEntry::ModelRequested { .. });
        assert!(!is_request || !self.has_begun.load(Ordering::SeqCst), "a request is sent");
        if self.stored.fetch_add(1, Ordering::SeqCst) + 1 == self.rows {
            // Calls that are at work go on.
            let shutdown = pin!(executor.shutdown(Duration::from_secs(600)));
            let _ = shutdown.poll(&mut Context::from_waker(Waker::noop()));
            self.has_begun.store(executor.is_shutting_down(), Ordering::SeqCst);
            let control = self.control.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                control.pause("the server stops");
            });
        }
    }
}

/// A server on the stores of a folder.
fn server(folder: &Path, counts: &Arc<Counts>, at: &Arc<ShutdownAt>) -> Agent {
    let database = Database::open(folder).unwrap();
    let executor = executor_with(counts, Arc::new(Suspensions::new(&database)));
    let (own, at) = (executor.clone(), Arc::clone(at));
    at.has_begun.store(false, Ordering::SeqCst);
    Agent::builder(executor, Arc::new(ScriptedModel::answering(next_turn)))
        .journal(Arc::new(Runs::new(&database)))
        .turn_options(TurnOptions::default().may_approve(true))
        .retry(quick_retries())
        .on_event(move |event| at.see(&own, event))
        .build()
}

/// Drives a run to its end. Returns how many rows were stored.
async fn driven(rows: usize) -> usize {
    let (home, counts) = (tempfile::tempdir().unwrap(), Arc::new(Counts::default()));
    let at = Arc::new(ShutdownAt {
        rows,
        stored: AtomicUsize::new(0),
        has_begun: false.into(),
        control: RunControl::new(),
    });
    let mut run = None;
    for number in 0..SERVERS {
        let agent = server(home.path(), &counts, &at);
        let control = if number == 0 { at.control.clone() } else { RunControl::new() };
        let report = match &run {
            None => agent.run_with("Deploy.", &control).await.unwrap(),
            Some(run) => agent.resume_with(run, &control).await.unwrap(),
        };
        run = Some(report.id().clone());
        let mut state = report.state();
        if let Some(waiting) = report.waiting().next() {
            let approval = Decision::approve().into();
            match agent.resolve_with(report.id(), waiting.id(), approval, &control).await {
                Ok(_) => state = agent.resume_with(report.id(), &control).await.unwrap().state(),
                Err(AgentError::Resolve(RunError::Redeem(RedeemError::ShuttingDown))) => {
                    assert!(at.has_begun.load(Ordering::SeqCst));
                    let kept = agent.load(report.id()).await.unwrap();
                    assert_eq!(kept.waiting().next().unwrap().id(), waiting.id());
                }
                Err(error) => panic!("after {rows} rows: {error}"),
            }
        }
        if state == RunState::Completed {
            let report = agent.load(report.id()).await.unwrap();
            assert_eq!((report.text(), counts.all()), ("Done.", [0, 1, 1]), "after {rows} rows");
            return at.stored.load(Ordering::SeqCst);
        }
        assert!(at.has_begun.load(Ordering::SeqCst), "after {rows} rows: {state:?}");
    }
    panic!("a shutdown after {rows} rows: the run did not end");
}

#[tokio::test]
async fn a_run_whose_server_shuts_down_at_any_moment_ends_in_the_next_one_with_each_call_run_once()
{
    let undisturbed = driven(usize::MAX).await;
    assert!(undisturbed > 10, "{undisturbed} rows");
    for rows in 1..=undisturbed {
        driven(rows).await;
    }
}
