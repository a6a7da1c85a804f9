//! Runs in a state folder, over restarts.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::{Agent, AgentError};
use toolcrib_core::TurnOptions;
use toolcrib_core::approval::Decision;
use toolcrib_core::suspension::{StoreError, Suspension, SuspensionStore as _};
use toolcrib_store::{Database, Runs, Suspensions};

use crate::fixture::{Counts, executor_with, quick_retries};

/// An agent on the stores of a folder, as a server has it that was just started.
fn started(folder: &Path, counts: &Arc<Counts>, turns: Vec<ScriptedTurn>) -> (Agent, Suspensions) {
    let database = Database::open(folder).unwrap();
    let suspensions = Suspensions::new(&database);
    let executor = executor_with(counts, Arc::new(suspensions.clone()));
    let agent = Agent::builder(executor, Arc::new(ScriptedModel::new(turns)))
        .journal(Arc::new(Runs::new(&database)))
        .turn_options(TurnOptions::default().may_approve(true))
        .retry(quick_retries())
        .build();
    (agent, suspensions)
}

#[tokio::test]
async fn a_call_that_waits_for_approval_is_listed_and_decided_on_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let counts = Arc::new(Counts::default());
    let script = vec![ScriptedTurn::call("deploy", json!({"to": "a"}))];
    let (agent, _) = started(home.path(), &counts, script);
    let run = agent.run("Deploy.").await.unwrap();
    assert_eq!(run.state(), RunState::RequiresAction);
    drop(agent);

    let (agent, suspensions) = started(home.path(), &counts, vec![ScriptedTurn::text("Deployed.")]);
    let listed = suspensions.all().await.unwrap();
    assert_eq!(
        listed.iter().map(Suspension::session).collect::<Vec<_>>(),
        [Some(run.id().as_str())]
    );
    let loaded = agent.load(run.id()).await.unwrap();
    let waiting: Vec<_> = loaded.waiting().map(|one| one.id().clone()).collect();
    assert_eq!(waiting, [listed[0].id().clone()]);
    agent.resolve(run.id(), &waiting[0], Decision::approve().into()).await.unwrap();
    drop(agent);

    let (agent, suspensions) = started(home.path(), &counts, vec![ScriptedTurn::text("Deployed.")]);
    assert!(suspensions.all().await.unwrap().is_empty());
    let report = agent.resume(run.id()).await.unwrap();
    assert_eq!((report.text(), counts.all()), ("Deployed.", [0, 0, 1]));
}

#[tokio::test]
async fn a_run_that_another_server_drives_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let counts = Arc::new(Counts::default());
    let (agent, _) = started(home.path(), &counts, vec![ScriptedTurn::call("slow", json!({}))]);
    let driving = tokio::spawn({
        let agent = agent.clone();
        async move { agent.run("Work.").await.map(drop) }
    });
    let (other, _) = started(home.path(), &counts, Vec::new());
    let run = loop {
        // It is claimed once its first request has been recorded.
        if let Some(run) = other.runs(None, 1).await.unwrap().first()
            && other.rows(run.id(), 2, 1).await.unwrap().len() == 1
        {
            break run.id().clone();
        }
        tokio::task::yield_now().await;
    };
    let refused = other.resume(&run).await;
    let is_claimed = matches!(refused, Err(AgentError::Store(StoreError::Claimed { .. })));
    assert!(is_claimed, "{refused:?}");
    driving.abort();
}

#[tokio::test]
async fn a_run_that_another_process_drives_is_cancelled_when_somebody_asks_for_it() {
    let home = tempfile::tempdir().unwrap();
    let counts = Arc::new(Counts::default());
    let script = vec![ScriptedTurn::call("slow", json!({})).and_call("write", json!({}))];
    let (worker, _) = started(home.path(), &counts, script);
    let (other, _) = started(home.path(), &counts, Vec::new());
    let run = worker.begin("Wait.").await.unwrap().id().clone();
    let working = tokio::spawn({
        let (worker, run) = (worker.clone(), run.clone());
        async move { worker.resume(&run).await }
    });
    while counts.all()[1] == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let refused = other.cancel(&run, "enough").await;
    let is_claimed = matches!(refused, Err(AgentError::Store(StoreError::Claimed { .. })));
    assert!(is_claimed, "{refused:?}");
    other.request_cancel(&run, "enough").await.unwrap();
    let report = working.await.unwrap().unwrap();
    assert_eq!((report.state(), counts.all()), (RunState::Cancelled, [0, 1, 0]));
    let said = crate::fixture::transcript(&report).join("\n");
    assert!(said.contains("withdrawn") && said.contains("written"), "calls are answered: {said}");
    assert!(other.request_cancel(&run, "again").await.is_err(), "it is over");
}

#[tokio::test]
async fn a_request_to_cancel_outlives_the_process_that_worked_on_the_run() {
    let home = tempfile::tempdir().unwrap();
    let counts = Arc::new(Counts::default());
    for waits in [false, true] {
        let script = vec![ScriptedTurn::call("deploy", json!({}))];
        let (worker, _) = started(home.path(), &counts, script);
        let mut report = worker.begin("Deploy.").await.unwrap();
        if waits {
            report = worker.resume(report.id()).await.unwrap();
            assert_eq!(report.state(), RunState::RequiresAction);
        }
        worker.request_cancel(report.id(), "enough").await.unwrap();
        drop(worker);
        let (next, suspensions) = started(home.path(), &counts, Vec::new());
        let report = next.resume(report.id()).await.unwrap();
        assert_eq!((report.state(), counts.all()), (RunState::Cancelled, [0, 0, 0]));
        assert!(suspensions.all().await.unwrap().is_empty());
        let more =
            next.send(report.id(), "And?", &toolcrib_agent::RunControl::new()).await.unwrap();
        assert_eq!(more.state(), RunState::Failed, "the request is gone: {more:?}");
    }
}
