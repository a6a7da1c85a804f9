//! Audit records that are sent to syslog and to a collector, also when a server stops.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::Http;

const CONFIG: &str = "state: {dir: state}\nserver: {token: a-token-of-the-test-0123456789}\n";
const TOKEN: &str = "a-token-of-the-test-0123456789";

#[test]
fn a_call_is_sent_to_syslog_and_a_server_without_syslog_says_so_and_goes_on() {
    let crib = Crib::new(&[]);
    let path = crib.home().join("log");
    crib.config(&format!("{CONFIG}audit: {{syslog: {}}}\n", path.display()));
    let server = Http::start(&crib, TOKEN);
    let call = || {
        let body = json!({"arguments": {"expression": "1+1"}});
        let began = Instant::now();
        assert_eq!(server.ask("POST /v1/tools/calculator/call", Some(&body)).status, 200);
        assert!(began.elapsed() < Duration::from_secs(1), "a call does not wait for syslog");
    };
    let ready = || server.ask("GET /ready", None).json();
    call();
    let until = Instant::now() + Duration::from_secs(10);
    while ready()["audit_down"] != 1 {
        assert!(Instant::now() < until, "{}", ready());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(ready()["status"], "degraded");
    let metrics = server.ask("GET /metrics", None).body;
    assert!(metrics.contains("toolcrib_audit_down 1"), "{metrics}");

    let syslog = UnixDatagram::bind(&path).expect("a socket");
    syslog.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    call();
    let mut message = [0; 8192];
    for _ in 0..2 {
        let length = syslog.recv(&mut message).expect("what waited, too");
        let text = std::str::from_utf8(&message[..length]).expect("text");
        let (header, json) = text.split_once(" audit - ").expect("a message");
        assert!(header.starts_with("<110>1 "), "{text}");
        let record: Value = serde_json::from_str(json).expect("a record");
        assert_eq!(record["tool"], "calculator");
    }
    while ready()["audit_down"] != 0 {
        assert!(Instant::now() < until, "{}", ready());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(ready()["audit_lost"], 0);
}

#[test]
fn records_that_wait_when_a_server_stops_are_sent_and_those_that_cannot_be_are_counted_in_its_log()
{
    for comes_back in [true, false] {
        let crib = Crib::new(&[]);
        let (path, log) = (crib.home().join("syslog"), crib.home().join("log"));
        let config = format!("audit: {{file: audit.jsonl, syslog: {}}}\n", path.display());
        crib.config(&format!("{CONFIG}{config}"));
        let file = std::fs::File::create(&log).expect("there is room");
        let mut server = Http::start_with_log(&crib, TOKEN, file);
        for _ in 0..3 {
            let body = json!({"arguments": {"expression": "1+1"}});
            assert_eq!(server.ask("POST /v1/tools/calculator/call", Some(&body)).status, 200);
        }
        let began = Instant::now();
        server.server.signal("TERM");
        std::thread::sleep(Duration::from_millis(500));
        let syslog = comes_back.then(|| UnixDatagram::bind(&path).expect("a socket"));
        assert_eq!(server.server.ended(), Some(0));
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
        let file = std::fs::read_to_string(crib.path().join("audit.jsonl")).expect("a file");
        assert_eq!(file.lines().count(), 3, "{file}");
        let log = std::fs::read_to_string(&log).expect("a log");
        let said =
            log.contains("audit records were not sent to syslog") && log.contains("records=3");
        assert_eq!(said, !comes_back, "{log}");
        if let Some(syslog) = syslog {
            syslog.set_nonblocking(true).expect("it is ours");
            let mut message = [0; 8192];
            let received = (0..4).filter(|_| syslog.recv(&mut message).is_ok()).count();
            assert_eq!(received, 3, "{log}");
        }
    }
}

/// The built program with the feature and a collector that takes its time.
#[cfg(feature = "otlp")]
#[test]
fn every_record_reaches_a_collector_also_one_that_waits_when_the_server_stops() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use crate::harness::server::command;

    let collector = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}/v1/logs", collector.local_addr().expect("an address"));
    let received = std::thread::spawn(move || {
        let (mut bodies, until) = (Vec::new(), Instant::now() + Duration::from_secs(30));
        collector.set_nonblocking(true).expect("it is ours");
        while Instant::now() < until && records(&bodies) < 3 {
            let Ok((stream, _)) = collector.accept() else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            stream.set_nonblocking(false).expect("it is ours");
            stream.set_read_timeout(Some(Duration::from_secs(3))).expect("a limit");
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                let mut length = 0;
                while line.trim_end() != "" {
                    let (name, value) = line.split_once(": ").unwrap_or_default();
                    if name.eq_ignore_ascii_case("content-length") {
                        length = value.trim_end().parse().expect("a number");
                    }
                    line.clear();
                    stream.read_line(&mut line).expect("a header");
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).expect("a body");
                bodies.push(String::from_utf8_lossy(&body).into_owned());
                // The server is asked to stop while the first request is not answered yet.
                std::thread::sleep(Duration::from_millis(700));
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                stream.get_mut().write_all(answer).expect("it reads");
                line.clear();
                if records(&bodies) >= 3 {
                    break;
                }
            }
        }
        bodies
    });
    let crib = Crib::new(&[]);
    crib.config("state: {dir: state}\naudit: {file: audit.jsonl, otlp: true}\n");
    let mut serve = command(env!("CARGO_BIN_EXE_toolcrib"));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--json", "--no-auth"]);
    serve.env("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", endpoint);
    let mut server = Http::spawn(&crib, serve);
    for _ in 0..3 {
        let body = json!({"arguments": {"expression": "1+1"}});
        assert_eq!(server.ask("POST /v1/tools/calculator/call", Some(&body)).status, 200);
    }
    server.server.signal("TERM");
    assert_eq!(server.server.ended(), Some(0));
    let bodies = received.join().expect("no panic");
    assert_eq!(records(&bodies), 3, "{bodies:?}");
}

/// How many audit records are in requests to a collector.
#[cfg(feature = "otlp")]
fn records(bodies: &[String]) -> usize {
    bodies.iter().map(|body| body.matches(r#""tool":"calculator""#).count()).sum()
}
