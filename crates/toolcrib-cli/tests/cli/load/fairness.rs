//! One client that uses up its share: others are answered as before and as fast as before, also after a restart.
//!
//! `.ci/long fairness` runs this with 10,000 waiting runs and 10,000 keys.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::http::Http;

const TOOLS: &str = "
toolcrib: 1
tools:
  - name: pick
    description: Ask the person for a file.
    input: {properties: {filter: {type: string}}}
    client: true
";

/// The number of timed answers of one client.
const TIMED: usize = 40;

struct Client {
    connection: Connection,
    name: &'static str,
    /// The next key, so that none is used twice.
    next: usize,
}

/// How a client was answered, and the 95th percentile of the times.
#[derive(Debug)]
struct Served {
    median: Duration,
    p95: Duration,
}

impl std::fmt::Display for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} (p95 {:?})", self.median, self.p95)
    }
}

impl Client {
    fn open(http: &Http, (name, token): &(&'static str, String)) -> Self {
        let connection = Connection::open(&http.address, token).expect("it listens");
        Self { connection, name, next: 0 }
    }

    fn ask(&mut self, line: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.connection.ask(line, headers, body).expect("an answer")
    }

    /// A call that waits.
    fn wait(&mut self) -> Reply {
        self.ask("POST /v1/tools/pick/call", &[], &json!({"arguments": {"filter": "*.txt"}}))
    }

    /// A call with a new key.
    fn keyed(&mut self) -> Reply {
        self.next += 1;
        self.keyed_as(self.next)
    }

    fn keyed_as(&mut self, number: usize) -> Reply {
        let key = format!("{}-{number}", self.name);
        let body = json!({"arguments": {"text": "x", "operation": "upper"}});
        self.ask("POST /v1/tools/text_process/call", &[("idempotency-key", &key)], &body)
    }

    /// Calls with keys, and calls that wait and are then cancelled, from one client's view.
    fn served(&mut self) -> Served {
        let mut times: Vec<_> = (0..TIMED)
            .map(|_| {
                let began = Instant::now();
                let called = self.keyed();
                assert_eq!(called.status, 200, "{called:?}");
                let waits = self.wait();
                assert_eq!(waits.status, 202, "{waits:?}");
                let line = format!("DELETE /v1/runs/{}", waits.body["id"].as_str().expect("an id"));
                assert_eq!(self.ask(&line, &[], &Value::Null).status, 200);
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        Served { median: times[TIMED / 2], p95: times[TIMED * 95 / 100] }
    }
}

#[test]
fn a_client_that_fills_its_share_leaves_others_answers_and_durations_as_they_were() {
    let share: usize =
        std::env::var("TOOLCRIB_FAIRNESS").map_or(150, |text| text.parse().expect("a number"));
    let crib = Crib::new(&[("tools.yaml", TOOLS)]);
    let mut config = format!(
        "state: {{dir: state}}\nlimits: {{per_client: {{runs: {share}, keys: {share}}}}}\n\
         server:\n  token: the-operators-token-is-kept-here\n  tokens:\n"
    );
    let clients = ["ada", "bob"].map(|name| {
        let made = crib.run(&["token", name, "--json"]).json();
        let _ = writeln!(config, "    {name}: {{hash: {}}}", made["hash"]);
        (name, made["token"].as_str().expect("a token").to_owned())
    });
    crib.config(&config);
    let http = Http::start(&crib, "");
    let [mut ada, mut bob] = clients.each_ref().map(|client| Client::open(&http, client));
    let before = bob.served();

    let began = Instant::now();
    let (mut waiting, mut kept) = (0, 0);
    let refused = loop {
        let waits = ada.wait();
        if waits.status != 202 {
            break waits;
        }
        waiting += 1;
    };
    assert_eq!((waiting, refused.status), (share, 503));
    assert!(refused.body["detail"].as_str().is_some_and(|text| text.contains("this client has")));
    let refused = loop {
        let called = ada.keyed();
        if called.status != 200 {
            break called;
        }
        kept += 1;
    };
    assert_eq!((kept, refused.status), (share, 429));
    assert!(refused.body["detail"].as_str().is_some_and(|text| text.contains("per_client.keys")));
    let filled = began.elapsed();

    // A connection without requests is closed after this time.
    let next = bob.next;
    let [mut ada, mut bob] = clients.each_ref().map(|client| Client::open(&http, client));
    bob.next = next;
    let with = bob.served();
    let page = ada.ask("GET /v1/runs?limit=100", &[], &Value::Null);
    assert_eq!(page.body["runs"].as_array().map(Vec::len), Some(100));
    assert!(page.body.to_string().len() < 100_000);

    let began = Instant::now();
    http.server.signal("KILL");
    drop(http);
    let http = Http::start(&crib, "");
    let started = began.elapsed();
    let next = bob.next;
    let [mut ada, mut bob] = clients.each_ref().map(|client| Client::open(&http, client));
    bob.next = next;
    let after = bob.served();
    // All clients still have their answers, and the one with too much still has its share.
    for client in [&mut ada, &mut bob] {
        let again = client.keyed_as(1);
        assert_eq!((again.status, again.header("idempotency-replayed")), (200, Some("true")));
    }
    assert_eq!((ada.wait().status, ada.keyed_as(share + 2).status), (503, 429));
    println!(
        "{share} waiting runs and {share} keys of one client in {filled:?}; another's requests: \
         {before} before, {with} with them, {after} after kill -9 and a start of {started:?}"
    );
    for served in [&with, &after] {
        let bound = before.median * 5 + Duration::from_millis(100);
        assert!(served.median < bound, "{served:?} instead of {before:?}");
    }
}
