//! Runs that are cancelled, paused or steered while they are driven.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::{AgentError, AgentEvent, JournalEntry, RunControl};
use toolcrib_testkit::model_server::{Fault, Reply};
use toolcrib_wire::model::Wire;

use crate::fixture::{Counts, builder, served, transcript};

/// Calls `act` when calls start.
fn when_calls_start(
    control: &RunControl,
    act: fn(&RunControl),
) -> impl Fn(&AgentEvent<'_>) + Send + Sync + 'static {
    let control = control.clone();
    move |event| {
        if let AgentEvent::Recorded { entry: JournalEntry::CallsStarted { .. }, .. } = event {
            act(&control);
        }
    }
}

#[tokio::test]
async fn cancelling_ends_running_calls_and_the_run() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::call("slow", json!({}))]));
    let control = RunControl::new();
    let agent = builder(&counts, model)
        .on_event(when_calls_start(&control, |control| control.cancel("enough")))
        .build();
    let report = agent.run_with("Wait.", &control).await.unwrap();
    assert_eq!(report.state(), RunState::Cancelled);
    assert!(transcript(&report)[2].contains("withdrawn"), "{:?}", transcript(&report));
}

#[tokio::test]
async fn a_paused_run_goes_on_where_it_was() {
    let counts = Arc::new(Counts::default());
    let turns = [
        ScriptedTurn::call("slow", json!({})).and_call("write", json!({})),
        ScriptedTurn::text("Then not."),
    ];
    let control = RunControl::new();
    let agent = builder(&counts, Arc::new(ScriptedModel::new(turns)))
        .on_event(when_calls_start(&control, |control| control.pause("Ctrl-C")))
        .build();
    let report = agent.run_with("Wait.", &control).await.unwrap();
    assert_eq!(report.state(), RunState::Paused);
    let report = agent.resume(report.id()).await.unwrap();
    assert_eq!(report.text(), "Then not.");
    assert!(counts.all()[1] <= 1);
}

#[tokio::test]
async fn cancelling_does_not_wait_for_the_model() {
    let counts = Arc::new(Counts::default());
    let stalled = Reply::text("Long.").with_fault(Fault::StallAfter(300));
    let (_server, builder) = served(Wire::Chat, &counts, [stalled]).await;
    let control = RunControl::new();
    let stop = control.clone();
    let agent = builder
        .on_event(move |event| {
            if let AgentEvent::Model { .. } = event {
                stop.cancel("never mind");
            }
        })
        .build();
    let run = agent.run_with("Hello.", &control);
    let report = tokio::time::timeout(Duration::from_secs(5), run).await.unwrap().unwrap();
    assert_eq!(report.state(), RunState::Cancelled);
    assert_eq!(report.spent().unknown_requests, 1);
}

#[tokio::test]
async fn what_is_said_meanwhile_reaches_the_model_with_the_next_request() {
    let counts = Arc::new(Counts::default());
    let turns = [
        ScriptedTurn::call("write", json!({})),
        ScriptedTurn::text("Written."),
        ScriptedTurn::text("And in German, too."),
    ];
    let model = Arc::new(ScriptedModel::new(turns));
    let control = RunControl::new();
    let agent = builder(&counts, model)
        .on_event(when_calls_start(&control, |control| drop(control.steer("In German!"))))
        .build();
    let report = agent.run_with("Write.", &control).await.unwrap();
    let said = transcript(&report);
    assert_eq!(said[3..], ["User: In German!", "model: Written."], "{said:?}");

    // A run that has ended goes on with new input.
    let report = agent.send(report.id(), "Really?", &RunControl::new()).await.unwrap();
    assert_eq!((report.text(), report.spent().turns), ("And in German, too.", 1));
}

#[tokio::test]
async fn a_run_is_driven_by_one_at_a_time() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::call("slow", json!({}))]));
    let (say, mut told) = tokio::sync::mpsc::unbounded_channel();
    let agent = builder(&counts, model)
        .on_event(move |event| {
            if let AgentEvent::Recorded { run, entry: JournalEntry::CallsStarted { .. }, .. } =
                event
            {
                let _ = say.send((*run).clone());
            }
        })
        .build();
    let control = RunControl::new();
    let second = async {
        let run = told.recv().await.unwrap();
        let refused = agent.resume(&run).await;
        control.cancel("done");
        refused
    };
    let (first, second) = tokio::join!(agent.run_with("Wait.", &control), second);
    assert_eq!(first.unwrap().state(), RunState::Cancelled);
    assert!(matches!(second, Err(AgentError::NotNow { .. })), "{second:?}");
}
