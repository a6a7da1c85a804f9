//! Runs that end with `attempt_completion`.

use std::sync::Arc;

use serde_json::json;
use toolcrib_agent::budget::Limit;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::{FailureReason, Outcome, RunState};

use crate::fixture::{Counts, builder, transcript};

#[tokio::test]
async fn attempt_completion_ends_the_run_with_its_result() {
    let model =
        ScriptedModel::new([ScriptedTurn::call("attempt_completion", json!({"result": "42"}))]);
    let report = builder(&Arc::default(), Arc::new(model)).build().run("Answer.").await.unwrap();
    assert_eq!((report.text(), report.state()), ("42", RunState::Completed));
}

#[tokio::test]
async fn beside_other_calls_attempt_completion_does_not_run_but_they_do() {
    let counts = Arc::new(Counts::default());
    let model = ScriptedModel::new([
        ScriptedTurn::call("attempt_completion", json!({"result": "early"}))
            .and_call("write", json!({})),
        ScriptedTurn::call("attempt_completion", json!({"result": "late"})),
    ]);
    let report = builder(&counts, Arc::new(model)).build().run("Answer.").await.unwrap();
    assert_eq!((report.text(), counts.all()), ("late", [0, 1, 0]));
    let said = transcript(&report);
    assert!(said[3].contains("has to be the only call"), "{said:?}");
    assert!(said[4].contains("written"), "{said:?}");
}

#[tokio::test]
async fn a_result_that_does_not_match_its_schema_is_asked_for_again() {
    let schema = json!({
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
    });
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("add", json!({"a": 1, "b": 2})),
        ScriptedTurn::call("attempt_completion", json!({"result": {"sum": 3}})),
        ScriptedTurn::call("attempt_completion", json!({"result": {"total": 3}})),
    ]));
    let agent = builder(&Arc::default(), model.clone()).output_schema(&schema).unwrap().build();
    let report = agent.run("Add.").await.unwrap();
    assert_eq!((report.text(), report.state()), (r#"{"total":3}"#, RunState::Completed));
    let said = transcript(&report);
    assert!(said.iter().any(|line| line.contains("total")), "{said:?}");
    let request = &model.requests()[0];
    assert_eq!(request["tool_choice"], "required");
    let tools = request["tools"].as_array().unwrap();
    let own: Vec<_> =
        tools.iter().filter(|tool| tool["function"]["name"] == "attempt_completion").collect();
    assert_eq!(own.len(), 1);
    let offered = &own[0]["function"]["parameters"]["properties"]["result"]["properties"];
    assert_eq!(offered["total"]["type"], "integer");
}

/// An agent whose answers have a schema and whose model says these words.
async fn answered(words: &[&str], turns: u32) -> (toolcrib_agent::RunReport, usize) {
    let schema = json!({
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
    });
    let model = Arc::new(ScriptedModel::new(words.iter().map(|words| ScriptedTurn::text(*words))));
    let agent = builder(&Arc::default(), model.clone());
    let agent = agent.change_budget(|budget| budget.with_max_turns(turns));
    let report = agent.output_schema(&schema).unwrap().build().run("Add.").await.unwrap();
    (report, model.requests().len())
}

#[tokio::test]
async fn words_that_are_json_of_the_schema_are_the_answer() {
    for words in ["{\"total\": 3}", "```json\n{\"total\": 3}\n```"] {
        let (report, asked) = answered(&[words], 9).await;
        assert_eq!((report.text(), report.state()), (r#"{"total":3}"#, RunState::Completed));
        assert_eq!(asked, 1);
    }
}

#[tokio::test]
async fn other_words_are_no_answer_and_the_model_is_told_to_make_the_call() {
    let (report, _) = answered(&["It is 3.", r#"{"sum": 3}"#, r#"{"total": 3}"#], 9).await;
    assert_eq!((report.text(), report.state()), (r#"{"total":3}"#, RunState::Completed));
    let said = transcript(&report);
    assert!(said[2].contains("not JSON") && said[2].contains("attempt_completion"), "{said:?}");
    assert!(said[4].contains("total"), "{said:?}");
}

#[tokio::test]
async fn a_model_that_gives_no_answer_of_the_schema_fails_the_run() {
    let (report, asked) = answered(&["One.", "Two.", "Three.", "Four."], 9).await;
    let Some(Outcome::Failed { reason, message, text }) = report.outcome() else {
        panic!("{report:?}")
    };
    assert_eq!(
        (*reason, text.as_deref(), asked),
        (FailureReason::InvalidAnswer, Some("Three."), 3)
    );
    assert!(message.contains("schema") && message.contains("not JSON"), "{message}");

    let (report, asked) = answered(&["One.", "Two.", "Three."], 2).await;
    let Some(Outcome::Failed { reason, message, .. }) = report.outcome() else {
        panic!("{report:?}")
    };
    assert_eq!((*reason, asked), (FailureReason::Budget(Limit::Turns), 2));
    assert!(message.contains("schema"), "{message}");
}
