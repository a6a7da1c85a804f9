//! Tests that plain lines get the same answers as from the protocol library, and in order.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolcrib_core::{Executor, Registry};

use crate::fast_path::fixture::{define, server};
use crate::{McpError, McpOptions, McpServer};

const PATIENCE: Duration = Duration::from_secs(60);
const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<Result<(), McpError>>,
}

impl Client {
    fn connect(server: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(4 * 1024);
        let serving = tokio::spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            server.serve_io(read, write, std::future::pending()).await
        });
        let (read, writer) = tokio::io::split(ours);
        Self { lines: BufReader::new(read).lines(), writer, serving }
    }

    /// Connects a client of 2025-11-25 whose handshake has completed, so that its calls are plain.
    async fn after_handshake(server: McpServer) -> Self {
        let mut client = Self::connect(server);
        client.send(HELLO).await;
        client.receive().await;
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    async fn send(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("an answer in time");
        serde_json::from_str(&line.unwrap().expect("an open connection")).unwrap()
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.send(line).await;
        self.receive().await
    }

    async fn close(self) {
        drop((self.writer, self.lines));
        timeout(PATIENCE, self.serving).await.expect("an end in time").unwrap().unwrap();
    }
}

fn call(id: u32, name: &str, arguments: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}{more}}}"#
    )
}

#[tokio::test]
async fn lines_are_answered_as_the_protocol_library_answers_them() {
    let mut client = Client::after_handshake(server()).await;
    for (name, arguments) in [
        ("echo", r#"{"a":[1,-2,2.5,"x\n",null,true,{"b":{}}]}"#),
        ("strict", r#"{"path":"src","limit":"5"}"#),
        ("strict", "{}"),
        ("words", "{}"),
        ("parts", "{}"),
        ("nothing", "null"),
        ("id", "{}"),
        ("later", "{}"),
        ("fail", "{}"),
        ("lookup", "{}"),
        ("nobody", "{}"),
        ("regional", r#"{"region":"north"}"#),
        ("ask", "{}"),
    ] {
        // An unknown member sends a line to the library.
        let long = client.ask(&call(7, name, arguments, r#","more":1"#)).await;
        let short = client.ask(&call(7, name, arguments, "")).await;
        assert_eq!(short, long, "{name}");
    }
    let list = r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#;
    let long = client.ask(&list.replace('}', r#","more":1}"#)).await;
    assert_eq!(client.ask(list).await, long);
    client.close().await;
}

#[tokio::test]
async fn clients_without_a_handshake_are_answered_the_same() {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let mut client = Client::connect(server());
    for name in ["words", "parts", "fail", "nobody", "regional", "ask"] {
        let text = |more: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","_meta":{meta}}}{more}}}"#
            )
        };
        let long = client.ask(&text(r#","more":1"#)).await;
        assert_eq!(client.ask(&text("")).await, long, "{name}");
    }
    // Missing information is reported as before.
    let refused = client.ask(&call(2, "words", "{}", "")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client.close().await;
}

#[tokio::test]
async fn lines_may_arrive_in_pieces_or_in_batches() {
    let mut client = Client::after_handshake(server()).await;
    let line = call(1, "strict", r#"{"path":"a"}"#, "");
    for byte in format!("{line}\r\n").bytes() {
        client.writer.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(client.receive().await["id"], 1);

    let Client { mut lines, mut writer, serving } = client;
    let many: String =
        (0..1_000).map(|id| call(id, "strict", r#"{"path":"a"}"#, "") + "\n\n{broken\n").collect();
    let writing = tokio::spawn(async move {
        writer.write_all(many.as_bytes()).await.unwrap();
        writer
    });
    let (mut answered, mut refused) = (Vec::new(), 0);
    while answered.len() + refused < 2_000 {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        if answer["error"]["code"] == -32700 {
            assert_eq!(answer["id"], Value::Null);
            refused += 1;
            continue;
        }
        assert_eq!(answer["result"]["content"][0]["text"], "a");
        answered.push(answer["id"].as_u64().unwrap());
    }
    assert_eq!(refused, 1_000);
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..1_000));
    let writer = writing.await.unwrap();
    Client { lines, writer, serving }.close().await;
}

#[tokio::test]
async fn a_long_line_is_answered_and_so_is_the_next() {
    let mut client = Client::after_handshake(server()).await;
    let long = "x".repeat(3 * 1024 * 1024);
    let line = call(1, "strict", &format!(r#"{{"path":"{long}"}}"#), "") + "\n";
    let Client { lines, mut writer, serving } = client;
    let writing = tokio::spawn(async move {
        writer.write_all(line.as_bytes()).await.unwrap();
        writer
    });
    let writer = writing.await.unwrap();
    client = Client { lines, writer, serving };
    let answer = client.receive().await;
    // Cut to the longest output.
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(false)));
    assert_eq!(client.ask(&call(2, "strict", r#"{"path":"a"}"#, "")).await["id"], 2);
    client.close().await;
}

#[tokio::test]
async fn the_last_line_needs_no_line_feed() {
    let mut client = Client::after_handshake(server()).await;
    let line = call(1, "strict", r#"{"path":"a"}"#, "");
    client.writer.write_all(line.as_bytes()).await.unwrap();
    client.writer.shutdown().await.unwrap();
    assert_eq!(client.receive().await["result"]["content"][0]["text"], "a");
    client.close().await;
}

#[tokio::test]
async fn a_waiting_call_does_not_block_later_lines() {
    let (release, released) = tokio::sync::watch::channel(false);
    let registry = Registry::scratch()
        .tool("wait", move |_, _| {
            let mut released = released.clone();
            async move {
                let _ = released.wait_for(|released| *released).await;
                "waited"
            }
        })
        .tool("quick", |_, _| async { "quick" })
        .build()
        .unwrap();
    let server = McpServer::new(Executor::builder(registry).build(), McpOptions::default());
    let mut client = Client::after_handshake(server).await;
    for id in 0..100 {
        client.send(&call(id, "wait", "{}", "")).await;
    }
    for id in 100..200 {
        let quick = client.ask(&call(id, "quick", "{}", "")).await;
        assert_eq!(quick["id"], id);
    }
    release.send(true).unwrap();
    let mut answered = Vec::new();
    for _ in 0..100 {
        let answer = client.receive().await;
        assert_eq!(answer["result"]["content"][0]["text"], "waited");
        answered.push(answer["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..100));
    client.close().await;
}

/// A server with a tool that waits for a signal, and reports when it starts and when it is dropped.
fn waiting() -> (McpServer, watch::Sender<bool>, mpsc::UnboundedReceiver<&'static str>) {
    let (release, released) = watch::channel(false);
    let (events, seen) = mpsc::unbounded_channel();
    let registry = Registry::scratch()
        .tool("wait", move |_, _| {
            let (mut released, events) = (released.clone(), events.clone());
            async move {
                let _ = events.send("begun");
                let _witness = DropWitness(events);
                let _ = released.wait_for(|released| *released).await;
                "waited"
            }
        })
        .build()
        .unwrap();
    let server = McpServer::new(Executor::builder(registry).build(), McpOptions::default());
    (server, release, seen)
}

/// Reports when the call that holds it is dropped.
struct DropWitness(mpsc::UnboundedSender<&'static str>);

impl Drop for DropWitness {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// Calls until calls are plain: the library handles the end of the handshake in its own task.
async fn until_plain(client: &mut Client) {
    let quick = |id| call(id, "nobody", "{}", "");
    for id in 0..100 {
        client.ask(&quick(id)).await;
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_waiting_call_is_cancelled_by_an_equal_id_in_any_spelling() {
    let (server, _release, mut seen) = waiting();
    let mut client = Client::after_handshake(server).await;
    until_plain(&mut client).await;
    for (id, cancelled) in [("7", "7"), (r#""seven""#, r#""seven""#), (r#""x""#, r#""\u0078""#)] {
        let line = call(0, "wait", "{}", "").replace(r#""id":0"#, &format!(r#""id":{id}"#));
        client.send(&line).await;
        assert_eq!(seen.recv().await, Some("begun"));
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{cancelled}}}}}"#
        );
        client.send(&cancel).await;
        assert_eq!(timeout(PATIENCE, seen.recv()).await, Ok(Some("dropped")), "{id}");
    }
    // They get no answer.
    assert_eq!(client.ask(&call(1, "nobody", "{}", "")).await["id"], 1);
    client.close().await;
}

#[tokio::test]
async fn a_request_with_an_id_in_use_is_refused_and_the_first_one_is_answered() {
    let (server, release, mut seen) = waiting();
    let mut client = Client::after_handshake(server).await;
    until_plain(&mut client).await;
    for more in ["", r#","more":1"#] {
        client.send(&call(7, "wait", "{}", more)).await;
        assert_eq!(seen.recv().await, Some("begun"));
        for again in ["", r#","more":1"#] {
            let refused = client.ask(&call(7, "wait", "{}", again)).await;
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
        }
        release.send(true).unwrap();
        let answer = client.receive().await;
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(7), &json!(false)));
        assert_eq!(seen.recv().await, Some("dropped"));
        release.send(false).unwrap();
    }
    client.close().await;
}

#[tokio::test]
async fn a_call_that_runs_at_the_end_of_input_is_answered() {
    let (server, release, mut seen) = waiting();
    let mut client = Client::after_handshake(server).await;
    until_plain(&mut client).await;
    client.send(&call(1, "wait", "{}", "")).await;
    assert_eq!(seen.recv().await, Some("begun"));
    client.writer.shutdown().await.unwrap();
    tokio::task::yield_now().await;
    release.send(true).unwrap();
    assert_eq!(client.receive().await["result"]["content"][0]["text"], "waited");
    client.close().await;
}

#[tokio::test]
async fn closing_the_server_drops_running_calls_and_answers_them() {
    let (server, _release, mut seen) = waiting();
    let mut client = Client::after_handshake(server.clone()).await;
    until_plain(&mut client).await;
    client.send(&call(1, "wait", "{}", "")).await;
    assert_eq!(seen.recv().await, Some("begun"));
    server.close();
    assert_eq!(timeout(PATIENCE, seen.recv()).await, Ok(Some("dropped")));
    let answer = client.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    client.close().await;
}

#[tokio::test]
async fn a_client_may_send_much_before_it_reads_anything() {
    let (ours, theirs) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(theirs);
    let serving =
        tokio::spawn(async move { server().serve_io(read, write, std::future::pending()).await });
    let (read, writer) = tokio::io::split(ours);
    let mut client = Client { lines: BufReader::new(read).lines(), writer, serving };
    client.send(HELLO).await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    for id in 1..=2_000 {
        let line = call(id, "strict", r#"{"path":"a"}"#, "");
        timeout(PATIENCE, client.send(&line)).await.expect("a server that reads");
    }
    // The answer to `initialize` is among them.
    for _ in 0..=2_000 {
        client.receive().await;
    }
    client.close().await;
}

#[tokio::test]
async fn a_tool_that_blocks_its_thread_runs_in_a_separate_task() {
    let registry = Registry::scratch()
        .tool("heavy", |_, _| async {
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(5) {
                std::hint::spin_loop();
            }
            format!("{:?}", tokio::task::try_id())
        })
        .build()
        .unwrap();
    let server = McpServer::new(Executor::builder(registry).build(), McpOptions::default());
    let mut client = Client::after_handshake(server).await;
    // Only the first of these is called where its line is read.
    let mut tasks = Vec::new();
    for id in 0..8 {
        let answer = client.ask(&call(id, "heavy", "{}", "")).await;
        tasks.push(answer["result"]["content"][0]["text"].as_str().unwrap().to_owned());
    }
    let distinct: std::collections::BTreeSet<_> = tasks.iter().collect();
    assert!(distinct.len() > 2, "{tasks:?}");
    client.close().await;
}

#[tokio::test]
async fn plain_lines_are_handled_by_the_reading_task() {
    let registry = Registry::scratch()
        .tool("task", |_, _| async { format!("{:?}", tokio::task::try_id()) })
        .build()
        .unwrap();
    let server = McpServer::new(Executor::builder(registry).build(), McpOptions::default());
    let mut client = Client::after_handshake(server).await;
    let mut last = Value::Null;
    for id in 0..10_000 {
        let answer = client.ask(&call(id, "task", "{}", "")).await;
        let task = answer["result"]["content"][0]["text"].clone();
        // Until the end of the handshake has been handled, each call has its own task.
        if task == last {
            return client.close().await;
        }
        last = task;
    }
    panic!("no two calls were made from one task");
}

#[tokio::test]
async fn answers_are_not_interleaved() {
    let registry = (0..200).fold(Registry::scratch(), |registry, number| {
        let tool = define(&format!("tool_{number}")).description("x".repeat(2_000));
        registry.tool_as(tool.build().unwrap(), |_, _| async { "quick" })
    });
    let executor = Executor::builder(registry.build().unwrap()).build();
    let mut client = Client::after_handshake(McpServer::new(executor, McpOptions::default())).await;
    // An unknown member sends these lists to the library.
    let list =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":"list {id}","method":"tools/list","more":1}}"#);
    let Client { mut lines, mut writer, serving } = client;
    let writing = tokio::spawn(async move {
        for id in 0..400 {
            let call = call(id, "tool_7", "{}", "");
            let line = if id % 20 == 0 { list(id) + "\n" + &call } else { call } + "\n";
            writer.write_all(line.as_bytes()).await.unwrap();
        }
        writer
    });
    let (mut listed, mut called) = (0, 0);
    while listed < 20 || called < 400 {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        match answer["id"].as_str() {
            Some(_) => {
                assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 200);
                listed += 1;
            }
            None => called += 1,
        }
    }
    client = Client { lines, writer: writing.await.unwrap(), serving };
    client.close().await;
}

#[tokio::test]
async fn closing_the_output_stream_ends_the_connection() {
    let server = server();
    let (mut to_server, read) = tokio::io::duplex(4 * 1024);
    let (write, from_server) = tokio::io::duplex(4 * 1024);
    let serving =
        tokio::spawn(async move { server.serve_io(read, write, std::future::pending()).await });
    to_server.write_all(format!("{HELLO}\n").as_bytes()).await.unwrap();
    let mut answers = BufReader::new(from_server).lines();
    timeout(PATIENCE, answers.next_line()).await.expect("a greeting").unwrap();
    drop(answers);
    // Its input is still open.
    to_server.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    let ended = timeout(PATIENCE, serving).await.expect("an end in time").unwrap();
    assert!(ended.is_ok(), "{ended:?}");
    drop(to_server);
}
