//! `state.keep` on a running server: its ages and bytes hold within one sweep period.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::crib::Crib;
use crate::harness::http::Http;

const TOKEN: &str = "a-token-of-the-test-0123456789";

/// A text of 200 KB, of which its caller gets a part.
const LONG: &str = r#"
toolcrib: 1
tools:
  - name: long
    description: A long text.
    limits: {output: 1MiB}
    input: {properties: {number: {type: integer}}, required: [number]}
    run: {argv: [bash, -c, 'echo "$NUMBER"; head -c 200000 /dev/zero | tr "\0" x'], env: {NUMBER: '${args.number}'}}
"#;

fn start(keep: &str) -> (Crib, Http) {
    let crib = Crib::new(&[("long.yaml", LONG)]);
    crib.config(&format!("state: {{dir: state, keep: {keep}}}\nserver: {{token: {TOKEN}}}\n"));
    let http = Http::start(&crib, TOKEN);
    (crib, http)
}

/// Makes a call with a long output; the handle of the whole text, if it is kept.
fn long_output(http: &Http, number: usize) -> Option<String> {
    let body = json!({"arguments": {"number": number}});
    let reply = http.ask("POST /v1/tools/long/call", Some(&body));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let shown = reply.json()["output"].as_str().expect("a text").to_owned();
    let mut words = shown.split(|letter: char| !letter.is_ascii_hexdigit());
    words.find(|word| word.len() == 32).map(str::to_owned)
}

/// The answer with the beginning of a kept text, or with the message that it has expired.
fn read(http: &Http, handle: &str) -> String {
    let body = json!({"arguments": {"handle": handle}});
    http.ask("POST /v1/tools/read_output/call", Some(&body)).body
}

/// How many entries and bytes of a kind are stored.
fn stored(crib: &Crib, kind: &str) -> (u64, u64) {
    let status = crib.run(&["status", "--json"]).json();
    let kinds =
        status["servers"][0]["state"]["kinds"].as_array().unwrap_or_else(|| panic!("{status}"));
    let found = kinds.iter().find(|own| own["kind"] == kind).expect("a kind");
    let number = |name: &str| found[name].as_u64().expect("a number");
    (number("entries"), number("bytes"))
}

#[track_caller]
fn within(limit: Duration, crib: &Crib, kind: &str, holds: impl Fn((u64, u64)) -> bool) {
    let until = Instant::now() + limit;
    while !holds(stored(crib, kind)) {
        assert!(Instant::now() < until, "{kind}: {:?}", stored(crib, kind));
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn long_outputs_never_exceed_their_bytes_also_with_the_ages_of_the_defaults() {
    let (crib, http) = start("{outputs: {max_bytes: 500KiB}}");
    let handles: Vec<_> =
        (0..6).map(|number| long_output(&http, number).expect("it fits")).collect();
    let (entries, bytes) = stored(&crib, "outputs");
    assert_eq!(entries, 2, "{bytes}");
    assert!(bytes <= 500 << 10, "{bytes}");
    for (number, handle) in handles.iter().enumerate() {
        let found = read(&http, handle);
        let expected = if number < 4 { "expired" } else { "xxx" };
        assert!(found.contains(expected), "{number}: {found}");
    }
    // One that is longer than all of them may be is cut without a handle.
    crib.config(&format!(
        "state: {{dir: state, keep: {{outputs: {{max_bytes: 100KiB}}}}}}\nserver: {{token: {TOKEN}}}\n"
    ));
    assert_eq!(crib.run(&["reload"]).code, Some(0));
    within(Duration::from_secs(10), &crib, "outputs", |(entries, _)| entries == 0);
    assert_eq!(long_output(&http, 7), None);
    assert_eq!(stored(&crib, "outputs"), (0, 0));
}

#[test]
fn ages_and_the_bytes_of_runs_hold_within_one_sweep_period() {
    // The shortest age is 4 s, so a sweep begins every second.
    let (crib, http) =
        start("{runs: {age: 1h, max_bytes: 8KiB}, outputs: {age: 4s}, answers: 1h, decisions: 1h}");
    let handle = long_output(&http, 1).expect("it fits");
    assert!(read(&http, &long_output(&http, 2).expect("it fits")).contains("xxx"), "it is young");
    let call = json!({"tool": "calculator", "arguments": {"expression": "1+1"}});
    let calls = json!({"calls": Value::Array(vec![call; 4])});
    let mut ids = Vec::new();
    for _ in 0..12 {
        let run = http.ask("POST /v1/runs", Some(&calls));
        assert_eq!(run.status, 201, "{}", run.body);
        ids.push(run.json()["id"].as_str().expect("an id").to_owned());
    }
    let period = Duration::from_secs(1);
    let slack = Duration::from_secs(10);
    within(period + slack, &crib, "runs", |(entries, bytes)| entries > 0 && bytes <= 8 << 10);
    let oldest = http.ask(&format!("GET /v1/runs/{}", ids[0]), None);
    assert_eq!((oldest.status, oldest.json()["kind"].as_str()), (410, Some("expired")));
    let newest = http.ask(&format!("GET /v1/runs/{}", ids[11]), None);
    assert_eq!(newest.status, 200, "{}", newest.body);

    // One of the two outputs was read a moment ago, so its reader has time for the rest.
    within(Duration::from_secs(4) + period + slack, &crib, "outputs", |(entries, _)| entries == 1);
    assert!(read(&http, &handle).contains("expired"));
}
