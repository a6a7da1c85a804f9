//! Clients that read slowly or not at all, that send slowly, and that disconnect.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    EndsClients, Ledger, Listening, TOKEN, Told, body, crib, figure, processes_with, times, told,
    until,
};
use crate::harness::connection::Connection;

fn request(server: &Listening, line: &str, key: &str, body: &Value) -> String {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let key = if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
    format!(
        "{line} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n\
         {key}content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
}

fn open(server: &Listening) -> TcpStream {
    let stream = TcpStream::connect(&server.address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    stream.set_write_timeout(Some(Duration::from_secs(60))).expect("a limit");
    stream
}

/// Sends many requests before it reads any answer, and then reads slowly.
fn slow(server: &Listening, requests: usize) {
    let mut stream = open(server);
    let mut sender = stream.try_clone().expect("a second handle");
    let text = request(server, "GET /v1/tools", "", &Value::Null);
    // The server may stop reading until its answers are read.
    std::thread::scope(|scope| {
        scope.spawn(move || (0..requests).all(|_| sender.write_all(text.as_bytes()).is_ok()));
        std::thread::sleep(Duration::from_millis(500));
        let (mut answers, mut piece, mut rest) = (0, [0; 16384], Vec::new());
        while answers < requests {
            let read = stream.read(&mut piece).expect("an answer");
            assert!(read > 0, "the connection was closed after {answers} of {requests} answers");
            rest.extend_from_slice(&piece[..read]);
            let starts = rest.windows(15).filter(|part| *part == b"HTTP/1.1 200 OK").count();
            answers += starts;
            let keep = rest.len().min(14);
            rest.drain(..rest.len() - keep);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Sends an endless head; returns how long it took until the connection was closed.
fn dripping(server: &Listening) -> Duration {
    let mut stream = open(server);
    let began = Instant::now();
    stream.write_all(b"GET /v1/tools HTTP/1.1\r\nx-long: ").expect("it reads");
    while stream.write_all(b"x").is_ok() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    began.elapsed()
}

/// Subscribes to all events and reads none of them.
fn deaf(server: &Listening) -> TcpStream {
    let mut stream = open(server);
    let text = request(server, "GET /v1/events", "", &Value::Null);
    stream.write_all(text.as_bytes()).expect("it reads");
    stream
}

/// Makes calls with a key and disconnects, at once or after a moment. When it asks again, the call
/// was done once.
fn leave_and_return(server: &Listening, ledger: &Ledger, name: &str, calls: usize) {
    for call in 0..calls {
        let id = format!("{name}-{call}");
        let line =
            format!("POST /v1/tools/{}/call", if call.is_multiple_of(2) { "mark" } else { "note" });
        let mut stream = open(server);
        stream.write_all(request(server, &line, &id, &body(&id)).as_bytes()).expect("it reads");
        std::thread::sleep(Duration::from_millis([0, 1, 5, 20][call % 4]));
        drop(stream);
        let headers = [("idempotency-key", id.as_str())];
        let reply = server.connection().ask(&line, &headers, &body(&id)).expect("an answer");
        ledger.enter(&id, told(&id, &reply));
        // Without a key, the call ends when its client disconnects.
        let id = format!("{name}-{call}-left");
        let mut stream = open(server);
        stream.write_all(request(server, &line, "", &body(&id)).as_bytes()).expect("it reads");
        std::thread::sleep(Duration::from_millis([0, 1, 5, 20][call / 4 % 4]));
        if call.is_multiple_of(3) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(stream);
        ledger.enter(&id, Ok(Told::Unknown));
    }
}

#[test]
fn slow_or_disconnecting_clients_delay_nobody() {
    let (slow_ones, requests) = (figure(4, 40), figure(40, 300));
    let (leaving, each) = (figure(3, 20), figure(8, 50));
    let crib = crib("");
    let mut server = Listening::start(&crib);
    let ledger = Ledger::default();
    let is_over = AtomicBool::new(false);
    let (took, dripped) = std::thread::scope(|scope| {
        let over = EndsClients(&is_over);
        let deaf: Vec<_> = (0..slow_ones).map(|_| deaf(&server)).collect();
        let others = scope.spawn(|| {
            let mut connection = server.connection();
            let mut took = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                let id = format!("other-{}", took.len());
                let began = Instant::now();
                let reply =
                    connection.ask("POST /v1/tools/note/call", &[], &body(&id)).expect("an answer");
                took.push(began.elapsed());
                ledger.enter(&id, told(&id, &reply));
            }
            took
        });
        let dripping: Vec<_> = (0..slow_ones).map(|_| scope.spawn(|| dripping(&server))).collect();
        let slow: Vec<_> =
            (0..slow_ones).map(|_| scope.spawn(|| slow(&server, requests))).collect();
        let left: Vec<_> = (0..leaving)
            .map(|number| {
                let (server, ledger) = (&server, &ledger);
                scope.spawn(move || {
                    leave_and_return(server, ledger, &format!("left-{number}"), each);
                })
            })
            .collect();
        // A program ends when its client disconnects.
        let seconds = format!("600.00{}", std::process::id());
        let mut stream = open(&server);
        let nap = json!({"arguments": {"seconds": seconds}});
        let text = request(&server, "POST /v1/tools/nap/call", "", &nap);
        stream.write_all(text.as_bytes()).expect("it reads");
        until("the nap has begun", Duration::from_secs(60), || {
            !processes_with(&seconds).is_empty()
        });
        drop(stream);
        until("the nap is over", Duration::from_secs(10), || processes_with(&seconds).is_empty());

        let ended: Vec<_> =
            left.into_iter().chain(slow).map(std::thread::ScopedJoinHandle::join).collect();
        let dripped: Vec<_> =
            dripping.into_iter().map(|one| one.join().expect("it has not failed")).collect();
        drop(over);
        let took = others.join().expect("it has not failed");
        drop(deaf);
        for one in ended {
            one.expect("it has not failed");
            ledger.right();
        }
        (took, dripped)
    });
    for one in &dripped {
        assert!(*one < Duration::from_secs(30), "a head that never ends was waited for: {one:?}");
    }
    let slowest = took.iter().max().copied().unwrap_or_default();
    assert!(slowest < Duration::from_secs(60), "another client waited for {slowest:?}");
    Connection::open(&server.address, TOKEN).expect("it listens");
    server.server.signal("TERM");
    assert_eq!(server.server.ended(), Some(0));
    println!(
        "storm readers: {slow_ones} slow, {slow_ones} deaf, {slow_ones} dripping (closed {}), {leaving} who left; \
         the answers of another {}",
        times(dripped),
        times(took)
    );
    let sum = ledger.close("readers", &crib);
    assert!(sum.done >= leaving * each, "{sum}");
}
