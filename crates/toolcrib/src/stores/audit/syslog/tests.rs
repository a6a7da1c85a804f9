//! Records as messages: each arrives once, as one record, or is counted.

use std::io::{BufReader, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::*;

fn record(id: &str) -> AuditRecord {
    AuditRecord::new(SystemTime::UNIX_EPOCH, id, "t")
}

/// The record in a message; fails if the header is not one of RFC 5424.
fn read(message: &[u8]) -> Value {
    let text = std::str::from_utf8(message).unwrap();
    let words: Vec<&str> = text.splitn(8, ' ').collect();
    assert_eq!((words[0], words[1]), ("<110>1", "1970-01-01T00:00:00.000Z"), "{text}");
    assert!(!words[2].is_empty());
    let own = std::process::id().to_string();
    assert_eq!(words[3..7], ["toolcrib", &own, "audit", "-"], "{text}");
    serde_json::from_str(words[7]).unwrap()
}

fn receive(socket: &UnixDatagram) -> Value {
    let mut message = vec![0; 1 << 20];
    let length = socket.recv(&mut message).unwrap();
    read(&message[..length])
}

fn listen(path: &std::path::Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

#[test]
fn hostile_texts_make_no_second_record_and_are_the_same_as_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let syslog = listen(&path);
    let audit = SyslogAudit::start(SyslogAddress::Socket(path)).unwrap();
    let hostile =
        "a\n<110>1 1970-01-01T00:00:00.000Z h toolcrib 1 audit - {}\r\0\u{85}\u{9b}\u{2028}\u{7f}";
    let mut forged = record(hostile);
    forged.arguments = Some(json!({"text": hostile}));
    audit.record(&forged);
    audit.record(&record("next"));
    let mut message = [0; 4096];
    let length = syslog.recv(&mut message).unwrap();
    let text = std::str::from_utf8(&message[..length]).unwrap();
    assert!(!text.contains(|c: char| c.is_control() || c == '\u{2028}'), "{text:?}");
    assert!(text.ends_with(&forged.to_json()), "the same line as in the file");
    assert_eq!(read(text.as_bytes())["call_id"], hostile);
    assert_eq!(receive(&syslog)["call_id"], "next");
    assert_eq!(audit.lost(), 0);
}

#[test]
fn while_syslog_is_away_records_wait_and_those_that_are_too_many_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let audit = SyslogAudit::start(SyslogAddress::Socket(path.clone())).unwrap();
    let all = 4_096 + 500;
    (0..all).for_each(|id| audit.record(&record(&id.to_string())));
    // One is being sent, and the others wait.
    assert!((495..=500).contains(&audit.lost()), "{}", audit.lost());
    let until = Instant::now() + Duration::from_secs(10);
    while audit.problem().is_none() {
        assert!(Instant::now() < until, "nobody notices");
        std::thread::sleep(Duration::from_millis(5));
    }
    let syslog = listen(&path);
    let kept = all - usize::try_from(audit.lost()).unwrap();
    for id in 0..kept {
        assert_eq!(receive(&syslog)["call_id"], id.to_string(), "in order, none twice");
    }
    audit.flush();
    assert_eq!(audit.problem(), None);

    // A new socket at the same place, as after a restart of syslog. Another test may start a program at this moment, which
    // keeps the old socket open until it has begun.
    let probe = UnixDatagram::unbound().unwrap();
    probe.connect(&path).unwrap();
    probe.set_nonblocking(true).unwrap();
    drop(syslog);
    while probe.send(b"").map_err(|error| error.kind())
        != Err(std::io::ErrorKind::ConnectionRefused)
    {
        assert!(Instant::now() < until + Duration::from_secs(60), "the old socket stays open");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_file(&path).unwrap();
    let syslog = listen(&path);
    audit.record(&record("after"));
    assert_eq!(receive(&syslog)["call_id"], "after");
}

#[test]
fn a_record_that_is_too_large_is_sent_without_its_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let syslog = listen(&path);
    let audit = SyslogAudit::start(SyslogAddress::Socket(path)).unwrap();
    let mut large = record("large");
    large.arguments = Some(json!({"text": "x".repeat(100_000)}));
    audit.record(&large);
    let sent = receive(&syslog);
    assert_eq!(sent["arguments"], "[100011 bytes, too large for syslog]");
    audit.record(&record(&"y".repeat(100_000)));
    let sent = receive(&syslog);
    assert!(sent["call_id"].as_str().unwrap().starts_with("yyy"), "{sent}");
    assert_eq!(
        (&sent["tool"], audit.lost()),
        (&json!("t"), 0),
        "an id keeps no record away: {sent}"
    );
    audit.record(&record("next"));
    assert_eq!(receive(&syslog)["call_id"], "next");
}

#[test]
fn what_waits_at_the_end_is_given_up_after_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let audit = SyslogAudit::start(SyslogAddress::Socket(dir.path().join("nobody"))).unwrap();
    (0..100).for_each(|id| audit.record(&record(&id.to_string())));
    let began = Instant::now();
    audit.finish();
    assert_eq!(audit.lost(), 100);
    drop(audit);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[test]
fn messages_reach_a_host_by_datagrams_and_by_a_connection() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let to = |scheme: &str, at: std::net::SocketAddr| format!("{scheme}://{at}").parse().unwrap();
    let audit = SyslogAudit::start(to("udp", udp.local_addr().unwrap())).unwrap();
    audit.record(&record("one"));
    let mut message = [0; 4096];
    let length = udp.recv(&mut message).unwrap();
    assert_eq!(read(&message[..length])["call_id"], "one");

    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let audit = SyslogAudit::start(to("tcp", tcp.local_addr().unwrap())).unwrap();
    for id in ["a", "b"] {
        audit.record(&record(id));
    }
    let (stream, _) = tcp.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut stream = BufReader::new(stream);
    for id in ["a", "b"] {
        let mut length = String::new();
        loop {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            if byte == *b" " {
                break;
            }
            length.push(char::from(byte[0]));
        }
        let mut message = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut message).unwrap();
        assert_eq!(read(&message)["call_id"], id);
    }
}
