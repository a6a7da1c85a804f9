//! Sub-agents of runs over HTTP.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply};

use super::served::{ADA, EVE, by, path, with_tokens};
use super::sub_agents::{offered, task, with_agents};
use crate::harness::http::Http;

/// The config of an agent with a helper, which notes what it is told, and of one without.
fn agents(helper: &ModelServer) -> String {
    format!(
        "  other: {{kind: chat, base_url: '{}'}}\n\
         toolsets:\n  own: {{include: [{{names: [note, say]}}]}}\n\
         agents:\n  default: {{model: script/scripted, sub_agents: [helper]}}\n  \
         helper: {{model: other/scripted, instruction: You help.}}\n  alone: {{model: script/scripted}}\n",
        helper.base_url()
    )
}

async fn helper() -> ModelServer {
    let replies = [Reply::call("note", json!({"text": "x"})), Reply::text("The helper is done.")];
    ModelServer::start(Wire::Chat, replies).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_sub_agent_waits_under_the_run_of_its_agent_and_is_decided_there() {
    let helper = helper().await;
    let (model, crib) = with_agents([task(), Reply::text("It is noted.")], &agents(&helper)).await;
    with_tokens(
        &crib,
        "ada: {HASH, rights: [call, approve], toolset: own}, eve: {HASH, rights: [call, approve]}",
    );
    let server = Http::start(&crib, "");
    let by = |token: &str, line: &str, body: Option<&Value>| by(&server, token, line, body);
    let run = by(ADA, "POST /v1/runs", Some(&json!({"input": "Let the helper note x."}))).json();
    assert_eq!(run["status"], "requires_action", "{run}");
    let (path, call) = (path(&run), run["waiting"][0].clone());
    assert_eq!((&call["tool"], run["waiting"].as_array().map(Vec::len)), (&json!("note"), Some(1)));
    for tool in ["new_task", "multi_agent", "note"] {
        assert!(offered(&model, 0).contains(&tool.to_owned()), "{tool}: {:?}", offered(&model, 0));
    }
    assert!(!offered(&model, 0).contains(&"nap".to_owned()), "not in the client's toolset");
    let tools = offered(&helper, 0);
    assert!(
        !tools.contains(&"new_task".to_owned()) && tools.contains(&"note".to_owned()),
        "{tools:?}"
    );

    // The helper's own run can be read, and only its agent's run can be continued or ended.
    let rows = by(ADA, &format!("GET {path}/events"), None).body;
    let list = by(ADA, "GET /v1/runs", None).json();
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(1), "{list}");
    let approval = json!({"id": call["id"], "decision": "approve"});
    assert_eq!(by(EVE, &format!("POST {path}/resolve"), Some(&approval)).status, 404);
    let resolved = by(ADA, &format!("POST {path}/resolve"), Some(&approval));
    assert_eq!(resolved.status, 200, "{}", resolved.body);
    let run = by(ADA, &format!("POST {path}/resume"), None).json();
    assert_eq!(
        (&run["status"], &run["text"]),
        (&json!("completed"), &json!("It is noted.")),
        "{run} {rows}"
    );
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("the note"), "x\n", "it ran once");

    let rows = by(ADA, &format!("GET {path}/events"), None).json();
    let mut rows = rows["rows"].as_array().expect("rows").iter();
    let child = rows.find_map(|row| row["entry"]["child_finished"]["end"]["run"].as_str());
    let child = format!("/v1/runs/{}", child.expect("the helper's run"));
    let shown = by(ADA, &format!("GET {child}"), None).json();
    assert_eq!(
        (shown["parent"].as_str(), &shown["text"]),
        (run["id"].as_str(), &json!("The helper is done."))
    );
    for (line, body) in [
        (format!("POST {child}/resume"), Some(json!({"input": "Again."}))),
        (format!("POST {child}/steer"), Some(json!({"input": "Again."}))),
        (format!("POST {child}/cancel"), None),
        (format!("DELETE {child}"), None),
    ] {
        let refused = by(ADA, &line, body.as_ref());
        assert_eq!(refused.status, 409, "{line}: {}", refused.body);
    }
    assert_eq!(by(ADA, &format!("DELETE {path}"), None).status, 200);
    assert_eq!(
        by(ADA, &format!("GET {child}"), None).status,
        404,
        "it is removed with its agent's run"
    );
    assert_eq!((model.violations(), helper.violations()), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_new_task_is_approved_among_all_approvals_of_a_server() {
    let helper = helper().await;
    let (_model, crib) = with_agents([task(), Reply::text("It is noted.")], &agents(&helper)).await;
    let server = Http::start(&crib, "");
    let run = server.ask("POST /v1/runs", Some(&json!({"input": "Let the helper note x."}))).json();
    let list = server.ask("GET /v1/approvals", None).json();
    let call = list["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{list}"));
    assert_eq!(
        (&run["waiting"][0]["id"], &list["approvals"][0]["tool"]),
        (&json!(call), &json!("note"))
    );
    let line = format!("POST /v1/approvals/{call}");
    let approved = server.ask(&line, Some(&json!({"decision": "approve"})));
    assert_eq!(approved.status, 200, "{}", approved.body);
    let run = server.ask(&format!("POST {}/resume", path(&run)), None).json();
    assert_eq!(run["text"], "It is noted.", "{run}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("the note"), "x\n", "it ran once");
    let again = server.ask(&line, Some(&json!({"decision": "deny"})));
    assert_eq!(again.status, 409, "{}", again.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_elsewhere_reaches_a_sub_agent_after_a_restart() {
    let helper = helper().await;
    let (model, crib) = with_agents([task(), Reply::text("It is noted.")], &agents(&helper)).await;
    let first = Http::start(&crib, "");
    let run = first.ask("POST /v1/runs", Some(&json!({"input": "Let the helper note x."}))).json();
    let path = path(&run);
    drop(first);
    let second = Http::start(&crib, "");
    let list = crib.run(&["approvals", "--json"]).json();
    let call = list["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{list}")).to_owned();
    assert_eq!(run["waiting"][0]["id"], call.as_str());
    let approved = crib.run(&["approvals", "approve", &call]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let run = second.ask(&format!("POST {path}/resume"), None).json();
    assert_eq!(
        (&run["status"], &run["text"]),
        (&json!("completed"), &json!("It is noted.")),
        "{run}"
    );
    let noted = std::fs::read_to_string(crib.path().join("notes.txt"));
    assert_eq!(noted.expect("the note"), "x\n", "it ran once");
    assert_eq!((model.violations(), helper.violations()), (Vec::new(), Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_for_sub_agents_exist_for_runs_of_agents_that_have_some_and_for_nothing_else() {
    let helper = helper().await;
    let (model, crib) =
        with_agents([Reply::text("Alone."), Reply::text("Alone.")], &agents(&helper)).await;
    let server = Http::start(&crib, "");
    let tools = server.ask("GET /v1/tools", None).json();
    let prompt = server.ask("GET /v1/prompt", None).body;
    let found = server.ask("GET /v1/search?q=give+a+task+to+another+agent&limit=100", None).body;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mcp = server
        .ask(
            "POST /mcp HTTP/1.1\r\naccept: application/json, text/event-stream\r\nx-rest:",
            Some(&list),
        )
        .body;
    assert!(mcp.contains("calculator"), "{mcp}");
    for tool in ["new_task", "multi_agent"] {
        for listing in [&tools.to_string(), &prompt, &found, &mcp] {
            assert!(!listing.contains(tool), "{tool}: {listing}");
        }
        assert_eq!(server.ask(&format!("GET /v1/tools/{tool}"), None).status, 404);
        let arguments = json!({"arguments": {"tasks": [], "agent_name": "helper", "task_name": "x", "input": "x"}});
        let call = server.ask(&format!("POST /v1/tools/{tool}/call"), Some(&arguments));
        assert_eq!(call.status, 404, "{}", call.body);
    }
    let health = server.ask("GET /health", None).json();
    assert_eq!(
        health["tools"].as_u64(),
        tools["tools"].as_array().map(|all| all.len() as u64),
        "{health}"
    );
    for start in
        [json!({"input": "x", "agent": "alone"}), json!({"input": "x", "model": "script/scripted"})]
    {
        let run = server.ask("POST /v1/runs", Some(&start)).json();
        let request = model.requests().len() - 1;
        for tool in ["new_task", "multi_agent"] {
            assert!(!offered(&model, request).contains(&tool.to_owned()), "{tool}: {run}");
        }
    }
    assert_eq!(helper.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_beginning_needs_approval_begins_when_that_is_given_among_all_approvals() {
    let answers = [Reply::text("The helper is done."), Reply::text("Never.")];
    let helper = ModelServer::start(Wire::Chat, answers).await;
    let replies = [task(), task(), Reply::text("It is done.")];
    let policy = "policy: {rules: [{tool: new_task, action: ask}]}\n";
    let agents = agents(&helper);
    let (model, crib) = with_agents(replies, &format!("{agents}{policy}")).await;
    let mut server = Http::start(&crib, "");
    let run = server.ask("POST /v1/runs", Some(&json!({"input": "Let the helper work."}))).json();
    let path = path(&run);
    let decide = |server: &Http, decision: &Value| {
        let list = server.ask("GET /v1/approvals", None).json();
        let waiting = &list["approvals"][0];
        assert_eq!(
            (&waiting["tool"], list["approvals"].as_array().map(Vec::len)),
            (&json!("new_task"), Some(1))
        );
        let call = waiting["id"].as_str().expect("an id");
        let decided = server.ask(&format!("POST /v1/approvals/{call}"), Some(decision));
        assert_eq!(decided.status, 200, "{}", decided.body);
    };
    assert!(helper.requests().is_empty(), "nothing begins before");
    decide(&server, &json!({"decision": "approve"}));
    // The task is begun by whoever continues the run, also after a restart.
    server.server.signal("KILL");
    server.server.ended();
    drop(server);
    let server = Http::start(&crib, "");
    let run = server.ask(&format!("POST {path}/resume"), None).json();
    let waits = (&run["status"], &run["waiting"][0]["tool"]);
    assert_eq!(waits, (&json!("requires_action"), &json!("new_task")), "{run}");
    let told = &model.requests()[1].text;
    assert!(told.contains("The helper is done."), "{told}");
    assert_eq!(helper.requests().len(), 1);
    decide(&server, &json!({"decision": "deny", "message": "Not now."}));
    let run = server.ask(&format!("POST {path}/resume"), None).json();
    let ended = (&run["status"], &run["text"]);
    assert_eq!(ended, (&json!("completed"), &json!("It is done.")), "{run}");
    assert!(model.requests()[2].text.contains("Not now."));
    assert_eq!(helper.requests().len(), 1, "it was denied");
    assert_eq!(run["usage"]["turns"], 4, "with that of the helper: {run}");
}
