//! A server that is asked to stop: running calls are answered, and it ends in bounded time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::server::{Server, command, request};

const SLEEP: &str = r#"
toolcrib: 1
tools:
  - name: nap
    description: Sleep. Read-only.
    annotations: {read_only: true}
    input: {properties: {seconds: {type: integer}, mark: {type: string}}, required: [seconds, mark]}
    run:
      argv: [bash, -c, 'touch "$MARK"; sleep "$SECONDS_"; echo rested']
      env: {MARK: "${args.mark}", SECONDS_: "${args.seconds}"}
"#;

/// Starts a nap and waits until it is running.
fn nap(server: &mut Server, crib: &Crib, seconds: u32) {
    let mark = crib.path().join("began");
    server.send(&request(2, "nap", &json!({"seconds": seconds, "mark": mark})));
    wait_for(&mark);
}

fn wait_for(mark: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !mark.exists() {
        assert!(Instant::now() < deadline, "the call has not begun");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a call over HTTP; the answer is read from the stream.
fn post(address: &str, message: &Value) -> TcpStream {
    let body = message.to_string();
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         mcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("it reads");
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

#[test]
fn a_server_ends_when_its_output_is_closed() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    nap(&mut server, &crib, 600);
    server.close_output();
    server.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}));
    let closed = Instant::now();
    assert_eq!(server.ended(), Some(0));
    assert!(closed.elapsed() < Duration::from_secs(8), "{:?}", closed.elapsed());
}

#[test]
fn an_unread_log_delays_no_answer() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.arg("mcp").env_remove("TOOLCRIB_TOKEN");
    let mut server = Server::spawn_with_log(&crib, command, Stdio::piped()).greeted();
    // Each is refused with a log line; together they are several times the capacity of a pipe.
    for _ in 0..1_500 {
        let refused = server.call("nap", &json!({"minutes": 3}));
        assert_eq!(refused["result"]["isError"], true);
    }
    server.close_input();
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_running_call_is_answered_during_shutdown() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    nap(&mut server, &crib, 1);
    server.signal("TERM");
    let answer = server.receive();
    assert_eq!(answer["result"]["content"][0]["text"], "rested\n", "{answer}");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_second_stop_request_cancels_running_calls() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    nap(&mut server, &crib, 600);
    let asked = Instant::now();
    server.signal("INT");
    std::thread::sleep(Duration::from_millis(500));
    server.signal("INT");
    let answer = server.receive();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("the host is shutting down"), "{text}");
    assert_eq!(server.ended(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[test]
fn shutdown_reports_the_calls_it_waits_for() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let log = crib.data().join("log");
    let file = std::fs::File::create(&log).expect("the file system");
    let mut command = command(env!("CARGO_BIN_EXE_toolcrib"));
    command.arg("mcp").env_remove("TOOLCRIB_TOKEN");
    let mut server = Server::spawn_with_log(&crib, command, Stdio::from(file)).greeted();
    nap(&mut server, &crib, 600);
    server.signal("INT");
    let said = || std::fs::read_to_string(&log).expect("it is written");
    let deadline = Instant::now() + Duration::from_secs(4);
    while !said().contains("waiting for 1 call, at most 5 s; press Ctrl-C again to stop now") {
        assert!(Instant::now() < deadline, "{}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
    server.signal("INT");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_disconnecting_client_ends_the_stdio_server() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let mut server = Server::mcp(&crib);
    server.close_input();
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn over_http_shutdown_refuses_new_calls_and_answers_running_ones() {
    let crib = Crib::new(&[("sleep.yaml", SLEEP)]);
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--no-auth", "--json"];
    let mut server = Server::start(&crib, &arguments);
    let url = server.receive()["url"].as_str().expect("a URL").to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");

    let mark = crib.path().join("began");
    let nap = post(address, &request(1, "nap", &json!({"seconds": 3, "mark": mark})));
    wait_for(&mark);
    server.signal("TERM");
    let sum = request(2, "calculator", &json!({"expression": "2+2"}));
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut late = answer(post(address, &sum));
    while !late.contains("takes no more calls") {
        assert!(Instant::now() < deadline, "it still takes calls: {late}");
        late = answer(post(address, &sum));
    }
    let answer = answer(nap);
    assert!(answer.contains("rested"), "{answer}");
    assert_eq!(server.ended(), Some(0));
}
