//! Request tools from the command line: a real server, and a secret that is never shown.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::crib::{Crib, Run, run};
use crate::harness::http::Http;

/// A server on loopback that records every request and answers by its number, from 0.
pub(crate) struct Server {
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(usize, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for (number, socket) in listener.incoming().enumerate() {
                let mut socket = socket.expect("a connection");
                let _ = socket.set_read_timeout(Some(Duration::from_secs(5)));
                let mut asked = [0; 8192];
                let read = socket.read(&mut asked).unwrap_or(0);
                let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
                let answer = answer(number, &asked);
                noted.lock().expect("no panic").push(asked);
                let _ = socket.write_all(answer.as_bytes());
            }
        });
        Self { address, seen }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
}

/// A crib with one tool that sends a request to the server.
fn crib(server: &Server, more: &str) -> Crib {
    let manifest = format!(
        r#"
toolcrib: 1
tools:
  - name: ticket
    description: Show one ticket of the tracker. Read-only.
    annotations: {{read_only: true, idempotent: true}}
    input: {{properties: {{id: {{type: string}}}}, required: [id]}}
    retry: {{max: 2, backoff: 10ms}}
    http:
      url: "http://{}/tickets/${{args.id}}"
      auth: {{bearer: "${{secret.ticket_token}}"}}
      allow_private: [127.0.0.1]
{more}"#,
        server.address
    );
    let crib = Crib::new(&[("tickets.yaml", &manifest)]);
    crib.config("secrets: {ticket_token: {env: TICKET_TOKEN}}\n");
    crib
}

fn call(crib: &Crib, arguments: &[&str]) -> Run {
    run(crib.command(arguments).env("TICKET_TOKEN", "hunter2-secret"))
}

#[test]
fn a_request_carries_its_secret_and_no_answer_shows_it() {
    let server = Server::start(|_, asked| answer("200 OK", "content-type: text/plain\r\n", asked));
    let crib = crib(&server, "");
    let shown = call(&crib, &["call", "ticket", "id=a/../b"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let seen = &server.seen()[0];
    assert!(seen.starts_with("GET /tickets/a%2F..%2Fb HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("authorization: Bearer hunter2-secret\r\n"), "{seen}");
    // The server sent the secret back, but it is not shown.
    assert!(shown.stdout.contains("authorization: Bearer "), "{shown:?}");
    assert!(!format!("{shown:?}").contains("hunter2-secret"), "{shown:?}");
}

#[test]
fn without_its_secret_a_tool_is_unavailable_and_says_which() {
    let server = Server::start(|_, _| answer("200 OK", "", ""));
    let crib = crib(&server, "");
    let run = crib.run(&["list", "--all"]);
    assert!(run.stdout.contains("needs the secret `ticket_token`"), "{run:?}");
    assert_ne!(crib.run(&["call", "ticket", "id=1"]).code, Some(0));
    assert!(server.seen().is_empty());
}

#[test]
fn retry_after_of_a_service_is_respected() {
    let server = Server::start(|number, _| match number {
        0 => answer("503 Service Unavailable", "retry-after: 1\r\n", "later"),
        _ => answer("200 OK", "content-type: application/json\r\n", r#"{"state": "open"}"#),
    });
    let crib = crib(&server, "      select: /state\n");
    let began = Instant::now();
    let run = call(&crib, &["call", "ticket", "id=7"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "open\n"), "{run:?}");
    assert_eq!(server.seen().len(), 2);
    assert!(began.elapsed() >= Duration::from_secs(1), "it waited for less than a second");
}

#[test]
fn a_refusal_of_the_service_reaches_the_model_with_what_to_do() {
    let server = Server::start(|_, _| answer("404 Not Found", "", "no ticket 7"));
    let crib = crib(&server, "");
    let run = call(&crib, &["call", "ticket", "id=7"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let said = format!("{}{}", run.stdout, run.stderr);
    for part in ["answered 404 Not Found", "no ticket 7", "check the arguments"] {
        assert!(said.contains(part), "{part}: {run:?}");
    }
    assert_eq!(server.seen().len(), 1, "a 404 is final");
}

#[test]
fn a_masked_refusal_still_has_its_retry_delay() {
    let server = Server::start(|_, _| {
        answer("429 Too Many Requests", "retry-after: 3600\r\n", "hunter2-secret asks too often")
    });
    let crib = crib(&server, "");
    let path = crib.path().join("tools.d/tickets.yaml");
    let text = std::fs::read_to_string(&path).expect("the manifest");
    std::fs::write(&path, text.replace("    retry: {max: 2, backoff: 10ms}\n", "")).expect("ours");
    let secret = crib.data().join("ticket_token");
    std::fs::write(&secret, "hunter2-secret\n").expect("ours");
    crib.config(&format!("secrets: {{ticket_token: {{file: {}}}}}\n", secret.display()));
    let http = Http::start(&crib, "");
    let mut connection = http.connection();
    let body = json!({"arguments": {"id": "7"}});
    let refused = connection.ask("POST /v1/tools/ticket/call", &[], &body).expect("an answer");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(!format!("{refused:?}").contains("hunter2-secret"), "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("3600"), "{refused:?}");
}

/// What follows the host in the URL of a webhook.
const HOOK: &str = "services/T0000/B0000/abcdefghijklmnopqrstuvwx";

#[test]
fn a_whole_secret_url_is_shown_nowhere() {
    let server = Server::start(|number, asked| {
        let first = asked.lines().next().unwrap_or_default();
        match number % 2 {
            0 => answer("200 OK", "content-type: text/plain\r\n", first),
            _ => answer("403 Forbidden", "", &format!("{first}: token is revoked")),
        }
    });
    let crib = Crib::new(&[(
        "tell.yaml",
        "toolcrib: 1\ntools:\n  - name: tell\n    description: Post a note.\n    \
         input: {properties: {text: {type: string}}, required: [text]}\n    http:\n      \
         url: \"${secret.hook}\"\n      method: POST\n      json: {text: \"${args.text}\"}\n      \
         allow_private: [127.0.0.1]\n",
    )]);
    let secret = crib.data().join("hook");
    std::fs::write(&secret, format!("http://{}/{HOOK}\n", server.address)).expect("a secret");
    let audit = crib.data().join("audit.jsonl");
    crib.config(&format!(
        "state: {{dir: state}}\nsecrets: {{hook: {{file: {}}}}}\naudit: {{file: {}, arguments: redacted}}\n",
        secret.display(),
        audit.display()
    ));
    let mut told = String::new();
    for arguments in [
        &["call", "tell", "text=hi"][..],
        &["call", "tell", "text=hi"],
        &["call", "tell", "text=hi", "--dry-run"],
        &["call", "tell", "text=hi", "--dry-run", "--json"],
        &["show", "tell"],
        &["list", "--all", "--json"],
        &["check"],
        &["doctor"],
    ] {
        let run = crib.run(arguments);
        writeln!(told, "{arguments:?} {run:?}").expect("a text");
    }
    assert!(told.contains("POST /[masked] HTTP/1.1"), "{told}");
    assert!(told.contains("the server of `${secret.hook}` answered 403 Forbidden"), "{told}");
    assert!(told.contains("POST ${secret.hook}"), "{told}");

    let log = crib.data().join("log");
    let file = std::fs::File::create(&log).expect("a file");
    let mut serve = crate::harness::server::command(env!("CARGO_BIN_EXE_toolcrib"));
    serve.args(["serve", "--no-auth", "--listen", "127.0.0.1:0", "--json"]);
    serve.env("RUST_LOG", "trace").env_remove("TOOLCRIB_TOKEN");
    let http = Http::spawn_with_log(&crib, serve, file);
    for _ in 0..2 {
        let body = json!({"arguments": {"text": "hi"}});
        let mut text = String::new();
        let line = "POST /v1/tools/tell/call HTTP/1.1\r\naccept: text/event-stream";
        http.stream(line, &body).read_to_string(&mut text).expect("it answers");
        told.push_str(&text);
    }
    told.push_str(&http.ask("GET /metrics", None).body);
    drop(http);
    assert_eq!(server.seen().len(), 4);
    // Not in the log: at level `trace`, it has the addresses of connections.
    assert!(!told.contains(&server.address), "{told}");
    for file in [&log, &audit] {
        let text = std::fs::read_to_string(file).expect("it was written");
        assert!(text.contains("tell"), "{}: {text}", file.display());
        told.push_str(&text);
    }
    let place = |part: &str| told.find(part).map(|at| &told[at.saturating_sub(300)..at + 100]);
    for part in ["T0000", "abcdefghijklmnop"] {
        assert_eq!(place(part), None, "{part} is shown");
    }
}

#[test]
fn a_server_inside_the_network_has_to_be_allowed() {
    let server = Server::start(|_, _| answer("200 OK", "", ""));
    let crib = crib(&server, "");
    let path = crib.path().join("tools.d/tickets.yaml");
    let text = std::fs::read_to_string(&path).expect("the manifest");
    let text = text.replace("      allow_private: [127.0.0.1]\n", "");
    std::fs::write(&path, text).expect("the manifest");
    let run = crib.run(&["check"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("error[private-address]: `127.0.0.1` is a loopback address"), "{said}");
    assert_ne!(call(&crib, &["call", "ticket", "id=7"]).code, Some(0));
    assert!(server.seen().is_empty());
}
