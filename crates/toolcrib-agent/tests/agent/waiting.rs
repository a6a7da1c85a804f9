//! Runs whose calls wait for somebody.

use std::sync::Arc;

use serde_json::json;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::{Agent, AgentError, JournalEntry, RunControl};
use toolcrib_core::TurnOptions;
use toolcrib_core::approval::Decision;
use toolcrib_tool::Identity;

use crate::fixture::{Counts, builder, executor, transcript};

fn agent(counts: &Arc<Counts>) -> Agent {
    let both = ScriptedTurn::call("deploy", json!({"to": "a"}))
        .and_call("write", json!({}))
        .and_call("deploy", json!({"to": "b"}));
    let model = Arc::new(ScriptedModel::new([both, ScriptedTurn::text("Deployed.")]));
    builder(counts, model).build()
}

#[tokio::test]
async fn several_approvals_are_listed_and_decided_on_in_any_order() {
    let counts = Arc::new(Counts::default());
    let agent = agent(&counts);
    let report = agent.run("Deploy.").await.unwrap();
    assert_eq!(report.state(), RunState::RequiresAction);
    assert_eq!(counts.all(), [0, 1, 0], "what needs nobody has run");
    let waiting: Vec<_> = report.waiting().map(|one| one.id().clone()).collect();
    assert_eq!(waiting.len(), 2);

    let refused = agent.send(report.id(), "Hurry!", &RunControl::new()).await;
    assert!(matches!(refused, Err(AgentError::NotNow { .. })), "{refused:?}");
    let again = agent.resume(report.id()).await.unwrap();
    assert_eq!(again.state(), RunState::RequiresAction);
    let grown = again.run().version() - report.run().version();
    assert_eq!(grown, 0, "asking whether a run can go on writes nothing");

    agent.resolve(report.id(), &waiting[1], Decision::approve().into()).await.unwrap();
    let report = agent.resume(report.id()).await.unwrap();
    assert_eq!((report.state(), counts.all()), (RunState::RequiresAction, [0, 1, 1]));
    agent.resolve(report.id(), &waiting[0], Decision::deny("not today").into()).await.unwrap();
    let report = agent.resume(report.id()).await.unwrap();
    assert_eq!((report.text(), counts.all()), ("Deployed.", [0, 1, 1]));
    let said = transcript(&report);
    assert!(said[4].contains("not today"), "{said:?}");
    assert!(said[5].contains("written") && said[6].contains("deployed"), "{said:?}");
}

#[tokio::test]
async fn a_decision_by_somebody_else_is_taken_over() {
    let counts = Arc::new(Counts::default());
    let model = ScriptedModel::new([
        ScriptedTurn::call("deploy", json!({})),
        ScriptedTurn::text("Deployed."),
    ]);
    let executor = executor(&counts);
    // The agent itself may not approve anything.
    let agent = Agent::builder(executor.clone(), Arc::new(model)).build();
    let report = agent.run("Deploy.").await.unwrap();
    let call = report.waiting().next().unwrap().id().clone();
    let own = agent.resolve(report.id(), &call, Decision::approve().into()).await;
    assert!(matches!(own, Err(AgentError::Resolve(_))), "{own:?}");

    executor.approvals(TurnOptions::default()).decide(&call, Decision::approve()).await.unwrap();
    let report = loop {
        let report = agent.resume(report.id()).await.unwrap();
        if report.state() != RunState::RequiresAction {
            break report;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((report.text(), counts.all()), ("Deployed.", [0, 0, 1]));
}

#[tokio::test]
async fn a_cancelled_run_leaves_no_approval_behind() {
    let counts = Arc::new(Counts::default());
    let executor = executor(&counts);
    let model = ScriptedModel::new([ScriptedTurn::call("deploy", json!({}))]);
    let agent = Agent::builder(executor.clone(), Arc::new(model)).build();
    let report = agent.run("Deploy.").await.unwrap();
    let report = agent.cancel(report.id(), "changed my mind").await.unwrap();
    assert_eq!(report.state(), RunState::Cancelled);
    assert_eq!(executor.suspensions().unwrap().all().await.unwrap(), []);
    assert_eq!(counts.all(), [0, 0, 0]);
}

#[tokio::test]
async fn runs_of_other_identities_do_not_exist() {
    let counts = Arc::new(Counts::default());
    let journal = Arc::new(toolcrib_core::run::MemoryRuns::new());
    let of = |user: &str| {
        let model = ScriptedModel::new([ScriptedTurn::text("Hi.")]);
        Agent::builder(executor(&counts), Arc::new(model))
            .journal(journal.clone())
            .turn_options(TurnOptions::default().identity(Identity::user(user)))
            .build()
    };
    let report = of("ada").run("Hello.").await.unwrap();
    assert!(of("ada").load(report.id()).await.is_ok());
    assert!(matches!(of("eve").load(report.id()).await, Err(AgentError::Unknown)));
    assert!(matches!(of("eve").resume(report.id()).await, Err(AgentError::Unknown)));
    assert_eq!(of("ada").runs(None, 10).await.unwrap().len(), 1);
    assert_eq!(of("eve").runs(None, 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_terminal_tool_ends_the_run_with_its_output() {
    let counts = Arc::new(Counts::default());
    let model = ScriptedModel::new([ScriptedTurn::call("finish", json!({"result": "42"}))]);
    let report = builder(&counts, Arc::new(model)).build().run("Answer.").await.unwrap();
    assert_eq!((report.text(), report.state()), ("42", RunState::Completed));
}

#[tokio::test]
async fn the_journal_and_the_model_know_who_approved_a_call_and_which_arguments_were_changed() {
    for by_others in [false, true] {
        let counts = Arc::new(Counts::default());
        let model = Arc::new(ScriptedModel::new([
            ScriptedTurn::call("deploy", json!({"host": "a"})),
            ScriptedTurn::text("Deployed."),
        ]));
        let executor = executor(&counts);
        let options = TurnOptions::default().may_approve(!by_others).client("the client");
        let agent = Agent::builder(executor.clone(), model.clone()).turn_options(options).build();
        let report = agent.run("Deploy.").await.unwrap();
        let call = report.waiting().next().unwrap().id().clone();
        let changed = Decision::approve_changed(r#"{"host": "staging"}"#);
        if by_others {
            let deciders = TurnOptions::default().client("ops");
            executor.approvals(deciders).decide(&call, changed).await.unwrap();
        } else {
            agent.resolve(report.id(), &call, changed.into()).await.unwrap();
        }
        let report = loop {
            let report = agent.resume(report.id()).await.unwrap();
            if report.state() != RunState::RequiresAction {
                break report;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!((report.text(), counts.all()), ("Deployed.", [0, 0, 1]));
        let rows = agent.rows(report.id(), 0, 99).await.unwrap();
        let resolved = rows.iter().find_map(|(_, row)| match &row.entry {
            JournalEntry::CallResolved { kind, by, arguments, .. } => {
                Some((kind.as_str(), by.as_str(), arguments.clone()))
            }
            _ => None,
        });
        let by = if by_others { "ops" } else { "the client" };
        assert_eq!(resolved, Some(("approved", by, Some(json!({"host": "staging"})))));
        let told = model.requests()[1]["messages"].as_array().unwrap().last().unwrap().to_string();
        assert!(told.contains("changed its arguments"), "{told}");
        assert!(told.contains("staging") && told.contains("deployed"), "{told}");
    }
}
