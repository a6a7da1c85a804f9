//! Who may open a WebSocket, what is sent on it at most, and how it ends.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{ModelServer, Reply as ModelReply};
use tungstenite::Message;

use super::{Socket, text_of};
use crate::agents::harness::crib;
use crate::agents::served::{ADA, EVE, by, wait_for, with_tokens};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

async fn served(replies: impl IntoIterator<Item = ModelReply>) -> (ModelServer, Crib) {
    let model = ModelServer::for_several(Wire::Chat, replies).await;
    let crib = crib(Wire::Chat, &model.base_url());
    (model, crib)
}

fn append(crib: &Crib, more: &str) {
    let config = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    crib.config(&format!("{config}{more}"));
}

fn hi() -> serde_json::Value {
    json!({"model": "default", "input": "Hi."})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_needs_a_token_a_right_and_an_origin_of_this_server() {
    let (_model, crib) = served([ModelReply::text("Hello.")]).await;
    with_tokens(&crib, "ada: {HASH, rights: [call]}, eve: {HASH, rights: [observe]}");
    let server = Http::start(&crib, "");
    let open = |token, header| Socket::try_open(&server, token, header).err();
    assert_eq!(open("nobody", None), Some(401));
    assert_eq!(open(EVE, None), Some(403));
    assert_eq!(open(ADA, Some(("origin", "https://example.com"))), Some(403));
    assert_eq!(open(ADA, Some(("host", "example.com"))), Some(403));
    let own = format!("http://{}", server.address);
    let mut socket = Socket::try_open(&server, ADA, Some(("origin", &own))).expect("it opens");
    assert_eq!(text_of(&socket.ask(&hi())), "Hello.");
    let plain = by(&server, ADA, "GET /v1/responses", None);
    assert_eq!(
        (plain.status, &plain.json()["error"]["type"]),
        (426, &json!("invalid_request_error"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tokens_pages_of_other_sites_open_no_socket() {
    let (_model, crib) = served([ModelReply::text("Hello.")]).await;
    append(&crib, "server: {no_auth: true}\n");
    let server = Http::start(&crib, "");
    let foreign = Some(("origin", "https://example.com"));
    assert_eq!(Socket::try_open(&server, "", foreign).err(), Some(403));
    assert_eq!(text_of(&Socket::open(&server).ask(&hi())), "Hello.");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_socket_counts_as_a_request_and_each_of_its_requests_counts_against_the_rate() {
    let (_model, crib) = served(["One.", "Two.", "Three."].map(ModelReply::text)).await;
    with_tokens(
        &crib,
        "ada: {HASH, rights: [call], concurrent: 1}, eve: {HASH, rights: [call], rate: 2/h}",
    );
    let server = Http::start(&crib, "");
    let mut first = Socket::try_open(&server, ADA, None).expect("it opens");
    assert_eq!(text_of(&first.ask(&hi())), "One.");
    assert_eq!(Socket::try_open(&server, ADA, None).err(), Some(429));
    drop(first);
    let deadline = Instant::now() + Duration::from_secs(20);
    while Socket::try_open(&server, ADA, None).is_err() {
        assert!(Instant::now() < deadline, "its place is not free");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut eve = Socket::try_open(&server, EVE, None).expect("it opens");
    assert_eq!(text_of(&eve.ask(&hi())), "Two.");
    let refused = eve.refused(&hi());
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(429), &json!("rate_limited"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_count_among_the_connections_of_the_server() {
    let (_model, crib) = served([]).await;
    append(&crib, "server: {connections: 2}\n");
    let server = Http::start(&crib, "");
    let (_first, second) = (Socket::open(&server), Socket::open(&server));
    let refused = server.try_ask("GET /health", None).map(|reply| reply.status);
    assert_eq!(refused, Some(503));
    drop(second);
    let deadline = Instant::now() + Duration::from_secs(20);
    while server.try_ask("GET /health", None).is_none_or(|reply| reply.status != 200) {
        assert!(Instant::now() < deadline, "its place is not free");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_a_text_of_bounded_size_and_an_ambiguous_one_is_refused() {
    let (_model, crib) = served([ModelReply::text("Hello.")]).await;
    append(&crib, "server: {body_limit: 4KiB}\n");
    let server = Http::start(&crib, "");
    let mut socket = Socket::open(&server);
    for text in [
        "{",
        "[]",
        r#"{"type": "session.update"}"#,
        r#"{"type": "response.create", "model": "default", "model": "default", "input": "Hi."}"#,
    ] {
        socket.0.send(Message::text(text)).expect("it reads");
        let error = socket.answer().expect_err(text);
        assert_eq!(error["status"], 400, "{text}: {error}");
    }
    assert_eq!(text_of(&socket.ask(&hi())), "Hello.", "the socket can still be used");
    socket.0.send(Message::binary(b"{}".to_vec())).expect("it reads");
    assert_eq!(socket.receive().expect_err("it is closed").0, 1003);

    let mut socket = Socket::open(&server);
    // The head of a masked text frame of 1 GiB.
    let head = [&[0x81, 0xff][..], &(1_u64 << 30).to_be_bytes(), &[0; 4]].concat();
    socket.0.get_mut().write_all(&head).expect("it reads");
    let (code, reason) = socket.receive().expect_err("it is closed");
    assert_eq!((code, &*reason), (1009, "a message has at most 4096 bytes"));
    let mut socket = Socket::open(&server);
    // In pieces: the first of several frames, each of which is short enough.
    let piece = [&[0x01, 0xfe][..], &3_000_u16.to_be_bytes(), &[0; 4], &[b' '; 3_000]].concat();
    let more = [&[0x00, 0xfe][..], &3_000_u16.to_be_bytes(), &[0; 4], &[b' '; 3_000]].concat();
    socket.0.get_mut().write_all(&[piece, more].concat()).expect("it reads");
    assert_eq!(socket.receive().expect_err("it is closed").0, 1009);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_come_while_a_response_is_made_wait_and_too_many_are_refused() {
    let replies = (0..10).map(|number| ModelReply::text(format!("Answer {number}.")));
    let replies = [ModelReply::call("nap", json!({}))].into_iter().chain(replies);
    let (_model, crib) = served(replies).await;
    let server = Http::start(&crib, "");
    let mut socket = Socket::open(&server);
    socket.send(&hi());
    wait_for(&crib, "began");
    for number in 0..9 {
        socket.send(&json!({"model": "default", "input": format!("Question {number}.")}));
    }
    // Nothing is said about the ninth but that it does not wait.
    let mut events = Vec::new();
    let refused = loop {
        let event = socket.receive().expect("an event");
        if event["type"] == "error" {
            break event;
        }
        events.push(event);
    };
    assert_eq!(refused["error"]["code"], "rate_limited", "{refused}");
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    while events.last().is_none_or(|last| last["type"] != "response.completed") {
        events.push(socket.receive().expect("an event"));
    }
    assert_eq!(text_of(&events.last().expect("events")["response"]), "Answer 0.");
    for number in 1..9 {
        let (_, response) = socket.answer().expect("a response");
        assert_eq!(text_of(&response), format!("Answer {number}."));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_ends_with_its_socket_only_if_it_is_not_stored() {
    let replies = [
        ModelReply::call("nap", json!({})),
        ModelReply::call("nap", json!({})),
        ModelReply::text("Slept."),
    ];
    let (_model, crib) = served(replies).await;
    let server = Http::start(&crib, "");
    let begun = |store: bool| {
        let mut socket = Socket::open(&server);
        socket.send(&json!({"model": "default", "input": "Sleep.", "store": store}));
        wait_for(&crib, "began");
        let created = socket.receive().expect("an event");
        (socket, created["response"]["id"].as_str().expect("an id").to_owned())
    };
    let (socket, _) = begun(false);
    drop(socket);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let stats = server.ask("GET /v1/stats", None).json();
        if stats["tools"][0]["errors_by_kind"]["cancelled"] == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "its call goes on: {stats}");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::remove_file(crib.path().join("began")).expect("the tool has begun");

    let (socket, id) = begun(true);
    drop(socket);
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    let path = format!("/v1/responses/{id}");
    let stream = server.ask(&format!("GET {path}?stream=true&starting_after=1"), None).body;
    assert!(stream.contains("Slept.") && stream.contains("data: [DONE]"), "{stream}");
    assert_eq!(text_of(&server.ask(&format!("GET {path}"), None).json()), "Slept.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_when_its_response_is_cancelled_and_can_go_on() {
    let replies = [ModelReply::call("nap", json!({})), ModelReply::text("Hello.")];
    let (_model, crib) = served(replies).await;
    let server = Http::start(&crib, "");
    let mut socket = Socket::open(&server);
    socket.send(&hi());
    let created = socket.receive().expect("an event");
    wait_for(&crib, "began");
    let id = created["response"]["id"].as_str().expect("an id").to_owned();
    let cancelled = server.ask(&format!("POST /v1/responses/{id}/cancel"), None);
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.body);
    let told = socket.answer().expect_err("it has no last event");
    assert_eq!(told["error"]["code"], "response_interrupted", "{told}");
    assert_eq!(text_of(&socket.ask(&hi())), "Hello.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_revokes_a_token_closes_its_sockets() {
    let (_model, crib) = served([ModelReply::call("nap", json!({}))]).await;
    let before = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    with_tokens(&crib, "ada: {HASH, rights: [call]}, eve: {HASH, rights: [call]}");
    let server = Http::start(&crib, "");
    let mut idle = Socket::try_open(&server, EVE, None).expect("it opens");
    let mut busy = Socket::try_open(&server, ADA, None).expect("it opens");
    busy.send(&hi());
    wait_for(&crib, "began");
    crib.config(&before);
    // Ada's token belongs to somebody else, and Eve's to nobody.
    with_tokens(&crib, "bob: {HASH, rights: [call]}");
    let reloaded = crib.run(&["reload"]);
    assert_eq!(reloaded.code, Some(0), "{} {}", reloaded.stdout, reloaded.stderr);
    for socket in [&mut idle, &mut busy] {
        let (code, reason) = loop {
            match socket.receive() {
                Ok(_) => {}
                Err(closed) => break closed,
            }
        };
        assert_eq!(code, 1008, "{reason}");
    }
    assert_eq!(Socket::try_open(&server, EVE, None).err(), Some(401));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_closes_its_sockets_and_pauses_what_they_wait_for() {
    let (_model, crib) =
        served([ModelReply::call("nap", json!({})), ModelReply::text("Slept.")]).await;
    let mut server = Http::start(&crib, "");
    let (mut idle, mut busy) = (Socket::open(&server), Socket::open(&server));
    busy.send(&hi());
    let created = busy.receive().expect("an event");
    wait_for(&crib, "began");
    server.server.signal("TERM");
    for socket in [&mut idle, &mut busy] {
        let (code, reason) = loop {
            match socket.receive() {
                Ok(_) => {}
                Err(closed) => break closed,
            }
        };
        assert_eq!((code, &*reason), (1001, "the server is stopping"));
    }
    assert_eq!(server.server.ended(), Some(0));
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    let next = Http::start(&crib, "");
    let id = created["response"]["id"].as_str().expect("an id");
    let stream = next.ask(&format!("GET /v1/responses/{id}?stream=true"), None).body;
    assert!(stream.contains("Slept."), "{stream}");
}
