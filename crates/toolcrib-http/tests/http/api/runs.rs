//! Runs over HTTP: calls that wait for the client or for approval, and abandoned calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_http::{Right, ServerConfig};
use toolcrib_tool::{CallContext, Layer, Source, ToolCall, ToolDefinition, ToolEntry, tool_fn};

use crate::fixture::{Running, client, config, start, start_with};
use crate::raw_client::{Ask, Reply};

async fn ask(server: &Running, line: &str, body: &Value) -> Reply {
    Ask::api(server.address, line).json(body).send().await
}

fn id_of(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_call_of_a_client_tool_waits_until_its_output_is_submitted() {
    let server = start(config()).await;
    let calls = json!({"calls": [
        {"tool": "greet", "arguments": {"name": "Ada"}},
        {"tool": "pick", "call_id": "p", "arguments": {"filter": "*.txt"}},
    ]});
    let made = ask(&server, "POST /v1/runs", &calls).await;
    assert_eq!(made.status, 201);
    let run = made.json();
    let place = format!("/v1/runs/{}", id_of(&run));
    assert_eq!(made.header("location"), Some(place.as_str()));
    assert_eq!(run["status"], "requires_action");
    assert_eq!(run["required_action"]["type"], "submit_tool_outputs");
    let outstanding = &run["required_action"]["submit_tool_outputs"]["tool_calls"];
    assert_eq!(outstanding[0]["id"], "p");
    assert_eq!(run["results"][0]["output"], "Hello, Ada!", "the others have finished");

    let submit = format!("POST {place}/submit_tool_outputs");
    let missing = ask(&server, &submit, &json!({"tool_outputs": []})).await;
    assert_eq!(missing.status, 422);
    assert!(missing.problem().contains("missing: p"), "{}", missing.body);
    let unknown = json!({"tool_outputs": [{"tool_call_id": "q", "output": "x"}]});
    assert!(ask(&server, &submit, &unknown).await.problem().contains("the id q"));

    let output = json!({"tool_outputs": [{"tool_call_id": "p", "output": "a.txt"}]});
    let over = ask(&server, &submit, &output).await.json();
    assert_eq!(
        (&over["status"], &over["results"][1]["output"]),
        (&json!("completed"), &json!("a.txt"))
    );
    let shown = Ask::api(server.address, &format!("GET {place}")).send().await.json();
    assert_eq!(shown, over);
    let list = Ask::api(server.address, "GET /v1/runs").send().await.json();
    assert_eq!(list["runs"], json!([over]));
    server.end().await;
}

#[tokio::test]
async fn a_call_that_needs_approval_is_a_202_and_continues_once_approved() {
    let server = start(config()).await;
    let body = json!({"arguments": {"path": "a"}, "call_id": "r"});
    let waits = ask(&server, "POST /v1/tools/remove/call", &body).await;
    assert_eq!(waits.status, 202);
    let run = waits.json();
    let waiting = &run["waiting"][0];
    assert_eq!((&waiting["type"], &waiting["tool"]), (&json!("approval"), &json!("remove")));
    let resolve = format!("POST /v1/runs/{}/resolve", id_of(&run));
    let decide = |more: Value| {
        let mut body = json!({"id": waiting["id"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (body, status) in [
        (decide(json!({})), 422),
        (decide(json!({"decision": "approve", "answer": 1})), 422),
        (decide(json!({"decision": "perhaps"})), 422),
        (decide(json!({"answer": 1})), 422),
        (json!({"id": "0", "decision": "approve"}), 404),
    ] {
        let refused = ask(&server, &resolve, &body).await;
        assert_eq!(refused.status, status, "{body}: {}", refused.body);
    }
    let changed = decide(json!({"decision": "approve", "arguments": {"path": "b"}}));
    let over = ask(&server, &resolve, &changed).await.json();
    assert_eq!(over["status"], "completed");
    assert_eq!(over["results"][0]["output"], r#"removed {"path":"b"}"#);
    assert_eq!(ask(&server, &resolve, &changed).await.status, 409, "a decision is good once");
    server.end().await;
}

/// A tool that asks for a removal, and reports how often it has begun.
pub(crate) fn cleaning() -> ToolEntry {
    let begun = Arc::new(AtomicUsize::new(0));
    let body = tool_fn(move |_: Value, cx: CallContext| {
        let times = begun.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            cx.stream("cleaning").await;
            let removed = cx.call(ToolCall::new("n", "remove", json!({"path": "a"}))).await;
            format!("{times}: {}", removed.text())
        }
    });
    let definition = ToolDefinition::builder("clean").description("Clean up.");
    let source = Source::new(Layer::Host, "test");
    ToolEntry::new(definition.build().unwrap(), Arc::new(body), source)
}

#[tokio::test]
async fn a_tool_whose_nested_call_needs_approval_waits_and_continues() {
    let server = start_with(config(), [cleaning()]).await;
    let waits = ask(&server, "POST /v1/tools/clean/call", &json!({"call_id": "c"})).await;
    assert_eq!(waits.status, 202, "{}", waits.body);
    let run = waits.json();
    assert_eq!(
        (&run["waiting"][0]["tool"], &run["waiting"][0]["call_id"]),
        (&json!("remove"), &json!("c"))
    );
    let list = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    let text = list["approvals"][0]["text"].as_str().unwrap();
    assert!(text.contains("called by: clean"), "{text}");
    let approve = json!({"id": run["waiting"][0]["id"], "decision": "approve"});
    let resolve = format!("POST /v1/runs/{}/resolve", id_of(&run));
    let over = ask(&server, &resolve, &approve).await.json();
    let result = &over["results"][0];
    assert_eq!(result["output"], r#"1: removed {"path":"a"}"#, "{over}");
    assert_eq!((&result["call_id"], &result["tool"]), (&json!("c"), &json!("clean")));
    server.end().await;
}

#[tokio::test]
async fn a_stream_of_events_ends_when_its_tool_waits_for_somebody() {
    let server = start_with(config(), [cleaning()]).await;
    let stream = Ask::api(server.address, "POST /v1/tools/clean/call").events();
    let events = tokio::time::timeout(Duration::from_secs(10), stream).await.expect("it ends");
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"call.output"), "{names:?}");
    assert_eq!(names.last(), Some(&"run"));
    server.end().await;
}

#[tokio::test]
async fn a_call_through_tool_call_waits_once_and_is_answered_as_its_result() {
    let server = start_with(config(), toolcrib_core::meta::meta_entries()).await;
    let body = json!({
        "arguments": {"name": "remove", "arguments": {"path": "a"}},
        "call_id": "r",
    });
    let waits = ask(&server, "POST /v1/tools/tool_call/call", &body).await;
    assert_eq!(waits.status, 202, "{}", waits.body);
    let run = waits.json();
    assert_eq!(run["waiting"].as_array().map(Vec::len), Some(1), "{run}");
    let waiting = &run["waiting"][0];
    assert_eq!((&waiting["type"], &waiting["tool"]), (&json!("approval"), &json!("remove")));
    let list = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    assert_eq!(list["approvals"].as_array().map(Vec::len), Some(1), "{list}");
    let approve = json!({"id": waiting["id"], "decision": "approve"});
    let resolve = format!("POST /v1/runs/{}/resolve", id_of(&run));
    let over = ask(&server, &resolve, &approve).await.json();
    assert_eq!(over["status"], "completed", "{over}");
    let result = &over["results"][0];
    assert_eq!(result["output"], r#"removed {"path":"a"}"#);
    assert_eq!((&result["call_id"], &result["tool"]), (&json!("r"), &json!("tool_call")));
    server.end().await;
}

#[tokio::test]
async fn callers_cannot_approve_and_runs_are_private() {
    let with = |rights: &[Right], user: &str| {
        let (rights, user) = (rights.to_vec(), json!(user));
        move |client: &mut toolcrib_http::ClientConfig| {
            client.rights = rights;
            client.context = [("user".to_owned(), user)].into();
        }
    };
    let tokens = [
        client("agent", with(&[Right::Call], "ada")),
        client("person", with(&[Right::Call, Right::Approve], "ada")),
        client("stranger", with(&[Right::Call, Right::Approve], "eve")),
    ];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    let ask = |who: &str, line: String, body: Value| {
        Ask::new(server.address, &line).of(who).json(&body).send()
    };
    let run = ask("agent", "POST /v1/tools/remove/call".into(), json!({})).await.json();
    let path = format!("/v1/runs/{}", id_of(&run));
    let approve = json!({"id": run["waiting"][0]["id"], "decision": "approve"});
    let resolve = format!("POST {path}/resolve");
    let refused = ask("agent", resolve.clone(), approve.clone()).await;
    assert_eq!(refused.status, 403);
    // An agent that reads this must not be told to ask for the right to approve its own calls.
    assert!(!refused.body.contains("add") && !refused.body.contains("grant"), "{}", refused.body);
    let listed = Ask::new(server.address, "GET /v1/approvals").of("agent").send().await;
    assert_eq!(listed.status, 403);
    assert!(listed.problem().ends_with(
        "lacks the right `approve`: a person decides on waiting calls, not the client that \
         made them"
    ));
    assert_eq!(ask("stranger", resolve.clone(), approve.clone()).await.status, 404);
    let shown = Ask::new(server.address, &format!("GET {path}")).of("stranger").send().await;
    assert_eq!(shown.status, 404);
    let none = Ask::new(server.address, "GET /v1/runs").of("stranger").send().await.json();
    assert_eq!(none["runs"], json!([]));
    let over = ask("person", resolve, approve).await.json();
    assert_eq!(over["status"], "completed");
    let shown = Ask::new(server.address, &format!("GET {path}")).of("agent").send().await.json();
    assert_eq!(shown["results"][0]["success"], true);
    server.end().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled_answers_every_call() {
    let server = start(config()).await;
    let calls = json!({"calls": [{"tool": "pick"}, {"tool": "remove"}]});
    let run = ask(&server, "POST /v1/batch", &calls).await;
    assert_eq!(run.status, 202);
    let path = format!("/v1/runs/{}", id_of(&run.json()));
    let over = Ask::api(server.address, &format!("POST {path}/cancel")).send().await.json();
    assert_eq!(over["status"], "cancelled");
    let kinds: Vec<_> = (0..2).map(|n| over["results"][n]["error"]["kind"].clone()).collect();
    assert_eq!(kinds, ["cancelled", "cancelled"]);
    // A second cancellation is told who was first.
    let late = Ask::api(server.address, &format!("POST {path}/cancel")).send().await;
    assert_eq!(late.status, 409, "{late:?}");
    assert!(late.body.contains("\"kind\":\"already_resolved\""), "{late:?}");
    assert!(late.problem().contains("the call was cancelled by "), "{late:?}");
    assert_eq!(Ask::api(server.address, "GET /v1/runs/none").send().await.status, 404);
    server.end().await;
}

#[tokio::test]
async fn approvers_decide_on_calls_of_others_and_the_caller_gets_the_answer() {
    let with = |rights: &[Right], tenant: &str| {
        let (rights, tenant) = (rights.to_vec(), json!(tenant));
        move |client: &mut toolcrib_http::ClientConfig| {
            client.rights = rights;
            client.context = [("tenant".to_owned(), tenant)].into();
        }
    };
    let tokens = [
        client("agent", with(&[Right::Call], "acme")),
        client("person", with(&[Right::Call, Right::Approve], "acme")),
        client("narrow", |client| {
            with(&[Right::Approve], "acme")(client);
            client.toolset = Some("echoes".into());
        }),
        client("stranger", with(&[Right::Call, Right::Approve], "other")),
    ];
    let server = start(ServerConfig { tokens: tokens.into(), ..config() }).await;
    let ask = |who: &str, line: String, body: Value| {
        Ask::new(server.address, &line).of(who).json(&body).send()
    };
    let get = |who: &str, line: String| Ask::new(server.address, &line).of(who).send();
    let body = json!({"arguments": {"path": "a"}, "call_id": "r"});
    let run = ask("agent", "POST /v1/tools/remove/call".into(), body).await.json();
    assert_eq!(run["waiting"][0]["arguments"], json!({"path": "a"}), "{run}");
    let path = format!("/v1/runs/{}", id_of(&run));
    let id = run["waiting"][0]["id"].as_str().unwrap().to_owned();
    let approval = format!("/v1/approvals/{id}");
    let yes = json!({"decision": "approve"});

    assert_eq!(get("agent", "GET /v1/approvals".into()).await.status, 403);
    assert_eq!(ask("agent", format!("POST {approval}"), yes.clone()).await.status, 403);
    for blind in ["narrow", "stranger"] {
        let list = get(blind, "GET /v1/approvals".into()).await.json();
        assert_eq!(list["approvals"], json!([]), "{blind}");
        assert_eq!(get(blind, format!("GET {approval}")).await.status, 404);
        assert_eq!(ask(blind, format!("POST {approval}"), yes.clone()).await.status, 404);
    }
    let operators = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    let list = get("person", "GET /v1/approvals".into()).await.json();
    assert_eq!(list, operators);
    let shown = &list["approvals"][0];
    assert_eq!((&shown["id"], &shown["tool"]), (&json!(id), &json!("remove")));
    assert_eq!(shown["arguments"], json!({"path": "a"}));
    assert_eq!(shown["asker"], json!({"tenant": "acme", "user": "agent", "client": "agent"}));
    assert!(shown["text"].as_str().unwrap().contains(r#"client "agent""#), "{shown}");
    assert_eq!(get("person", format!("GET {approval}")).await.json(), *shown);

    for (wrong, status) in [
        (json!({"decision": "perhaps"}), 422),
        (json!({"decision": "approve", "message": "no"}), 422),
        (json!({"decision": "deny", "arguments": {}}), 422),
    ] {
        let refused = ask("person", format!("POST {approval}"), wrong.clone()).await;
        assert_eq!(refused.status, status, "{wrong}: {}", refused.body);
    }
    let changed = json!({"decision": "approve", "arguments": {"path": "b"}});
    let decided = ask("person", format!("POST {approval}"), changed).await;
    let outcome = json!({"status": "succeeded"});
    let answer = json!({"id": id, "decision": "approve", "outcome": outcome});
    assert_eq!(decided.json(), answer);
    let over = loop {
        let run = get("agent", format!("GET {path}")).await.json();
        if run["status"] != "requires_action" {
            break run;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(over["status"], "completed");
    assert_eq!(
        (&over["results"][0]["call_id"], &over["results"][0]["success"]),
        (&json!("r"), &json!(true))
    );
    assert_eq!(ask("person", format!("POST {approval}"), yes).await.status, 409);
    let list = get("person", "GET /v1/approvals".into()).await.json();
    assert_eq!(list["approvals"], json!([]));
    server.end().await;
}

#[tokio::test]
async fn a_list_of_runs_comes_in_pages_and_shows_what_was_decided() {
    let server = start(config()).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let waits = ask(&server, "POST /v1/tools/remove/call", &json!({"arguments": {}})).await;
        ids.push(id_of(&waits.json()));
        // Lists have runs of the same millisecond in no certain order.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Somebody decides on a call, and nobody has read its run since.
    let approvals = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    let line = format!("POST /v1/approvals/{}", approvals["approvals"][1]["id"].as_str().unwrap());
    assert_eq!(ask(&server, &line, &json!({"decision": "approve"})).await.status, 200);

    let page = Ask::api(server.address, "GET /v1/runs?limit=2").send().await.json();
    let of = |page: &Value, key: &str| -> Vec<Value> {
        page["runs"].as_array().unwrap().iter().map(|run| run[key].clone()).collect()
    };
    assert_eq!(of(&page, "id"), ids[..2]);
    assert_eq!(of(&page, "status"), ["requires_action", "completed"]);
    let mut seen = of(&page, "id");
    let mut next = page["next"].as_str().map(str::to_owned);
    while let Some(after) = next {
        let line = format!("GET /v1/runs?limit=2&after={after}");
        let page = Ask::api(server.address, &line).send().await.json();
        seen.extend(of(&page, "id"));
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, ids);
    for bad in ["limit=101", "limit=0", "after=x", "before=x"] {
        let refused = Ask::api(server.address, &format!("GET /v1/runs?{bad}")).send().await;
        assert_eq!(refused.status, 422, "{bad}");
    }
    server.end().await;
}

#[tokio::test]
async fn removing_a_run_cancels_it() {
    let tokens = [client("bob", |_| {})].into();
    let server = start(ServerConfig { tokens, ..config() }).await;
    let waits = ask(&server, "POST /v1/tools/remove/call", &json!({"arguments": {}})).await;
    let line = format!("DELETE /v1/runs/{}", id_of(&waits.json()));
    assert_eq!(Ask::api(server.address, &line).of("bob").send().await.status, 404);
    assert_eq!(Ask::api(server.address, &line).send().await.status, 200);
    assert_eq!(Ask::api(server.address, &line).send().await.status, 404);
    let approvals = Ask::api(server.address, "GET /v1/approvals").send().await.json();
    assert_eq!(approvals["approvals"], json!([]));
    server.end().await;
}

#[tokio::test]
async fn a_client_at_its_limit_of_waiting_runs_is_refused() {
    let tokens = [client("ada", |_| {}), client("bob", |_| {})].into();
    let server = start(ServerConfig { tokens, ..config() }).await;
    let wait = |who: &str| {
        let body = json!({"arguments": {}});
        Ask::api(server.address, "POST /v1/tools/remove/call").json(&body).of(who)
    };
    for _ in 0..crate::fixture::RUNS {
        assert_eq!(wait("ada").send().await.status, 202);
    }
    let key = wait("ada").with("idempotency-key", "k");
    let refused = key.clone().send().await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains(r#""kind":"unavailable""#), "{}", refused.body);
    assert!(refused.problem().contains("this client has 30 calls that wait"), "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(wait("bob").send().await.status, 202);
    // Nothing was done with the key, so it is done once there is room.
    let runs = Ask::api(server.address, "GET /v1/runs?limit=1").of("ada").send().await.json();
    let line = format!("DELETE /v1/runs/{}", id_of(&runs["runs"][0]));
    assert_eq!(Ask::api(server.address, &line).of("ada").send().await.status, 200);
    assert_eq!(key.send().await.status, 202);
    server.end().await;
}
