//! Requests of clients that bring their own tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_agent::model::{ScriptedModel, ScriptedTurn};
use toolcrib_agent::run::RunState;
use toolcrib_agent::{
    Agent, AgentError, ClientRequest, ClientTool, RequestSettings, RequestedChoice,
};
use toolcrib_core::run::{MemoryRuns, Seq};
use toolcrib_tool::{CallId, ToolResult};
use toolcrib_wire::model::{Item, ModelItem, Wire};

use crate::fixture::{Counts, builder, transcript};

fn look() -> ClientTool {
    let input_schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    ClientTool { name: "look".to_owned(), description: "Look.".to_owned(), input_schema }
}

fn request(text: &str) -> ClientRequest {
    ClientRequest {
        input: vec![Item::user(text)],
        settings: RequestSettings { tools: vec![look()], ..RequestSettings::default() },
        ..ClientRequest::default()
    }
}

fn result(call: &str, text: &str) -> ToolResult {
    ToolResult::success(CallId::new(call), "look", text.into(), Duration::ZERO)
}

fn agent(counts: &Arc<Counts>, model: &Arc<ScriptedModel>, runs: &Arc<MemoryRuns>) -> Agent {
    builder(counts, Arc::clone(model) as _).journal(Arc::clone(runs) as _).build()
}

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str())).collect()
}

#[tokio::test]
async fn the_tools_of_a_request_are_handed_to_the_client_also_after_a_restart() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("look", json!({"at": "x"})).and_call("add", json!({"a": 1, "b": 2})),
        ScriptedTurn::text("There it is."),
    ]));
    let runs = Arc::new(MemoryRuns::new());
    let first = agent(&counts, &model, &runs);
    let run = first.begin_request(request("Look.")).await.unwrap().id().clone();
    let report = first.resume(&run).await.unwrap();
    assert_eq!((report.state(), counts.all()), (RunState::RequiresAction, [1, 0, 0]));
    let has: Vec<_> = report
        .run()
        .handed_over()
        .map(|(id, tool)| (id.as_str().to_owned(), tool.to_owned()))
        .collect();
    assert_eq!(has.len(), 1, "{has:?}");
    assert_eq!(has[0].1, "look");
    assert!(offered(&model.requests()[0]).contains(&"look"));

    let again = agent(&counts, &model, &runs);
    let version = report.run().version();
    let last: Seq = report.run().last_request().unwrap();
    for results in
        [vec![], vec![result("another", "a")], vec![result(&has[0].0, "a"), result("b", "b")]]
    {
        let wrong = ClientRequest { results, ..request("Well?") };
        let refused = again.add_request(&run, last, wrong).await;
        assert!(matches!(refused, Err(AgentError::NotNow { .. })), "{refused:?}");
    }
    assert_eq!(again.load(&run).await.unwrap().run().version(), version, "nothing was written");
    let right = ClientRequest { results: vec![result(&has[0].0, "a tree")], ..request("Well?") };
    again.add_request(&run, last, right.clone()).await.unwrap();
    let twice = again.add_request(&run, last, right).await;
    assert!(
        matches!(twice, Err(AgentError::NotNow { .. })),
        "another request came first: {twice:?}"
    );
    let report = again.resume(&run).await.unwrap();
    assert_eq!(report.text(), "There it is.");
    let said = transcript(&report);
    assert_eq!(
        said[3..6],
        [format!("{}: a tree", has[0].0), said[4].clone(), "User: Well?".to_owned()],
        "{said:?}"
    );
}

#[tokio::test]
async fn only_what_the_request_allows_is_offered_and_runs() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new([
        ScriptedTurn::call("write", json!({})),
        ScriptedTurn::text("No."),
    ]));
    let runs = Arc::new(MemoryRuns::new());
    let agent = agent(&counts, &model, &runs);
    let mut only = request("Write.");
    only.settings.allowed = Some(vec!["add".to_owned(), "look".to_owned()]);
    only.settings.instructions = Some("Be brief.".to_owned());
    let run = agent.begin_request(only).await.unwrap().id().clone();
    let report = agent.resume(&run).await.unwrap();
    assert_eq!((report.text(), counts.all()), ("No.", [0, 0, 0]));
    let requests = model.requests();
    assert_eq!(offered(&requests[0]), ["add", "look"], "{}", requests[0]);
    assert!(requests[0].to_string().contains("Use the tools.\\n\\nBe brief."), "{}", requests[0]);
    assert!(transcript(&report)[2].contains("does not allow"), "{:?}", transcript(&report));

    let mut none = request("And now?");
    none.settings.choice = RequestedChoice::None;
    let last = report.run().last_request().unwrap();
    assert!(agent.add_request(&run, last, none).await.is_ok());
}

#[tokio::test]
async fn calls_in_the_history_of_a_client_are_never_run() {
    let counts = Arc::new(Counts::default());
    let model = Arc::new(ScriptedModel::new([ScriptedTurn::text("Fine.")]));
    let runs = Arc::new(MemoryRuns::new());
    let agent = agent(&counts, &model, &runs);
    let call =
        json!({"type": "function_call", "call_id": "call_1", "name": "write", "arguments": "{}"});
    let call = ModelItem::read(Wire::Responses, "client", call.to_string()).unwrap();
    let alone = ClientRequest { history: vec![call.clone().into()], ..request("Go on.") };
    assert!(agent.begin_request(alone).await.is_err(), "a call needs its result");
    let output = ToolResult::success(CallId::new("call_1"), "write", "ok".into(), Duration::ZERO);
    let history = vec![Item::user("Write."), call.into(), output.into()];
    let begun = agent.begin_request(ClientRequest { history, ..request("Go on.") }).await.unwrap();
    let report = agent.resume(begun.id()).await.unwrap();
    assert_eq!((report.text(), counts.all()), ("Fine.", [0, 0, 0]));
    assert_eq!(report.run().conversation().len(), 5);
}
