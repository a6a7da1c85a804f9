//! Runs that end with `attempt_completion`.

use std::sync::Arc;

use serde_json::json;
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;

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
