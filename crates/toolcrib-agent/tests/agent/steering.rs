//! Input for runs that are being driven, that wait, and whose process ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use toolcrib_agent::model::{ModelClient, ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, JournalEntry, RunControl, SteerError,
};
use toolcrib_core::approval::Decision;
use toolcrib_core::run::{MemoryRuns, RunId};

use crate::fixture::{Counts, builder, kind, transcript};

/// An agent that says which entries it has recorded.
fn told(builder: AgentBuilder) -> (Agent, mpsc::UnboundedReceiver<(RunId, String)>) {
    let (say, told) = mpsc::unbounded_channel();
    let agent = builder.on_event(move |event| {
        if let AgentEvent::Recorded { run, entry, .. } = event {
            let _ = say.send(((*run).clone(), kind(entry)));
        }
    });
    (agent.build(), told)
}

async fn until(told: &mut mpsc::UnboundedReceiver<(RunId, String)>, wanted: &str) -> RunId {
    loop {
        let (run, kind) = told.recv().await.unwrap();
        if kind == wanted {
            return run;
        }
    }
}

#[tokio::test]
async fn confirmed_input_is_in_the_next_request_although_the_process_has_ended() {
    let counts = Arc::new(Counts::default());
    let journal = Arc::new(MemoryRuns::new());
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::call("slow", json!({}))]));
    let (agent, mut told) = told(builder(&counts, model).journal(journal.clone()));
    let control = RunControl::new();
    let run = tokio::select! {
        ended = agent.run_with("Write.", &control) => panic!("{ended:?}"),
        run = async {
            let run = until(&mut told, "calls_started").await;
            control.steer("In German!").await.unwrap();
            run
        } => run,
    };
    // What drove it is gone, as after a crash.
    assert!(matches!(control.steer("Now.").await, Err(SteerError::NotDriven)));
    let model: Arc<dyn ModelClient> = Arc::new(ScriptedModel::new([ScriptedTurn::text("Gut.")]));
    let agent = builder(&counts, model).journal(journal).build();
    let report = agent.resume(&run).await.unwrap();
    let said = transcript(&report);
    assert!(said[2].contains("not known"), "{said:?}");
    assert_eq!(said[3..], ["User: In German!", "model: Gut."]);
}

#[tokio::test]
async fn a_run_that_was_about_to_end_goes_on() {
    let counts = Arc::new(Counts::default());
    let turns = [ScriptedTurn::text("Done."), ScriptedTurn::text("Fertig.")];
    let control = RunControl::new();
    let steer = control.clone();
    let agent = builder(&counts, Arc::new(ScriptedModel::new(turns)))
        .on_event(move |event| {
            if let AgentEvent::Recorded {
                entry: JournalEntry::ModelRequested { round: 1, .. },
                ..
            } = event
            {
                drop(steer.steer("In German!"));
            }
        })
        .build();
    let report = agent.run_with("Say it.", &control).await.unwrap();
    let said = transcript(&report);
    assert_eq!(said[1..], ["model: Done.", "User: In German!", "model: Fertig."], "{said:?}");
    assert_eq!((report.text(), report.state()), ("Fertig.", RunState::Completed));
}

#[tokio::test]
async fn a_run_that_waits_keeps_input_until_its_calls_have_answers() {
    let counts = Arc::new(Counts::default());
    let turns = [ScriptedTurn::call("deploy", json!({})), ScriptedTurn::text("Deployed.")];
    let agent = builder(&counts, Arc::new(ScriptedModel::new(turns))).build();
    let report = agent.run("Deploy.").await.unwrap();
    let call = report.waiting().next().unwrap().id().clone();
    let steered = agent.steer(report.id(), "Quietly!").await.unwrap();
    assert_eq!(steered.state(), RunState::RequiresAction);
    assert_eq!(agent.resume(report.id()).await.unwrap().state(), RunState::RequiresAction);
    agent.resolve(report.id(), &call, Decision::approve().into()).await.unwrap();
    let report = agent.resume(report.id()).await.unwrap();
    let said = transcript(&report);
    assert_eq!(said[2..], ["call_1_0: deployed", "User: Quietly!", "model: Deployed."], "{said:?}");

    let refused = agent.steer(report.id(), "Too late.").await;
    assert!(matches!(refused, Err(AgentError::NotNow { .. })), "{refused:?}");
    let rows = agent.rows(report.id(), 0, 100).await.unwrap();
    assert_eq!(rows.iter().filter(|(_, row)| kind(&row.entry) == "steered").count(), 1);
}

#[tokio::test]
async fn a_paused_run_keeps_input_and_a_cancelled_one_has_it_in_its_conversation() {
    let counts = Arc::new(Counts::default());
    let turns = [
        ScriptedTurn::call("slow", json!({})),
        ScriptedTurn::call("slow", json!({"again": true})),
        ScriptedTurn::text("So be it."),
    ];
    let (agent, mut told) = told(builder(&counts, Arc::new(ScriptedModel::new(turns))));
    let control = RunControl::new();
    let pause = async {
        let run = until(&mut told, "calls_started").await;
        control.pause("later");
        run
    };
    let (report, run) = tokio::join!(agent.run_with("Wait.", &control), pause);
    assert_eq!(report.unwrap().state(), RunState::Paused);
    let report = agent.steer(&run, "Go on.").await.unwrap();
    assert_eq!(report.state(), RunState::Paused, "it is not continued");
    let control = RunControl::new();
    let cancel = async {
        until(&mut told, "calls_started").await;
        control.steer("Stop it.").await.unwrap();
        control.cancel("enough");
    };
    let (report, ()) = tokio::join!(agent.resume_with(&run, &control), cancel);
    let said = transcript(&report.unwrap());
    assert_eq!(
        (said[3].as_str(), said[6].as_str()),
        ("User: Go on.", "User: Stop it."),
        "{said:?}"
    );
    let report = agent.send(&run, "Well?", &RunControl::new()).await.unwrap();
    assert_eq!(report.text(), "So be it.");
}

#[tokio::test]
async fn input_reaches_a_run_whose_sub_agents_work_and_not_them() {
    let counts = Arc::new(Counts::default());
    let task = json!({"agent_name": "helper", "task_name": "wait", "input": "Wait."});
    let turns = [ScriptedTurn::call("new_task", task), ScriptedTurn::text("Enough.")];
    let child = [ScriptedTurn::call("slow", json!({}))];
    let helper = builder(&counts, Arc::new(ScriptedModel::new(child))).name("helper").build();
    let (agent, mut told) =
        told(builder(&counts, Arc::new(ScriptedModel::new(turns))).sub_agent(helper));
    let control = RunControl::new();
    let steer = async {
        let root = until(&mut told, "started").await;
        let child = until(&mut told, "started").await;
        until(&mut told, "calls_started").await;
        control.steer("Hurry!").await.unwrap();
        control.pause("seen");
        (root, child)
    };
    let (report, (root, child)) = tokio::join!(agent.run_with("Wait.", &control), steer);
    assert_eq!(report.unwrap().state(), RunState::Paused);
    let kinds = async |run: &RunId| -> Vec<String> {
        let rows = agent.rows(run, 0, 100).await.unwrap();
        rows.iter().map(|(_, row)| kind(&row.entry)).collect()
    };
    assert!(kinds(&root).await.contains(&"steered".to_owned()));
    assert!(!kinds(&child).await.contains(&"steered".to_owned()));
}

#[tokio::test]
async fn input_is_refused_by_a_control_of_which_nobody_is_left() {
    let counts = Arc::new(Counts::default());
    let turns = [ScriptedTurn::text("Hello."), ScriptedTurn::text("Hello again.")];
    let agent = builder(&counts, Arc::new(ScriptedModel::new(turns))).build();
    let control = RunControl::new();
    let before = control.steer("And say it twice.");
    let report = agent.run_with("Say hello.", &control).await.unwrap();
    before.await.unwrap();
    let after = tokio::time::timeout(Duration::from_secs(5), control.steer("More.")).await;
    assert!(matches!(after.unwrap(), Err(SteerError::NotDriven)));
    let report = agent.send(report.id(), "Again.", &control).await.unwrap();
    assert_eq!(report.text(), "Hello again.");
    let unheard = RunControl::new();
    let steering = unheard.steer("Anybody?");
    drop(unheard);
    assert!(matches!(steering.await, Err(SteerError::NotDriven)));
}
