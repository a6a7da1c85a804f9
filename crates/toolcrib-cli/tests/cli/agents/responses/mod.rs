//! OpenAI's Responses API: what clients get on a bare model and on an agent.

mod compacting;
mod compliance;
mod going_on;

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply as ModelReply};

use super::harness::crib;
use super::served::{ADA, EVE, by, post, with_tokens};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

pub(super) const MODEL: &str = "script/scripted";

/// A scripted server that several conversations use, and a folder whose agent uses it.
pub(super) async fn served(
    wire: Wire,
    replies: impl IntoIterator<Item = ModelReply>,
) -> (ModelServer, Crib) {
    let server = ModelServer::for_several(wire, replies).await;
    let crib = crib(wire, &server.base_url());
    (server, crib)
}

fn create(server: &Http, body: &Value) -> (u16, Value) {
    post(server, "/v1/responses", body)
}

/// The events of a stream, each of which came in one piece.
pub(super) fn events(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let (mut events, mut is_done) = (Vec::new(), false);
    for line in lines {
        assert!(!is_done, "nothing follows [DONE]: {body}");
        if line == "[DONE]" {
            is_done = true;
        } else {
            events
                .push(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
        }
    }
    assert!(is_done, "{body}");
    events
}

pub(super) fn streamed(server: &Http, body: &Value) -> Vec<Value> {
    let reply = server.ask("POST /v1/responses", Some(body));
    assert_eq!(reply.status, 200, "{}", reply.body);
    events(&reply.body)
}

/// Checks a stream by what the specification says: numbers without gaps, items added before they are done, and the same
/// items in the last event. Returns the response.
fn checked(events: &[Value]) -> Value {
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    assert_eq!(
        (&events[0]["type"], &events[1]["type"]),
        (&json!("response.created"), &json!("response.in_progress"))
    );
    let of = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["type"] == kind).collect()
    };
    let (added, done) = (of("response.output_item.added"), of("response.output_item.done"));
    assert_eq!(added.len(), done.len());
    let last = events.last().expect("events");
    let output = last["response"]["output"].as_array().expect("an output");
    assert_eq!(output.len(), done.len(), "{last}");
    for event in &done {
        let at = event["output_index"].as_u64().expect("a position");
        assert_eq!(output[usize::try_from(at).expect("small")], event["item"]);
        assert!(added.iter().any(|added| added["item"]["id"] == event["item"]["id"]), "{event}");
    }
    last["response"].clone()
}

pub(super) fn text_of(response: &Value) -> &str {
    let output = response["output"].as_array().expect("an output");
    let message = output.iter().rfind(|item| item["type"] == "message");
    message.and_then(|item| item["content"][0]["text"].as_str()).unwrap_or_default()
}

fn look() -> Value {
    json!({"type": "function", "name": "look", "description": "Look.", "strict": true,
           "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_answers_with_the_tools_of_the_request_only_and_goes_on_from_a_response() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic] {
        let replies = [
            ModelReply::text("Hello."),
            ModelReply::call("look", json!({"at": "x"})),
            ModelReply::text("A tree."),
            ModelReply::text("Another tree."),
        ];
        let (model, crib) = served(wire, replies).await;
        let server = Http::start(&crib, "");
        let (status, first) = create(
            &server,
            &json!({"model": MODEL, "input": "Hi.", "instructions": "Be kind.", "temperature": 0.5}),
        );
        assert_eq!((status, &first["status"]), (200, &json!("completed")), "{first}");
        assert_eq!((text_of(&first), &first["object"]), ("Hello.", &json!("response")));
        assert_eq!(
            (&first["temperature"], &first["tools"], &first["error"]),
            (&json!(0.5), &json!([]), &Value::Null)
        );
        assert!(first["usage"]["total_tokens"].as_u64().is_some_and(|all| all > 0), "{first}");

        let ask = json!({"model": MODEL, "input": "Look at x.", "tools": [look()], "stream": true,
                         "previous_response_id": first["id"]});
        let events = streamed(&server, &ask);
        let second = checked(&events);
        let call = second["output"]
            .as_array()
            .expect("items")
            .iter()
            .find(|item| item["type"] == "function_call");
        let call = call.unwrap_or_else(|| panic!("{second}"));
        assert_eq!(
            (&second["status"], &call["name"], &call["status"]),
            (&json!("completed"), &json!("look"), &json!("completed"))
        );
        let shown = server
            .ask(&format!("GET /v1/responses/{}", second["id"].as_str().expect("an id")), None)
            .json();
        assert_eq!(shown["output"], second["output"], "what is stored is what was sent");

        let answer = |output: &str| {
            json!({"model": MODEL, "previous_response_id": second["id"], "tools": [look()],
            "input": [{"type": "function_call_output", "call_id": call["call_id"], "output": output}]})
        };
        let mut wrong = answer("x");
        wrong["input"][0]["call_id"] = json!("zz");
        let (_, wrong) = create(&server, &wrong);
        let message = wrong["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("\"zz\"")
                && message.contains(call["call_id"].as_str().expect("an id")),
            "{wrong}"
        );
        let (status, none) = create(
            &server,
            &json!({"model": MODEL, "previous_response_id": second["id"], "input": "Well?"}),
        );
        assert_eq!(
            (status, &none["error"]["code"]),
            (400, &json!("missing_tool_output")),
            "{none}"
        );
        assert!(
            none["error"]["message"]
                .as_str()
                .is_some_and(|said| said.contains(call["call_id"].as_str().expect("an id")))
        );
        let (status, third) = create(&server, &answer("a tree"));
        assert_eq!((status, text_of(&third)), (200, "A tree."), "{third}");
        // The same again is another conversation.
        let (status, fork) = create(&server, &answer("a tree as well"));
        assert_eq!((status, text_of(&fork)), (200, "Another tree."), "{fork}");
        assert_ne!(fork["id"], third["id"]);

        let requests = model.requests();
        assert!(requests[0].body.to_string().contains("Be kind."), "{}", requests[0].body);
        assert!(
            !requests[0].body.to_string().contains("notes.txt"),
            "no tool of the server: {}",
            requests[0].body
        );
        assert!(
            !requests[1].body.to_string().contains("Be kind."),
            "instructions are those of one request"
        );
        assert!(requests[3].body.to_string().contains("a tree as well"), "{}", requests[3].body);
        let items = server
            .ask(
                &format!("GET /v1/responses/{}/input_items", second["id"].as_str().expect("an id")),
                None,
            )
            .json();
        assert_eq!(
            (&items["data"][0]["role"], &items["has_more"]),
            (&json!("user"), &json!(false)),
            "{items}"
        );
        assert_eq!(model.violations(), [""; 0], "{wire}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_an_agent_run_here_and_appear_as_calls_that_no_client_runs() {
    let replies = [
        ModelReply::call("say", json!({"text": "hi"})).and_call("look", json!({"at": "y"})),
        ModelReply::text("Done."),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    let server = Http::start(&crib, "");
    let taken = json!({"model": "default", "input": "x", "tools": [{"type": "function", "name": "say", "parameters": {}}]});
    let (status, refused) = create(&server, &taken);
    assert_eq!(
        (status, &refused["error"]["code"], &refused["error"]["param"]),
        (400, &json!("tool_name_taken"), &json!("tools[0].name")),
        "{refused}"
    );
    let first = checked(&streamed(
        &server,
        &json!({"model": "default", "input": "Go.", "tools": [look()], "stream": true}),
    ));
    let types: Vec<_> = first["output"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["type"].as_str().expect("a type"))
        .collect();
    assert_eq!(types, ["function_call", "mcp_call"], "{first}");
    let ran = &first["output"][1];
    assert_eq!(
        (&ran["server_label"], &ran["output"]),
        (&json!("toolcrib"), &json!("hi\n")),
        "{ran}"
    );
    let shown = server
        .ask(&format!("GET /v1/responses/{}", first["id"].as_str().expect("an id")), None)
        .json();
    assert_eq!(shown["output"], first["output"]);
    let answer = json!({"previous_response_id": first["id"], "tools": [look()], "stream": true,
        "input": [{"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "a tree"}]});
    let second = checked(&streamed(&server, &answer));
    assert_eq!((text_of(&second), &second["model"]), ("Done.", &json!("default")));
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_sends_as_history_is_never_run_and_nothing_is_kept_without_store() {
    let (model, crib) =
        served(Wire::Responses, [ModelReply::text("I see."), ModelReply::text("Yes.")]).await;
    let server = Http::start(&crib, "");
    let call = json!({"type": "function_call", "call_id": "call_9", "name": "say", "arguments": "{\"text\":\"x\"}"});
    let open = json!({"model": "default", "input": [{"role": "user", "content": "Say x."}, call]});
    let (status, refused) = create(&server, &open);
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("missing_tool_output")),
        "{refused}"
    );
    let unknown = json!({"model": "default", "input": [{"type": "function_call_output", "call_id": "call_8", "output": ""}]});
    let (status, refused) = create(&server, &unknown);
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("unknown_tool_output")),
        "{refused}"
    );

    let history = json!({"model": "default", "store": false, "input": [
        {"role": "user", "content": "Say x."}, call,
        {"type": "function_call_output", "call_id": "call_9", "output": "x"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Said."}], "phase": "final_answer"},
        {"role": "user", "content": "Was that all?"},
    ]});
    let (status, first) = create(&server, &history);
    assert_eq!(
        (status, text_of(&first), &first["store"]),
        (200, "I see.", &json!(false)),
        "{first}"
    );
    assert_eq!(first["output"].as_array().map(Vec::len), Some(1), "nothing was run: {first}");
    let id = first["id"].as_str().expect("an id");
    assert_eq!(server.ask(&format!("GET /v1/responses/{id}"), None).status, 404);
    let (status, refused) =
        create(&server, &json!({"model": "default", "input": "And?", "previous_response_id": id}));
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("previous_response_not_found")),
        "{refused}"
    );
    let runs = server.ask("GET /v1/runs", None).json();
    assert_eq!(runs["runs"], json!([]), "nothing is kept");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_shape_of_openai_and_responses_of_others_do_not_exist() {
    let (_model, crib) =
        served(Wire::Chat, [ModelReply::text("Hello."), ModelReply::status(401, "{}")]).await;
    with_tokens(&crib, "ada: {HASH, rights: [call]}, eve: {HASH, rights: [call]}");
    let server = Http::start(&crib, "");
    let ask = |token: &str, line: &str, body: Option<&Value>| {
        let reply = by(&server, token, line, body);
        (reply.status, reply.json())
    };
    let (status, nobody) =
        ask("nobody", "POST /v1/responses", Some(&json!({"model": MODEL, "input": "Hi."})));
    assert_eq!(
        (status, &nobody["error"]["type"]),
        (401, &json!("authentication_error")),
        "{nobody}"
    );
    let (status, hello) =
        ask(ADA, "POST /v1/responses", Some(&json!({"model": MODEL, "input": "Hi."})));
    assert_eq!(status, 200, "{hello}");
    let path = format!("/v1/responses/{}", hello["id"].as_str().expect("an id"));
    assert_eq!(ask(ADA, &format!("GET {path}"), None).0, 200);
    for line in
        [format!("GET {path}"), format!("POST {path}/cancel"), format!("GET {path}/input_items")]
    {
        let (status, none) = ask(EVE, &line, None);
        assert_eq!(
            (status, &none["error"]["code"]),
            (404, &json!("response_not_found")),
            "{line}: {none}"
        );
    }
    let next = json!({"model": MODEL, "input": "Hi.", "previous_response_id": hello["id"]});
    let (status, none) = ask(EVE, "POST /v1/responses", Some(&next));
    assert_eq!(
        (status, &none["error"]["code"]),
        (400, &json!("previous_response_not_found")),
        "{none}"
    );
    let (status, none) =
        ask(ADA, "POST /v1/responses", Some(&json!({"model": "nobody", "input": "Hi."})));
    assert_eq!((status, &none["error"]["code"]), (404, &json!("model_not_found")), "{none}");
    let (status, none) = ask(ADA, "POST /v1/responses", Some(&json!({"input": "Hi."})));
    assert_eq!((status, &none["error"]["param"]), (400, &json!("model")), "{none}");
    let (status, over) = ask(ADA, &format!("POST {path}/cancel"), None);
    assert_eq!((status, &over["error"]["code"]), (409, &json!("already_over")), "{over}");
    assert_eq!(ask(EVE, &format!("DELETE {path}"), None).0, 404);
    let (status, failed) = ask(ADA, "POST /v1/responses", Some(&next));
    assert_eq!(
        (status, &failed["status"], &failed["error"]["code"]),
        (200, &json!("failed"), &json!("model_error")),
        "{failed}"
    );
    let later = format!("/v1/responses/{}", failed["id"].as_str().expect("an id"));
    let (status, gone) = ask(ADA, &format!("DELETE {path}"), None);
    assert_eq!((status, &gone["deleted"]), (200, &json!(true)), "{gone}");
    assert_eq!(ask(ADA, &format!("GET {path}"), None).0, 404);
    assert_eq!(ask(ADA, &format!("GET {later}"), None).0, 200, "what went on from it stays");
    assert_eq!(ask(ADA, "GET /v1/runs", None).1["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(ask(ADA, &format!("DELETE {later}"), None).0, 200);
    assert_eq!(ask(ADA, "GET /v1/runs", None).1["runs"], json!([]), "nothing is left");
    let (status, models) = ask(ADA, "GET /v1/models", None);
    let ids: Vec<_> =
        models["data"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
    assert_eq!((status, ids), (200, vec![json!("default"), json!(MODEL)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_in_the_background_goes_on_without_its_client_and_after_its_server_was_killed() {
    let replies = [ModelReply::call("nap", json!({})), ModelReply::text("Slept.")];
    let (model, crib) = served(Wire::Chat, replies).await;
    let mut first = Http::start(&crib, "");
    let (status, begun) =
        create(&first, &json!({"model": "default", "input": "Sleep.", "background": true}));
    assert_eq!((status, &begun["status"]), (200, &json!("in_progress")), "{begun}");
    let path = format!("/v1/responses/{}", begun["id"].as_str().expect("an id"));
    super::served::wait_for(&crib, "began");
    let next = json!({"model": "default", "input": "Hi.", "previous_response_id": begun["id"]});
    let (status, locked) = create(&first, &next);
    assert_eq!(
        (status, &locked["error"]["code"]),
        (400, &json!("conversation_locked")),
        "{locked}"
    );
    first.server.signal("KILL");
    let _ = first.server.ended();
    std::fs::write(crib.path().join("awake"), "").expect("a file");

    let second = Http::start(&crib, "");
    let reply = second.ask(&format!("GET {path}?stream=true"), None);
    let all = events(&reply.body);
    let done = &all.last().expect("events")["response"];
    assert_eq!((&done["status"], text_of(done)), (&json!("completed"), "Slept."), "{done}");
    let later = second.ask(&format!("GET {path}?stream=true&starting_after=2"), None);
    assert_eq!(events(&later.body), all[3..], "the rest comes again");
    assert_eq!(second.ask(&format!("GET {path}"), None).json()["output"], done["output"]);
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_completion_has_the_clients_calls_and_hides_those_that_ran_here() {
    let both = ModelReply::call("say", json!({"text": "hi"})).and_call("look", json!({"at": "y"}));
    let replies = [
        both,
        ModelReply::text("There is a tree.").with_reasoning("A tree, I think."),
        ModelReply::text("Hello."),
        ModelReply::text("Half an ans").cut_by_length(),
    ];
    let (model, crib) = served(Wire::Chat, replies).await;
    let server = Http::start(&crib, "");
    let tool = json!({"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}});
    let user = json!({"role": "user", "content": "Look at y."});
    let ask = json!({"model": "default", "messages": [user], "tools": [tool]});
    let (status, first) = post(&server, "/v1/chat/completions", &ask);
    let choice = &first["choices"][0];
    assert_eq!((status, &choice["finish_reason"]), (200, &json!("tool_calls")), "{first}");
    let calls = choice["message"]["tool_calls"].as_array().expect("calls");
    assert_eq!((calls.len(), &calls[0]["function"]["name"]), (1, &json!("look")), "{first}");

    let answer = json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": "a tree"});
    let ask = json!({"model": "default", "messages": [user, choice["message"], answer], "tools": [tool],
                     "stream": true, "stream_options": {"include_usage": true}});
    let reply = server.ask("POST /v1/chat/completions", Some(&ask));
    let chunks = events(&reply.body);
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "There is a tree.", "{}", reply.body);
    assert!(
        chunks.last().is_some_and(|last| last["usage"]["total_tokens"].is_u64()),
        "{}",
        reply.body
    );
    assert!(model.requests()[1].body.to_string().contains("a tree"), "the client's output arrives");

    let alone = json!({"model": MODEL, "messages": [user]});
    let (status, hello) = post(&server, "/v1/chat/completions", &alone);
    assert_eq!(
        (status, &hello["choices"][0]["message"]["content"]),
        (200, &json!("Hello.")),
        "{hello}"
    );
    let (status, cut) = post(&server, "/v1/chat/completions", &alone);
    assert_eq!((status, &cut["choices"][0]["finish_reason"]), (200, &json!("length")), "{cut}");
    let unknown = json!({"model": MODEL, "messages": [user, answer]});
    let (status, refused) = post(&server, "/v1/chat/completions", &unknown);
    assert_eq!(
        (status, &refused["error"]["type"]),
        (400, &json!("invalid_request_error")),
        "{refused}"
    );
    let runs = server.ask("GET /v1/runs", None).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "only the run with calls is kept");
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_right_is_asked_for_its_approval_and_others_wait_for_somebody() {
    let replies = [
        ModelReply::call("note", json!({"text": "x\u{202e}txt"})),
        ModelReply::text("Noted."),
        ModelReply::call("note", json!({"text": "z"})),
        ModelReply::call("note", json!({"text": "y"})),
        ModelReply::text("Noted again."),
    ];
    let (model, crib) = served(Wire::Responses, replies).await;
    with_tokens(&crib, "ada: {HASH, rights: [call, approve]}, eve: {HASH, rights: [call]}");
    let server = Http::start(&crib, "");
    let ask = |token: &str, line: &str, body: Option<&Value>| {
        let reply = by(&server, token, line, body);
        (reply.status, reply.json())
    };
    let note = json!({"model": "default", "input": "Note."});
    let (_, first) = ask(ADA, "POST /v1/responses", Some(&note));
    let asked = &first["output"][0];
    assert_eq!(
        (&first["status"], &asked["type"], &asked["name"]),
        (&json!("completed"), &json!("mcp_approval_request"), &json!("note")),
        "{first}"
    );
    let waiting = ask(ADA, "GET /v1/approvals", None).1["approvals"][0].clone();
    assert_eq!(
        asked["question"], waiting["text"],
        "everything that approvers are shown: {waiting}"
    );
    assert_eq!(asked["arguments"], "{\"text\":\"x\\u202etxt\"}", "no character hides what follows");
    let next = |input: Value| json!({"model": "default", "previous_response_id": first["id"], "input": input});
    let (status, pending) = ask(ADA, "POST /v1/responses", Some(&next(json!("Well?"))));
    assert_eq!((status, &pending["error"]["code"]), (400, &json!("approval_pending")), "{pending}");
    let repair = pending["error"]["message"].as_str().unwrap_or_default();
    assert!(repair.contains(asked["id"].as_str().expect("an id")), "{pending}");
    assert!(repair.contains("mcp_approval_response"), "{pending}");
    let answer = |id: &Value| json!([{"type": "mcp_approval_response", "approval_request_id": id, "approve": true}]);
    let (status, unknown) = ask(ADA, "POST /v1/responses", Some(&next(answer(&json!("mcpr_1")))));
    assert_eq!(
        (status, &unknown["error"]["code"]),
        (400, &json!("unknown_approval_request")),
        "{unknown}"
    );
    let (status, second) = ask(ADA, "POST /v1/responses", Some(&next(answer(&asked["id"]))));
    assert_eq!((status, text_of(&second)), (200, "Noted."), "{second}");
    assert_eq!(
        (&second["output"][0]["type"], &second["output"][0]["output"]),
        (&json!("mcp_call"), &json!("noted\n")),
        "{second}"
    );
    let shown =
        ask(ADA, &format!("GET /v1/responses/{}", second["id"].as_str().expect("an id")), None).1;
    assert_eq!(shown["output"], second["output"]);

    let chat = json!({"model": "default", "messages": [{"role": "user", "content": "Note."}]});
    let (status, refused) = ask(ADA, "POST /v1/chat/completions", Some(&chat));
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("approval_pending")), "{refused}");
    assert_eq!(
        ask(ADA, "GET /v1/approvals", None).1["approvals"],
        json!([]),
        "nobody is asked for it"
    );

    let (_, waits) = ask(EVE, "POST /v1/responses", Some(&note));
    assert_eq!(
        (&waits["status"], &waits["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("approval_pending")),
        "{waits}"
    );
    let calls = ask(ADA, "GET /v1/approvals", None).1["approvals"].clone();
    let path =
        format!("/v1/approvals/{}", calls[0]["id"].as_str().unwrap_or_else(|| panic!("{calls}")));
    assert_eq!(ask(ADA, &format!("POST {path}"), Some(&json!({"decision": "approve"}))).0, 200);
    let path = format!("/v1/responses/{}", waits["id"].as_str().expect("an id"));
    let (_, decided) = ask(EVE, &format!("GET {path}"), None);
    assert_eq!(decided["status"], "in_progress", "it goes on at once: {decided}");
    let reply = by(&server, EVE, &format!("GET {path}?stream=true"), None);
    let all = events(&reply.body);
    let done = &all.last().expect("events")["response"];
    assert_eq!((&done["status"], text_of(done)), (&json!("completed"), "Noted again."), "{done}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt")).expect("the notes");
    assert_eq!(noted, "x\u{202e}txt\ny\n", "each ran once");
    assert_eq!(model.violations(), [""; 0]);
}
