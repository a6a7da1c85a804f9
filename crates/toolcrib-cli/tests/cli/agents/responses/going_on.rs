//! How clients of OpenAI's protocols go on: with a stream after a restart, with a chat, with decisions, and with outputs.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply as ModelReply};

use super::{MODEL, events, served, streamed, text_of};
use crate::agents::following::Events;
use crate::agents::served::{post, wait_for};
use crate::agents::sub_agents::{task, with_agents};
use crate::harness::http::Http;

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap_or_else(|| panic!("{response}")))
}

fn number(event: &Value) -> u64 {
    event["sequence_number"].as_u64().unwrap_or_else(|| panic!("{event}"))
}

/// The finished items and the end of a response, with their numbers.
fn ends(events: &[Value]) -> Vec<(u64, Value)> {
    let is_end = |event: &&Value| {
        event["type"] == "response.output_item.done" || event["type"] == "response.completed"
    };
    let item = |event: &Value| (number(event), event["item"]["id"].clone());
    events.iter().filter(is_end).map(item).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_their_old_numbers_after_a_restart() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
        let replies = [
            ModelReply::call("say", json!({"text": "hi"})).with_text("I say it."),
            ModelReply::text("It is said, in some more words.").with_reasoning("What was said?"),
        ];
        let (_model, crib) = served(wire, replies).await;
        let first = Http::start(&crib, "");
        let before =
            streamed(&first, &json!({"model": "default", "input": "Say hi.", "stream": true}));
        let path = path(&before[0]["response"]);
        drop(first);
        let second = Http::start(&crib, "");
        let get = |after: &str| {
            let reply = second.ask(&format!("GET {path}?stream=true{after}"), None);
            events(&reply.body)
        };
        let after = get("");
        assert_eq!(ends(&after), ends(&before), "{wire}: {after:?} {before:?}");
        assert!(after.windows(2).all(|two| number(&two[0]) < number(&two[1])), "{wire}: {after:?}");
        // Whoever comes back misses nothing and gets nothing twice.
        for seen in &before {
            let rest = get(&format!("&starting_after={}", number(seen)));
            let expected: Vec<_> =
                ends(&before).into_iter().filter(|(end, _)| *end > number(seen)).collect();
            assert_eq!(ends(&rest), expected, "{wire}: {seen}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_taken_up_after_a_kill_repeats_no_number() {
    let replies = [
        ModelReply::call("nap", json!({})).with_text("I sleep for a while."),
        ModelReply::text("Slept well."),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    let mut first = Http::start(&crib, "");
    let ask = json!({"model": "default", "input": "Sleep.", "background": true, "stream": false});
    let (_, begun) = post(&first, "/v1/responses", &ask);
    let path = path(&begun);
    wait_for(&crib, "began");
    let mut open = Events::open(&first, &first.token, &format!("{path}?stream=true"), "");
    let mut seen = Vec::new();
    while seen.iter().all(|event: &Value| event["item"]["status"] != "completed") {
        seen.push(open.next().expect("an event").data);
    }
    first.server.signal("KILL");
    let _ = first.server.ended();
    std::fs::write(crib.path().join("awake"), "").expect("a file");

    let second = Http::start(&crib, "");
    let last = seen.last().map(number).expect("events");
    let reply = second.ask(&format!("GET {path}?stream=true&starting_after={last}"), None);
    let rest = events(&reply.body);
    assert!(rest.iter().all(|event| number(event) > last), "{rest:?}");
    assert!(rest.windows(2).all(|two| number(&two[0]) < number(&two[1])), "{rest:?}");
    let done = &rest.last().expect("events")["response"];
    assert_eq!((&done["status"], text_of(done)), (&json!("completed"), "Slept well."), "{done}");
    // What was seen and what follows are all items, each once.
    let all: Vec<_> = ends(&seen).into_iter().chain(ends(&rest)).map(|(_, id)| id).collect();
    let ids: Vec<_> =
        done["output"].as_array().expect("items").iter().map(|it| &it["id"]).collect();
    let all: Vec<_> = all.iter().filter(|id| !id.is_null()).collect();
    assert_eq!(all, ids, "{seen:?} {rest:?}");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_at_work_in_another_server_is_cancelled() {
    let (_model, crib) = served(Wire::Chat, [ModelReply::call("nap", json!({}))]).await;
    let (first, second) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let ask = json!({"model": "default", "input": "Sleep.", "background": true});
    let (_, begun) = post(&first, "/v1/responses", &ask);
    wait_for(&crib, "began");
    let path = path(&begun);
    let (status, cancelled) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")), "{cancelled}");
    let (status, again) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!((status, &again["status"]), (200, &json!("cancelled")), "{again}");
    assert_eq!(first.ask(&format!("GET {path}"), None).json()["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_chat_completion_has_the_calls_that_ran_here_in_their_place() {
    let replies = [
        ModelReply::call("say", json!({"text": "first"})),
        ModelReply::call("look", json!({"at": "x"})),
        ModelReply::call("say", json!({"text": "second"})),
        ModelReply::text("A tree."),
        ModelReply::text("Green."),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    let server = Http::start(&crib, "");
    let tool = json!({"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}});
    let complete = |messages: &[Value]| {
        let ask = json!({"model": "default", "messages": messages, "tools": [tool]});
        let (status, body) = post(&server, "/v1/chat/completions", &ask);
        (status, body["choices"][0]["message"].clone(), body)
    };
    let mut messages = vec![
        json!({"role": "system", "content": "Be kind."}),
        json!({"role": "user", "content": "Look at x."}),
    ];
    let (_, asked, whole) = complete(&messages);
    let call =
        asked["tool_calls"][0]["id"].as_str().unwrap_or_else(|| panic!("{whole}")).to_owned();
    assert!(call.len() > 40, "nobody guesses it: {call}");
    messages.push(asked);
    let mut forged = messages.clone();
    forged.push(
        json!({"role": "tool", "tool_call_id": call.replace("call_", "call_0"), "content": ""}),
    );
    assert_eq!(complete(&forged).0, 400);
    messages.push(json!({"role": "tool", "tool_call_id": call, "content": "a tree"}));
    let (status, said, whole) = complete(&messages);
    assert_eq!((status, &said["content"]), (200, &json!("A tree.")), "{whole}");
    messages.push(said);
    messages.push(json!({"role": "user", "content": "Its colour?"}));
    let (status, said, whole) = complete(&messages);
    assert_eq!((status, &said["content"]), (200, &json!("Green.")), "{whole}");

    let requests = model.requests();
    let roles = |at: usize| -> Vec<String> {
        let messages = requests[at].body["messages"].as_array().expect("messages").clone();
        let role = |one: &Value| {
            let names = one["tool_calls"].as_array().into_iter().flatten();
            let names: Vec<_> =
                names.filter_map(|call| call["function"]["name"].as_str()).collect();
            format!("{} {}", one["role"].as_str().unwrap_or_default(), names.join(","))
        };
        messages.iter().map(|one| role(one).trim().to_owned()).collect()
    };
    let last = roles(requests.len() - 1);
    let expected = [
        "system",
        "system",
        "user",
        "assistant say",
        "tool",
        "assistant look",
        "tool",
        "assistant say",
        "tool",
        "assistant",
        "user",
    ];
    assert_eq!(last, expected, "{}", requests[requests.len() - 1].text);
    let runs = server.ask("GET /v1/runs", None).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "one run all along: {runs}");
    let (_, run) = (0, &runs["runs"][0]["id"]);
    let line = format!("DELETE /v1/runs/{}", run.as_str().expect("an id"));
    assert_eq!(server.ask(&line, None).status, 200);
    let (status, _, gone) = complete(&messages);
    assert_eq!((status, &gone["error"]["code"]), (400, &json!("unknown_tool_call")), "{gone}");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_right_is_asked_for_approvals_of_sub_agents_too() {
    let helper = ModelServer::start(
        Wire::Chat,
        [ModelReply::call("note", json!({"text": "x"})), ModelReply::text("The helper is done.")],
    );
    let helper = helper.await;
    let agents = format!(
        "  other: {{kind: chat, base_url: '{}'}}\n\
         agents:\n  default: {{model: script/scripted, sub_agents: [helper]}}\n  \
         helper: {{model: other/scripted, instruction: You help.}}\n",
        helper.base_url()
    );
    let (_model, crib) = with_agents([task(), ModelReply::text("It is noted.")], &agents).await;
    let server = Http::start(&crib, "");
    let ask = json!({"model": "default", "input": "Let the helper note x."});
    let (_, first) = post(&server, "/v1/responses", &ask);
    let asked = first["output"].as_array().and_then(|output| output.last()).expect("an item");
    assert_eq!(
        (&first["status"], &asked["type"], &asked["name"]),
        (&json!("completed"), &json!("mcp_approval_request"), &json!("note")),
        "{first}"
    );
    let shown = server.ask(&format!("GET {}", path(&first)), None).json();
    assert_eq!(shown["output"], first["output"]);
    let answer = json!([{"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true}]);
    let next = json!({"model": "default", "previous_response_id": first["id"], "input": answer});
    let (status, second) = post(&server, "/v1/responses", &next);
    assert_eq!((status, text_of(&second)), (200, "It is noted."), "{second}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt")).expect("the notes");
    assert_eq!(noted, "x\n", "it ran once");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_a_client_of_responses_has_are_answered_at_the_run_too() {
    let replies = [ModelReply::call("look", json!({"at": "x"})), ModelReply::text("A tree.")];
    let (model, crib) = served(Wire::Responses, replies).await;
    let server = Http::start(&crib, "");
    let tool = json!({"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}});
    let (_, first) =
        post(&server, "/v1/responses", &json!({"model": MODEL, "input": "Look.", "tools": [tool]}));
    let runs = server.ask("GET /v1/runs", None).json();
    let run = format!("/v1/runs/{}", runs["runs"][0]["id"].as_str().expect("an id"));
    let shown = server.ask(&format!("GET {run}"), None).json();
    let waiting = &shown["waiting"][0];
    assert_eq!(
        (&shown["status"], &waiting["type"], &waiting["tool"], &waiting["arguments"]),
        (&json!("requires_action"), &json!("client"), &json!("look"), &json!({"at": "x"})),
        "{shown}"
    );
    let submit = |outputs: Value| {
        post(&server, &format!("{run}/submit_tool_outputs"), &json!({"tool_outputs": outputs}))
    };
    assert_eq!(submit(json!([])).0, 422);
    assert_eq!(submit(json!([{"tool_call_id": "call_none", "output": ""}])).0, 422);
    let (status, submitted) =
        submit(json!([{"tool_call_id": waiting["call_id"], "output": "a tree"}]));
    assert_eq!(status, 200, "{submitted}");
    let (status, done) = post(&server, &format!("{run}/resume"), &json!({}));
    assert_eq!((status, &done["text"]), (200, &json!("A tree.")), "{done}");
    assert!(model.requests()[1].text.contains("a tree"), "{}", model.requests()[1].text);
    // The first response is as it was.
    let shown = server.ask(&format!("GET {}", path(&first)), None).json();
    assert_eq!(shown["output"], first["output"]);
    assert_eq!(model.violations(), [""; 0]);
}
