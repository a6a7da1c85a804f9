//! Events of the server, as clients with the right to watch receive them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolcrib_http::{Right, ServerConfig};

use crate::fixture::{Running, client, config, start};
use crate::raw_client::Ask;

/// A stream of events that stays open.
struct Watcher {
    stream: TcpStream,
    text: String,
}

impl Watcher {
    async fn of(server: &Running, name: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let ask = Ask::api(server.address, "GET /v1/events").of(name);
        ask.with("accept", "text/event-stream").write(&mut stream).await;
        let mut watcher = Self { stream, text: String::new() };
        watcher.read_until(|text| text.contains("\r\n\r\n")).await;
        assert!(watcher.text.starts_with("HTTP/1.1 200"), "{}", watcher.text);
        watcher
    }

    /// The status of a request for the stream, which is closed at once if it is a stream.
    async fn status(server: &Running, name: &str) -> u16 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let ask = Ask::api(server.address, "GET /v1/events").of(name);
        ask.with("accept", "text/event-stream").write(&mut stream).await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
    }

    async fn read_until(&mut self, holds: impl Fn(&str) -> bool) {
        let mut buffer = [0; 4096];
        let reading = async {
            while !holds(&self.text) {
                let read = self.stream.read(&mut buffer).await.unwrap();
                assert!(read > 0, "it ended: {}", self.text);
                self.text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            }
        };
        timeout(Duration::from_secs(10), reading).await.expect("it is told in time");
    }

    /// All events up to one with that name, which is included.
    async fn until(&mut self, name: &str) -> Vec<Value> {
        let wanted = format!("event: {name}\n");
        self.read_until(|text| {
            text.split_once(&wanted).is_some_and(|(_, rest)| rest.contains("\n\n"))
        })
        .await;
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

fn clients() -> ServerConfig {
    let operates = |rights: &[Right]| {
        let rights = rights.to_vec();
        move |own: &mut toolcrib_http::ClientConfig| own.rights = rights
    };
    ServerConfig {
        tokens: [
            client("ada", |_| {}),
            client("bob", |_| {}),
            client("ops", operates(&[Right::Operate])),
            client("eye", operates(&[Right::Observe])),
            client("acme", |own| {
                own.rights = vec![Right::Operate];
                own.context.insert("tenant".to_owned(), "acme".into());
            }),
        ]
        .into_iter()
        .collect(),
        ..config()
    }
}

async fn call(server: &Running, name: &str, tool: &str, arguments: Value) -> u16 {
    let ask = Ask::api(server.address, &format!("POST /v1/tools/{tool}/call")).of(name);
    ask.json(&json!({"arguments": arguments})).send().await.status
}

#[tokio::test]
async fn clients_see_events_of_their_own_calls_and_operators_of_all() {
    let server = start(clients()).await;
    let mut ada = Watcher::of(&server, "ada").await;
    let mut ops = Watcher::of(&server, "ops").await;
    let mut acme = Watcher::of(&server, "acme").await;
    assert_eq!(call(&server, "bob", "echo", json!({"secret": "of bob"})).await, 200);
    assert_eq!(call(&server, "ada", "echo", json!({"a": 1})).await, 200);
    let heard = ada.until("call.completed").await;
    assert!(heard.iter().all(|event| event["user"] == "ada"), "{heard:?}");
    let last = heard.last().unwrap();
    assert_eq!(last["payload"]["result"]["data"], json!({"a": 1}));
    ops.read_until(|text| text.matches("event: call.completed").count() == 2).await;
    assert!(ops.text.contains("of bob") && ops.text.contains(r#""user":"ada""#), "{}", ops.text);
    assert!(!acme.text.contains("data:"), "they are of no tenant: {}", acme.text);

    let refused = Ask::api(server.address, "GET /v1/events").of("eye").send().await;
    assert_eq!(refused.status, 403);
    assert!(refused.problem().contains("`operate` or `call`"), "{}", refused.body);
    // Endless streams do not delay a shutdown.
    timeout(Duration::from_secs(5), server.end()).await.expect("it stops at once");
    let mut rest = Vec::new();
    acme.stream.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn a_pause_is_reported_and_an_operator_can_end_it() {
    let server = start(clients()).await;
    let mut ada = Watcher::of(&server, "ada").await;
    for _ in 0..3 {
        assert_eq!(call(&server, "ada", "stuck", json!({})).await, 504);
    }
    let paused = ada.until("task.paused").await;
    let paused = paused.iter().find(|event| event["event"] == "task.paused").unwrap();
    assert_eq!((&paused["payload"]["tool"], &paused["user"]), (&json!("stuck"), &json!("ada")));
    let ask = Ask::api(server.address, "POST /v1/tools/stuck/call").of("ada");
    let refused = ask.json(&json!({})).send().await;
    assert_eq!((refused.status, refused.kind().as_str()), (503, "paused"));
    assert!(refused.header("retry-after").is_some(), "{refused:?}");

    let reset = |tool: &str| Ask::api(server.address, &format!("POST /v1/tools/{tool}/reset"));
    assert_eq!(reset("stuck").of("ada").send().await.status, 403);
    let misspelt = reset("stukc").of("ops").send().await;
    assert_eq!(misspelt.status, 404);
    assert!(misspelt.problem().contains("did you mean `stuck`?"), "{}", misspelt.body);
    let done = reset("stuck").of("ops").send().await.json();
    assert_eq!(done, json!({"tool": "stuck", "paused": 1}));
    assert_eq!(call(&server, "ada", "stuck", json!({})).await, 504);
    server.end().await;
}

#[tokio::test]
async fn a_rate_limit_says_when_to_retry() {
    let server = start(clients()).await;
    assert_eq!(call(&server, "ada", "rated", json!({})).await, 200);
    let ask = Ask::api(server.address, "POST /v1/tools/rated/call").of("ada");
    let refused = ask.json(&json!({})).send().await;
    assert_eq!((refused.status, refused.kind().as_str()), (429, "rate_limited"));
    let header: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3_000..=3_600).contains(&header), "{header}");
    let body: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(body["result"]["error"]["retry_after"], header);
    server.end().await;
}

#[tokio::test]
async fn event_streams_of_one_client_leave_connections_for_others() {
    let tokens = [client("greedy", |_| {}), client("other", |_| {})];
    let server = start(ServerConfig { tokens: tokens.into(), connections: 16, ..config() }).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(Watcher::of(&server, "greedy").await);
    }
    assert_eq!(Watcher::status(&server, "greedy").await, 429, "a quarter of the connections");
    Watcher::of(&server, "other").await;
    open.pop();
    // The end of a connection is noticed a moment later.
    let freed = async {
        while Watcher::status(&server, "greedy").await != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), freed).await.expect("a stream that ended counts no more");
    drop(open);
    server.end().await;
}
