//! Following runs of agents over HTTP: their events as they happen, and their conversations.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::wire::model::Wire;
use toolcrib_testkit::model_server::{Fault, Reply};

use super::harness::{KEY, served};
use super::served::{ADA, EVE, by, path, post, until, wait_for, with_tokens};
use crate::harness::http::Http;

/// An open event stream.
pub(super) struct Events(BufReader<TcpStream>);

/// A server-sent event: its name, its id and its data.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) id: Option<u64>,
    pub(super) data: Value,
}

impl Events {
    pub(super) fn open(server: &Http, token: &str, path: &str, header: &str) -> Self {
        let mut stream = TcpStream::connect(&server.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             accept: text/event-stream\r\n{header}\r\n",
            server.address
        )
        .expect("it reads");
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).expect("a status");
        assert!(status.contains(" 200 "), "{status}");
        Self(reader)
    }

    /// The next event; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Event> {
        let (mut name, mut id, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("event: ") {
                name = Some(text.to_owned());
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse().ok();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).ok();
            } else if line.is_empty()
                && let (Some(name), Some(data)) = (name.take(), data.take())
            {
                return Some(Event { name, id, data });
            }
        }
    }

    pub(super) fn until(&mut self, name: &str) -> Event {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            if event.name == name {
                return event;
            }
            seen.push(event.name);
        }
        panic!("no {name} after {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_nobody_reads_says_how_much_was_missed_and_misses_no_row() {
    let delta = |text: &str| {
        let choice = json!({"index": 0, "delta": {"content": text}});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    // More than sockets and the followers' log hold. The answer is never complete.
    let body = delta(&"x".repeat(4_096)).repeat(3_000);
    let cut = Fault::CutAfter(body.len());
    let endless = Reply::body(body).with_fault(cut);
    let replies = [Reply::call("hold", json!({})), endless, Reply::text("Enough.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let hold = "toolcrib: 1\ntools:\n  - name: hold\n    description: Wait for a file. Read-only.\n    \
                annotations: {read_only: true}\n    sandbox: {write: [.]}\n    \
                run: {argv: [bash, -c, 'touch began; while [ ! -e awake ]; do sleep 0.05; done']}\n";
    crib.write("hold.yaml", hold);
    let server = Http::start(&crib, "");
    let start = json!({"input": "Go on and on.", "background": true});
    let path = path(&post(&server, "/v1/runs", &start).1);
    wait_for(&crib, "began");
    let mut stream = Events::open(&server, &server.token, &format!("{path}/events"), "");
    stream.until("run.calls_started");
    std::fs::write(crib.path().join("awake"), "").expect("a file");
    let run = until(&server, &path, "completed");
    assert_eq!(run["text"], "Enough.", "the run does not wait for whoever follows it");
    let (mut missed, mut rows, mut last) = (0, Vec::new(), None);
    while let Some(event) = stream.next() {
        missed +=
            event.data["missed"].as_u64().filter(|_| event.name == "stream.lagged").unwrap_or(0);
        rows.extend(event.id);
        last = Some(event.name);
    }
    assert!(missed > 1_000, "{missed}");
    assert!(rows.windows(2).all(|pair| pair[1] == pair[0] + 1) && rows.len() > 4, "{rows:?}");
    assert_eq!(last.as_deref(), Some("run"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_each_row_once_and_what_happens_until_the_run_rests() {
    let replies = [Reply::call("nap", json!({})), Reply::text("Never.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let server = Http::start(&crib, "");
    let start = json!({"input": "Sleep.", "background": true});
    let path = path(&post(&server, "/v1/runs", &start).1);
    wait_for(&crib, "began");
    let events = format!("{path}/events");
    drop(Events::open(&server, &server.token, &events, ""));
    let mut stream = Events::open(&server, &server.token, &events, "");
    let started = stream.next().expect("a row");
    assert_eq!((started.name.as_str(), started.id), ("run.started", Some(1)));
    let last = stream.until("run.calls_started").id.expect("an id");
    let said = json!({"input": format!("Wake up, {KEY}!")});
    assert_eq!(post(&server, &format!("{path}/steer"), &said).0, 200);
    let steered = stream.until("run.steered");
    let text = steered.data.to_string();
    assert!(text.contains("Wake up") && !text.contains(KEY), "{text}");
    assert_eq!((steered.data["seq"].as_u64(), steered.id), (steered.id, Some(last + 1)));
    let run = server.ask(&format!("GET {path}"), None).json();
    assert_eq!(run["active"], true, "a stream that was closed changes nothing: {run}");

    let mut again =
        Events::open(&server, &server.token, &events, &format!("Last-Event-ID: {last}\r\n"));
    assert_eq!(again.next().expect("a row").id, Some(last + 1), "it goes on after the id");
    assert_eq!(post(&server, &format!("{path}/cancel"), &json!({})).0, 200);
    for stream in [&mut stream, &mut again] {
        assert!(stream.until("run.finished").id > Some(last));
        let end = stream.next().expect("the run");
        assert_eq!((end.name.as_str(), &end.data["status"]), ("run", &json!("cancelled")));
        assert!(stream.next().is_none(), "it ends with the run");
    }
    let mut rest = Events::open(&server, &server.token, &format!("{events}?after={last}"), "");
    let names: Vec<_> = std::iter::from_fn(|| rest.next()).map(|event| event.name).collect();
    assert_eq!(names.first().map(String::as_str), Some("run.steered"), "{names:?}");
    assert_eq!(names.last().map(String::as_str), Some("run"), "{names:?}");
    let wrong = server.ask(
        &format!(
            "GET {events} HTTP/1.1\r\naccept: text/event-stream\r\nlast-event-id: x\r\nx-rest:"
        ),
        None,
    );
    assert_eq!(wrong.status, 422, "{}", wrong.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_a_token_that_is_revoked_ends_while_the_run_goes_on() {
    let replies = [Reply::call("nap", json!({}))];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let same = "context: {user: ada}, rights: [call]";
    with_tokens(&crib, &format!("ada: {{HASH, {same}}}, eve: {{HASH, {same}}}"));
    let server = Http::start(&crib, "");
    let by = |token: &str, line: &str, body: Option<&Value>| by(&server, token, line, body);
    let start = json!({"input": "Sleep.", "background": true});
    let path = path(&by(ADA, "POST /v1/runs", Some(&start)).json());
    wait_for(&crib, "began");
    let mut stream = Events::open(&server, EVE, &format!("{path}/events"), "");
    stream.until("run.calls_started");
    let both = std::fs::read_to_string(crib.path().join("config.yml")).expect("a config");
    let (only_ada, _) = both.split_once(", eve:").expect("two tokens");
    crib.config(&format!("{only_ada}}}}}\n"));
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    while let Some(event) = stream.next() {
        assert_ne!(event.name, "run", "the run rests: {}", event.data);
    }
    assert_eq!(by(EVE, &format!("GET {path}/events"), None).status, 401);
    let run = by(ADA, &format!("GET {path}"), None).json();
    assert_eq!(run["active"], true, "{run}");
    assert_eq!(by(ADA, &format!("POST {path}/cancel"), None).status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conversation_is_read_in_pages_with_what_was_said_meanwhile() {
    let replies = [
        Reply::call("say", json!({"text": "x"})).and_call("note", json!({"text": "x"})),
        Reply::text("It is noted."),
    ];
    let (model, crib) = served(Wire::Responses, replies).await;
    let server = Http::start(&crib, "");
    let run = post(&server, "/v1/runs", &json!({"input": format!("Say {KEY}.")})).1;
    let (path, call) = (path(&run), run["waiting"][0]["id"].clone());
    assert_eq!(post(&server, &format!("{path}/steer"), &json!({"input": "Softly."})).0, 200);
    let denied = json!({"id": call, "decision": "deny", "message": "Not now."});
    assert_eq!(post(&server, &format!("{path}/resolve"), &denied).0, 200);
    assert_eq!(post(&server, &format!("{path}/resume"), &json!({})).0, 200);
    until(&server, &path, "completed");

    let whole = server.ask(&format!("GET {path}/items"), None).json();
    let items = whole["items"].as_array().expect("items").clone();
    let kinds: Vec<_> = items.iter().map(|item| item["type"].as_str().expect("a type")).collect();
    let expected = ["message", "call", "call", "result", "message", "result", "message"];
    assert_eq!(kinds, expected, "{whole:#}");
    assert!(whole["next"].is_null() && !whole.to_string().contains(KEY), "{whole}");
    assert_eq!((&items[1]["tool"], &items[1]["call_id"]), (&json!("say"), &items[3]["call_id"]));
    assert_eq!((&items[3]["success"], &items[5]["success"]), (&json!(true), &json!(false)));
    assert_eq!((&items[4]["role"], &items[4]["text"]), (&json!("user"), &json!("Softly.")));
    assert_eq!(
        (&items[6]["role"], &items[6]["text"]),
        (&json!("assistant"), &json!("It is noted."))
    );
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.ask(&format!("GET {path}/items?limit=2{after}"), None).json();
        paged.extend(page["items"].as_array().expect("items").clone());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(paged, items);
    for wrong in ["after=1", "after=1-x", "after=-", "limit=0", "from=1"] {
        assert_eq!(server.ask(&format!("GET {path}/items?{wrong}"), None).status, 422, "{wrong}");
    }
    assert_eq!(model.violations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_at_work_in_another_server_is_followed_told_things_and_cancelled_from_this_one() {
    let replies = [Reply::call("nap", json!({})), Reply::text("Never.")];
    let (_model, crib) = served(Wire::Chat, replies).await;
    let (first, second) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let start = json!({"input": "Sleep.", "background": true});
    let path = path(&post(&first, "/v1/runs", &start).1);
    wait_for(&crib, "began");
    let run = second.ask(&format!("GET {path}"), None).json();
    assert_eq!((&run["status"], &run["active"]), (&json!("in_progress"), &json!(true)), "{run}");
    let mut stream = Events::open(&second, &second.token, &format!("{path}/events"), "");
    assert_eq!(stream.next().expect("a row").id, Some(1));
    let last = stream.until("run.calls_started").id.expect("an id");
    for (number, server) in (1..).zip([&second, &first, &second]) {
        let said = json!({"input": format!("Wake up, {KEY}, {number}!")});
        let (status, run) = post(server, &format!("{path}/steer"), &said);
        assert_eq!((status, &run["active"]), (200, &json!(true)), "{run}");
        let steered = stream.until("run.steered");
        let text = steered.data.to_string();
        assert!(text.contains(&format!(", {number}!")) && !text.contains(KEY), "{text}");
        assert_eq!(steered.id, Some(last + number), "each is recorded once");
    }
    let (status, run) = post(&second, &format!("{path}/cancel"), &json!({}));
    assert_eq!((status, &run["status"]), (200, &json!("cancelled")), "{run}");
    assert!(stream.until("run.finished").id > Some(last + 3));
    let end = stream.next().expect("the run");
    assert_eq!((end.name.as_str(), &end.data["status"]), ("run", &json!("cancelled")));
    assert_eq!(end.data["active"], false, "{}", end.data);
    assert!(stream.next().is_none(), "it ends with the run");
    let (status, _) = post(&second, &format!("{path}/steer"), &json!({"input": "Hello?"}));
    assert_eq!(status, 409, "it has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_server_of_a_run_is_killed_its_followers_elsewhere_are_told_and_what_they_say_is_kept()
 {
    let replies = [Reply::call("nap", json!({})), Reply::text("Good morning.")];
    let (model, crib) = served(Wire::Chat, replies).await;
    let (mut first, second) = (Http::start(&crib, ""), Http::start(&crib, ""));
    let start = json!({"input": "Sleep.", "background": true});
    let path = path(&post(&first, "/v1/runs", &start).1);
    wait_for(&crib, "began");
    let mut stream = Events::open(&second, &second.token, &format!("{path}/events"), "");
    stream.until("run.calls_started");
    first.server.signal("KILL");
    first.server.ended();
    let end = stream.until("run");
    let state = (&end.data["status"], &end.data["active"]);
    assert_eq!(state, (&json!("in_progress"), &json!(false)), "{}", end.data);
    let (status, run) = post(&second, &format!("{path}/steer"), &json!({"input": "Wake up!"}));
    assert_eq!((status, &run["active"]), (200, &json!(false)), "{run}");
    let (status, run) = post(&second, &format!("{path}/resume"), &json!({}));
    assert_eq!((status, &run["text"]), (200, &json!("Good morning.")), "{run}");
    let asked = &model.requests()[1].text;
    assert_eq!(asked.matches("Wake up!").count(), 1, "{asked}");
    assert_eq!(model.violations(), [""; 0]);
}
