//! Sessions over HTTP: a client whose stream ends before its answer reconnects for the rest.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolcrib_core::{Executor, Registry};
use toolcrib_mcp::{McpBody, McpHttpOptions, McpHttpService, McpOptions, McpServer, McpSessions};
use toolcrib_tool::{Layer, Source, ToolDefinition, ToolEntry, tool_fn};
use tower::Service as _;

/// A client in a session with a server whose only tool waits until it is released.
struct Client {
    executor: Executor,
    service: McpHttpService,
    session: String,
    revision: &'static str,
    gate: Arc<Semaphore>,
}

/// The content of one stream.
#[derive(Default, Debug)]
struct Told {
    last_id: String,
    retry: Option<String>,
    messages: Vec<Value>,
}

impl Client {
    async fn new(options: McpHttpOptions, revision: &'static str) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        let of_tool = Arc::clone(&gate);
        let wait = tool_fn(move |_: Value, _| {
            let gate = Arc::clone(&of_tool);
            async move {
                gate.acquire().await.unwrap().forget();
                "done"
            }
        });
        let definition = ToolDefinition::builder("wait").description("Wait.").build().unwrap();
        let entry = ToolEntry::new(definition, Arc::new(wait), Source::new(Layer::Host, "test"));
        let registry: Registry = Registry::scratch().build().unwrap();
        let executor = Executor::builder(registry).build();
        let _ = executor.registry().register(entry).unwrap();
        let server = McpServer::new(executor.clone(), McpOptions::default());
        let service = server.http_service(options);
        let mut client = Self { executor, service, session: String::new(), revision, gate };
        let hello = client
            .post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": revision,
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "0"},
            }}))
            .await;
        client.session = hello.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        hello.into_body().collect().await.unwrap();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&ready).await.status(), StatusCode::ACCEPTED);
        client
    }

    async fn send(&mut self, request: http::request::Builder, body: String) -> Response<McpBody> {
        let mut request = request
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", self.revision);
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let Ok(response) = self.service.call(request).await;
        response
    }

    async fn post(&mut self, message: &Value) -> Response<McpBody> {
        self.send(Request::post("/mcp"), message.to_string()).await
    }

    async fn call(&mut self) -> Response<McpBody> {
        let params = json!({"name": "wait", "arguments": {}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.post(&message).await
    }

    /// Starts to listen.
    async fn listen(&mut self) -> Response<McpBody> {
        self.send(Request::get("/mcp"), String::new()).await
    }

    /// Adds a tool, of which clients are notified.
    fn add(&self, name: &str) {
        let definition = ToolDefinition::builder(name).description("Answer.").build().unwrap();
        let body = tool_fn(|_: Value, _| async { "pong" });
        let entry = ToolEntry::new(definition, Arc::new(body), Source::new(Layer::Host, "test"));
        let _ = self.executor.registry().register(entry).unwrap();
    }

    async fn come_back(&mut self, last: &str) -> Response<McpBody> {
        self.send(Request::get("/mcp").header("last-event-id", last), String::new()).await
    }
}

/// Reads a stream to its end.
async fn to_the_end(response: Response<McpBody>) -> Told {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = tokio::time::timeout(Duration::from_secs(30), response.into_body().collect());
    let body = body.await.expect("an end in time").unwrap().to_bytes();
    let mut told = Told::default();
    for line in std::str::from_utf8(&body).unwrap().lines() {
        match line.split_once(':').map(|(field, value)| (field, value.trim_start())) {
            Some(("id", id)) => id.clone_into(&mut told.last_id),
            Some(("retry", retry)) => told.retry = Some(retry.to_owned()),
            Some(("data", data)) if !data.is_empty() => {
                told.messages.push(serde_json::from_str(data).unwrap());
            }
            _ => {}
        }
    }
    told
}

/// The first event of a stream, which is then closed.
async fn broken_off(response: Response<McpBody>) -> String {
    let mut body = response.into_body();
    let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let text = String::from_utf8(frame.to_vec()).unwrap();
    text.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_stream_ends_after_its_lifetime_and_the_client_reconnects_for_the_answer() {
    let options = McpHttpOptions::default();
    let options = options.open_for(Duration::from_millis(50)).retry(Duration::from_millis(700));
    let mut client = Client::new(options, "2025-11-25").await;
    let first = to_the_end(client.call().await).await;
    assert!(first.messages.is_empty() && !first.last_id.is_empty(), "{first:?}");
    assert_eq!(first.retry.as_deref(), Some("700"));
    let response = client.come_back(&first.last_id).await;
    client.gate.add_permits(1);
    let rest = to_the_end(response).await;
    assert_eq!(rest.messages[0]["result"]["content"][0]["text"], "done", "{rest:?}");
    // It is kept for clients whose connection breaks again.
    let again = to_the_end(client.come_back(&first.last_id).await).await;
    assert_eq!(again.messages, rest.messages);
    assert!(to_the_end(client.come_back(&rest.last_id).await).await.messages.is_empty());
}

#[tokio::test]
async fn an_answer_without_a_listener_is_not_lost() {
    let mut client = Client::new(McpHttpOptions::default(), "2025-11-25").await;
    let last = broken_off(client.call().await).await;
    client.gate.add_permits(1);
    let rest = to_the_end(client.come_back(&last).await).await;
    assert_eq!(rest.messages[0]["result"]["content"][0]["text"], "done", "{rest:?}");
}

#[tokio::test]
async fn an_unknown_event_id_gives_no_events() {
    let mut client = Client::new(McpHttpOptions::default(), "2025-11-25").await;
    let last = broken_off(client.call().await).await;
    client.gate.add_permits(1);
    let (_, number) = last.rsplit_once('/').unwrap();
    for guess in ["0", "1/0", &format!("{}:common/{number}", client.session)] {
        let told = to_the_end(client.come_back(guess).await).await;
        assert!(told.messages.is_empty(), "{guess}: {told:?}");
    }
}

#[tokio::test]
async fn streams_stay_open_for_clients_of_older_revisions() {
    let options = McpHttpOptions::default().open_for(Duration::ZERO);
    let mut client = Client::new(options, "2025-06-18").await;
    client.gate.add_permits(1);
    let told = to_the_end(client.call().await).await;
    assert_eq!(told.messages[0]["result"]["content"][0]["text"], "done", "{told:?}");
}

/// Reads until something arrives.
async fn next_message(body: &mut McpBody) -> Value {
    loop {
        let frame = tokio::time::timeout(Duration::from_secs(30), body.frame()).await;
        let frame = frame.expect("a message in time").unwrap().unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim);
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[tokio::test]
async fn notifications_before_a_client_listens_are_delivered_once_afterwards() {
    let mut client = Client::new(McpHttpOptions::default(), "2025-11-25").await;
    client.add("one");
    // By then it has been sent to nobody.
    client.gate.add_permits(1);
    to_the_end(client.call().await).await;
    let mut first = client.listen().await.into_body();
    assert_eq!(next_message(&mut first).await["method"], "notifications/tools/list_changed");
    drop(first);
    client.add("other");
    let mut second = client.listen().await.into_body();
    assert_eq!(next_message(&mut second).await["method"], "notifications/tools/list_changed");
    // There is nothing else: the next message is about the next change.
    let nothing = tokio::time::timeout(Duration::ZERO, next_message(&mut second)).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

#[tokio::test]
async fn an_unused_session_ends_despite_notifications_and_its_client_starts_over() {
    let idle = Duration::from_millis(200);
    let options = McpHttpOptions::default().sessions(McpSessions::default().idle(idle));
    let mut client = Client::new(options, "2025-11-25").await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    // A session that is used repeatedly stays open.
    for _ in 0..8 {
        tokio::time::sleep(idle / 4).await;
        assert_eq!(client.post(&list).await.status(), StatusCode::OK);
    }
    // So does one to which its client listens.
    let listening = client.listen().await;
    tokio::time::sleep(idle * 3).await;
    assert_eq!(client.post(&list).await.status(), StatusCode::OK);
    drop(listening);
    for number in 0..12 {
        client.add(&format!("news_{number}"));
        tokio::time::sleep(idle / 4).await;
    }
    assert_eq!(client.post(&list).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_client_with_too_many_sessions_loses_its_own_oldest_one() {
    let sessions = McpSessions::of_at_most(2);
    let options = McpHttpOptions::default().sessions(sessions.clone());
    let mut first = Client::new(options.clone(), "2025-11-25").await;
    // Services of one client share their limit; another client has its own.
    let mut second = Client::new(options.clone(), "2025-11-25").await;
    let other = McpHttpOptions::default().sessions(sessions.for_another_client());
    let mut other = Client::new(other, "2025-11-25").await;
    let _third = Client::new(options, "2025-11-25").await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(first.post(&list).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(second.post(&list).await.status(), StatusCode::OK);
    assert_eq!(other.post(&list).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn of_requests_with_one_id_in_a_session_each_gets_an_answer_or_an_error() {
    let mut client = Client::new(McpHttpOptions::default(), "2025-11-25").await;
    for _ in 0..2 {
        let first = client.call().await;
        for _ in 0..3 {
            let response = client.call().await;
            let refused = to_the_end(response).await;
            let [message] = &refused.messages[..] else { panic!("one message: {refused:?}") };
            assert_eq!(message["error"]["code"], -32600, "{message}");
        }
        client.gate.add_permits(1);
        let told = to_the_end(first).await;
        // Its id can be used again.
        assert_eq!(
            told.messages.last().unwrap()["result"]["content"][0]["text"],
            "done",
            "{told:?}"
        );
    }
}
