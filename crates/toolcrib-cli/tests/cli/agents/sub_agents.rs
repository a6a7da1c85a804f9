//! Agents of the config that start others, and answers with a schema.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply};

use super::harness::served;
use super::resuming::id;
use crate::harness::crib::Crib;
use crate::harness::server::Server;

/// A served folder whose config has these agents.
pub(super) async fn with_agents(
    replies: impl IntoIterator<Item = Reply>,
    agents: &str,
) -> (ModelServer, Crib) {
    let (server, crib) = served(Wire::Chat, replies).await;
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("the config");
    let (before, _) = config.split_once("agents:\n").expect("agents");
    crib.config(&format!("{before}{agents}"));
    (server, crib)
}

/// The tools that a request offers.
pub(super) fn offered(server: &ModelServer, request: usize) -> Vec<String> {
    let body: Value = serde_json::from_str(&server.requests()[request].text).expect("JSON");
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["function"]["name"].as_str()).map(str::to_owned).collect()
}

pub(super) fn task() -> Reply {
    let task = json!({"agent_name": "helper", "task_name": "note", "input": "Note x."});
    Reply::call("new_task", task)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_sub_agent_waits_for_approval_and_its_answer_reaches_the_agent() {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("The helper is done.")];
    let helper = ModelServer::start(Wire::Chat, replies).await;
    let agents = format!(
        "  other: {{kind: chat, base_url: '{}'}}\n\
         toolsets:\n  own: {{include: [{{names: [note, say]}}]}}\n  little: {{include: [{{names: [note, bash]}}]}}\n\
         agents:\n  default: {{model: script/scripted, toolset: own, sub_agents: [helper]}}\n  \
         helper: {{model: other/scripted, instruction: You help., toolset: little}}\n",
        helper.base_url()
    );
    let (server, crib) = with_agents([task(), Reply::text("It is noted.")], &agents).await;
    let run = crib.run(&["run", "Let the helper note x."]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("note"), "{run:?}");
    assert!(!crib.path().join("notes.txt").exists());
    assert!(offered(&server, 0).contains(&"new_task".to_owned()), "{:?}", offered(&server, 0));
    assert!(offered(&server, 0).contains(&"multi_agent".to_owned()));
    assert!(helper.requests()[0].text.contains("You help."));
    let tools = offered(&helper, 0);
    assert!(tools.contains(&"note".to_owned()), "{tools:?}");
    for wider in ["bash", "say", "new_task", "multi_agent"] {
        assert!(!tools.contains(&wider.to_owned()), "{wider}: {tools:?}");
    }

    let serving = Server::start(&crib, &["serve", "--listen", "127.0.0.1:0"]);
    let waiting = crate::harness::crib::until(&crib, &["approvals", "--json"], |run| {
        run.code == Some(0) && run.json()["approvals"].as_array().is_some_and(|all| all.len() == 1)
    });
    let call = waiting.json()["approvals"][0]["id"].as_str().expect("an id").to_owned();
    let approved = crib.run(&["approvals", "approve", &call]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    drop(serving);
    let run = crib.run(&["run", "--resume", &id(&run)]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "It is noted.\n"), "{run:?}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("the note"), "x\n", "it ran once");
    let last = server.requests()[1].text.clone();
    assert!(last.contains("The helper is done."), "{last}");
    assert_eq!((server.violations(), helper.violations()), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_with_the_call_of_its_sub_agent_that_waits() {
    let agents = "agents:\n  default: {model: script/scripted, sub_agents: [helper]}\n  \
                  helper: {model: script/scripted}\n";
    let (_server, crib) =
        with_agents([task(), Reply::call("note", json!({"text": "x"}))], agents).await;
    let run = crib.run(&["run", "Let the helper note x."]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let shown = crib.run(&["runs", "show", "last"]);
    assert!(shown.stdout.contains(r#" note {"text":"x"}"#), "{shown:?}");
    assert!(!shown.stdout.contains("new_task"), "{shown:?}");
    let page = crib.run(&["runs", "show", "last", "--md"]);
    assert!(page.stdout.contains("Waits: `note`"), "{page:?}");
    let record = crib.run(&["runs", "show", "last", "--json"]).json();
    let listed = crib.run(&["runs", "list", "--json"]).json();
    assert_eq!(listed["runs"][0]["waiting"], record["waiting"], "{listed}");
    assert_eq!(record["waiting"][0]["arguments"], json!({"text": "x"}), "{record}");
    // It is the id by which the call is decided.
    let call = record["waiting"][0]["id"].as_str().expect("an id");
    assert!(run.stderr.contains(&format!("{call}: note")), "{run:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_sub_agents_is_not_offered_the_tools_for_them() {
    let (server, crib) = served(Wire::Chat, [task(), Reply::text("Alone.")]).await;
    let run = crib.run(&["run", "Hello."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Alone.\n"), "{run:?}");
    for tool in ["new_task", "multi_agent", "attempt_completion"] {
        assert!(!offered(&server, 0).contains(&tool.to_owned()), "{tool}");
    }
    assert_eq!(server.requests().len(), 2, "no other agent was started");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_match_its_schema_is_asked_for_again() {
    let agents = "agents:\n  default:\n    model: script/scripted\n    output_schema: {type: object, \
                  properties: {total: {type: integer}}, required: [total]}\n";
    let answer = |result: Value| Reply::call("attempt_completion", json!({"result": result}));
    let replies = [answer(json!({"sum": 3})), answer(json!({"total": 3}))];
    let (server, crib) = with_agents(replies, agents).await;
    let run = crib.run(&["run", "Add 1 and 2."]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "{\"total\":3}\n"), "{run:?}");
    assert_eq!(server.requests().len(), 2, "it was asked again once");
    assert!(server.requests()[1].text.contains("total"), "{run:?}");
    assert!(offered(&server, 0).contains(&"attempt_completion".to_owned()));
}
