//! What is answered on a WebSocket: on a model alone and on an agent.

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply as ModelReply};

use super::{Socket, item, look, output, text_of};
use crate::agents::harness::crib;
use crate::agents::served::{ADA, EVE, with_tokens};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

/// The model alone, and the agent with tools.
const MODELS: [&str; 2] = ["script/scripted", "default"];

async fn served(replies: impl IntoIterator<Item = ModelReply>) -> (ModelServer, Crib, Http) {
    let model = ModelServer::for_several(Wire::Responses, replies).await;
    let crib = crib(Wire::Responses, &model.base_url());
    let server = Http::start(&crib, "");
    (model, crib, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_has_the_events_of_a_stream_for_one_request_after_another() {
    for name in MODELS {
        let replies = ["One.", "Two.", "Three."].map(ModelReply::text);
        let (model, _crib, server) = served(replies).await;
        let mut socket = Socket::open(&server);
        let first = socket.ask(&json!({"model": name, "input": "Hi."}));
        assert_eq!((text_of(&first), &first["status"]), ("One.", &json!("completed")));
        let nested = json!({"response": {"model": name, "input": "And?", "previous_response_id": first["id"]}});
        let second = socket.ask(&nested);
        assert_eq!(text_of(&second), "Two.");
        assert_eq!(second["previous_response_id"], first["id"]);
        let wrong = socket.refused(&json!({"model": name, "input": "Hi.", "background": true}));
        assert_eq!(
            (&wrong["status"], &wrong["error"]["param"]),
            (&json!(400), &json!("background"))
        );
        let third = socket.ask(&json!({"model": name, "input": "Else?"}));
        assert_eq!(text_of(&third), "Three.");
        // What is stored is what was sent.
        let path = format!("GET /v1/responses/{}", second["id"].as_str().expect("an id"));
        assert_eq!(server.ask(&path, None).json()["output"], second["output"]);
        assert!(model.requests()[1].body.to_string().contains("One."), "the conversation goes on");
        assert!(!model.requests()[2].body.to_string().contains("One."), "this is another one");
        assert_eq!(model.violations(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_stored_goes_on_with_its_tools_and_reasoning_on_its_own_socket_only() {
    for name in MODELS {
        let both = ModelReply::call("look", json!({"at": "x"})).with_reasoning("Where is x?");
        let replies = [
            if name == "default" { both.and_call("say", json!({"text": "hi"})) } else { both },
            ModelReply::text("A tree."),
            ModelReply::text("A new start."),
        ];
        let (model, _crib, server) = served(replies).await;
        let mut socket = Socket::open(&server);
        let ask = |input: Value, previous: &Value| {
            json!({"model": name, "input": input, "tools": [look()], "store": false,
                   "previous_response_id": previous})
        };
        let mut first = ask(json!("Look at x."), &Value::Null);
        first.as_object_mut().expect("members").remove("previous_response_id");
        let first = socket.ask(&first);
        let call = item(&first, "function_call").clone();
        let next = ask(output(&call, "a tree"), &first["id"]);

        let mut other = Socket::open(&server);
        let unknown = other.refused(&next);
        assert_eq!(unknown["error"]["code"], "previous_response_not_found", "{unknown}");
        let second = socket.ask(&next);
        assert_eq!((text_of(&second), &second["store"]), ("A tree.", &json!(false)));
        let sent = model.requests()[1].body.to_string();
        assert!(sent.contains("a tree") && sent.contains("Look at x."), "{sent}");
        assert!(sent.contains("c2lnbmF0dXJl1=="), "the reasoning goes back as it came: {sent}");
        assert_eq!(sent.contains("\"say\""), name == "default", "{sent}");

        // The socket remembers the last response only, and both sockets can still be used.
        let old = socket.refused(&next);
        assert_eq!(old["error"]["code"], "previous_response_not_found", "{old}");
        drop(socket);
        let later = other.refused(&ask(json!("And?"), &second["id"]));
        assert_eq!(later["error"]["code"], "previous_response_not_found", "{later}");
        let again = other.ask(&json!({"model": name, "input": [
            {"role": "user", "content": "Look at x."}, {"role": "assistant", "content": "A tree."},
            {"role": "user", "content": "And?"}], "store": false}));
        assert_eq!(text_of(&again), "A new start.");
        assert_eq!(server.ask("GET /v1/runs", None).json()["runs"], json!([]), "nothing is kept");
        assert_eq!(model.violations(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_makes_the_socket_forget_what_it_went_on_from() {
    for name in MODELS {
        let replies = [ModelReply::text("One."), ModelReply::text("Two.")];
        let (model, _crib, server) = served(replies).await;
        let mut socket = Socket::open(&server);
        let first = socket.ask(&json!({"model": name, "input": "Hi.", "store": false}));
        let unknown = json!({"model": name, "previous_response_id": first["id"], "store": false,
            "input": [{"type": "function_call_output", "call_id": "call_9", "output": "x"}]});
        let refused = socket.refused(&unknown);
        assert_eq!(refused["error"]["code"], "unknown_tool_output", "{refused}");
        let next = json!({"model": name, "input": "And?", "store": false, "previous_response_id": first["id"]});
        let refused = socket.refused(&next);
        assert_eq!(refused["error"]["code"], "previous_response_not_found", "{refused}");
        let fresh = socket.ask(&json!({"model": name, "input": "Hi."}));
        assert_eq!(text_of(&fresh), "Two.");
        assert_eq!(model.violations(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_an_answer_prepares_the_next_one() {
    for name in MODELS {
        let (model, _crib, server) = served([ModelReply::text("A tree.")]).await;
        let mut socket = Socket::open(&server);
        let warm = json!({"model": name, "generate": false, "store": false, "tools": [look()],
            "input": [{"role": "developer", "content": "Be kind."}]});
        let first = socket.ask(&warm);
        assert_eq!((&first["output"], &first["usage"]["total_tokens"]), (&json!([]), &json!(0)));
        let more = json!({"model": name, "generate": false, "input": "I am here.", "store": false,
            "previous_response_id": first["id"]});
        let second = socket.ask(&more);
        assert!(model.requests().is_empty(), "no model is asked");
        let third = socket.ask(&json!({"model": name, "input": "What is at x?", "store": false,
            "tools": [look()], "previous_response_id": second["id"]}));
        assert_eq!(text_of(&third), "A tree.");
        let sent = model.requests()[0].body.to_string();
        let places = ["Be kind.", "I am here.", "What is at x?"].map(|text| sent.find(text));
        assert!(places.is_sorted() && places[0].is_some(), "{sent}");
        assert_eq!(model.violations(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_asked_for_and_given_on_a_socket_and_others_cannot_go_on() {
    let replies = [ModelReply::call("note", json!({"text": "x"})), ModelReply::text("Noted.")];
    let model = ModelServer::for_several(Wire::Chat, replies).await;
    let crib = crib(Wire::Chat, &model.base_url());
    with_tokens(&crib, "ada: {HASH, rights: [call, approve]}, eve: {HASH, rights: [call]}");
    let server = Http::start(&crib, "");
    let mut ada = Socket::try_open(&server, ADA, None).expect("it opens");
    let mut eve = Socket::try_open(&server, EVE, None).expect("it opens");
    let first = ada.ask(&json!({"model": "default", "input": "Note."}));
    let asked = item(&first, "mcp_approval_request");
    let next = json!({"model": "default", "previous_response_id": first["id"], "input": [
        {"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true}]});
    let unknown = eve.refused(&next);
    assert_eq!(unknown["error"]["code"], "previous_response_not_found", "{unknown}");
    let second = ada.ask(&next);
    assert_eq!(text_of(&second), "Noted.", "{second}");
    let noted = std::fs::read_to_string(crib.path().join("notes.txt")).expect("the notes");
    assert_eq!(noted, "x\n", "it ran once");
    assert_eq!(model.violations(), [""; 0]);
}
