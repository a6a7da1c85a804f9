//! Limits of runs: budgets and repetition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_agent::budget::{Budget, Cost, Limit, Prices};
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::{FailureReason, Outcome, RunState};
use toolcrib_agent::{AgentEvent, RunControl};
use toolcrib_testkit::model_server::Reply;
use toolcrib_wire::model::Wire;

use crate::fixture::{Counts, builder, endpoint, served, transcript};

fn add(number: i64) -> ScriptedTurn {
    ScriptedTurn::call("add", json!({"a": number, "b": 0}))
}

#[tokio::test]
async fn the_last_round_has_no_tools_and_its_answer_counts() {
    let counts = Arc::new(Counts::default());
    let turns = [add(1), add(2), ScriptedTurn::text("That is all.")];
    let model = Arc::new(ScriptedModel::new(turns));
    let agent = builder(&counts, model.clone()).budget(Budget::default().with_max_turns(3)).build();
    let report = agent.run("Add.").await.unwrap();
    assert_eq!(report.text(), "That is all.");
    let choices: Vec<_> =
        model.requests().iter().map(|request| request["tool_choice"].clone()).collect();
    assert_eq!(choices, [json!(null), json!(null), json!("none")]);
}

#[tokio::test]
async fn calls_in_the_last_round_do_not_run_and_the_run_fails_with_the_limit() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new([add(1), add(2), add(3)]));
    let agent = builder(&counts, model).budget(Budget::default().with_max_turns(2)).build();
    let report = agent.run("Add.").await.unwrap();
    let Some(Outcome::Failed { reason, .. }) = report.outcome() else { panic!("it has to fail") };
    assert_eq!(*reason, FailureReason::Budget(Limit::Turns));
    assert_eq!(counts.all()[0], 1);
}

#[tokio::test]
async fn the_model_is_told_once_when_a_limit_is_near() {
    let counts = Arc::new(Counts::default());
    let turns = (0..9).map(add).chain([ScriptedTurn::text("Done.")]);
    let model = Arc::new(ScriptedModel::new(turns));
    let budget = Budget::default().with_max_tokens(1_100);
    let report = builder(&counts, model).budget(budget).build().run("Add.").await.unwrap();
    assert_eq!(report.text(), "Done.");
    let said = transcript(&report);
    let told: Vec<_> = said.iter().filter(|line| line.contains("(max_tokens)")).collect();
    assert_eq!(told.len(), 1, "{said:?}");
}

#[tokio::test]
async fn calls_beyond_their_limit_are_denied() {
    let counts = Arc::new(Counts::default());
    let three =
        add(1).and_call("add", json!({"a": 2, "b": 0})).and_call("add", json!({"a": 3, "b": 0}));
    let model = Arc::new(ScriptedModel::new([three, ScriptedTurn::text("Enough.")]));
    let budget = Budget::default().with_max_calls(2);
    let report = builder(&counts, model).budget(budget).build().run("Add.").await.unwrap();
    assert_eq!((report.text(), counts.all()[0]), ("Enough.", 2));
    assert!(transcript(&report)[6].contains("budget"), "{:?}", transcript(&report));
}

#[tokio::test]
async fn a_limit_on_cost_ends_the_run() {
    let counts = Arc::new(Counts::default());
    let replies = (1..9).map(|number| Reply::call("add", json!({"a": number, "b": 0})));
    let (server, _) = served(Wire::Chat, &counts, replies).await;
    let prices = Prices { input: 1_000, output: 5_000, ..Prices::default() };
    let model = endpoint(&server).prices(prices);
    let budget = Budget::default().with_max_cost(Cost::from_nanodollars(400_000));
    let agent = builder(&counts, Arc::new(model)).budget(budget).build();
    let report = agent.run("Add.").await.unwrap();
    let Some(Outcome::Failed { reason, .. }) = report.outcome() else { panic!("it has to fail") };
    assert_eq!(*reason, FailureReason::Budget(Limit::Cost));
    assert_eq!(report.spent().turns, 3);
}

#[tokio::test]
async fn when_the_time_is_over_calls_and_requests_end() {
    let counts = Arc::new(Counts::default());
    let budget = Budget::default().with_max_time(Duration::from_millis(200));
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::call("slow", json!({}))]));
    let began = Instant::now();
    let agent = builder(&counts, model).budget(budget.clone()).build();
    let report = agent.run("Wait.").await.unwrap();
    let Some(Outcome::Failed { reason, .. }) = report.outcome() else { panic!("it has to fail") };
    assert_eq!(*reason, FailureReason::Budget(Limit::Time));

    let stalled =
        Reply::text("Hi.").with_fault(toolcrib_testkit::model_server::Fault::StallAfter(0));
    let (_server, builder) = served(Wire::Chat, &counts, [stalled]).await;
    let report = builder.budget(budget).build().run("Hello.").await.unwrap();
    assert_eq!(report.state(), RunState::Failed);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_told_and_then_paused() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new((0..9).map(|_| add(1))));
    let agent = builder(&counts, model.clone()).build();
    let report = agent.run("Add.").await.unwrap();
    assert_eq!(report.state(), RunState::Paused);
    assert_eq!((counts.all()[0], model.requests().len()), (2, 4));
    // Input lets it go on.
    let report = agent.resume(report.id()).await.unwrap();
    assert_eq!((report.state(), counts.all()[0]), (RunState::Paused, 2), "it repeats itself again");
}

#[tokio::test]
async fn a_tool_for_polling_may_be_called_again() {
    let counts = Arc::new(Counts::default());
    let turns = (0..6).map(|_| add(1)).chain([ScriptedTurn::text("Done.")]);
    let model = Arc::new(ScriptedModel::new(turns));
    let pause = Duration::from_millis(30);
    let waits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&waits);
    let agent =
        builder(&counts, model).poll_tools(["add"]).poll_every(pause).on_event(move |event| {
            if let AgentEvent::PollWait { tool: "add", wait, .. } = event {
                assert!(*wait <= pause);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
    let began = Instant::now();
    assert_eq!(agent.build().run("Add.").await.unwrap().text(), "Done.");
    assert_eq!(counts.all()[0], 6);
    // The first call does not wait, the others do and say so.
    assert_eq!(waits.load(Ordering::SeqCst), 5);
    assert!(began.elapsed() >= pause * 5);
}

#[tokio::test]
async fn a_run_that_waits_for_a_poll_can_be_stopped() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new((0..3).map(|_| add(1))));
    let control = RunControl::new();
    let stop = control.clone();
    let agent = builder(&counts, model).poll_tools(["add"]).poll_every(Duration::from_secs(600));
    let agent = agent.on_event(move |event| {
        if let AgentEvent::PollWait { .. } = event {
            stop.pause("enough");
        }
    });
    let report = agent.build().run_with("Add.", &control).await.unwrap();
    assert_eq!((report.state(), counts.all()[0]), (RunState::Paused, 1));
}
