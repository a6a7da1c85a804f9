//! Servers under stress: manifests are rewritten, servers are killed and stopped, the disk is full, descriptors run
//! out, clients read slowly or disconnect. Every call has a unique number and writes it to a file, so that lost,
//! repeated and wrong calls can be counted.
//!
//! The regular run is short. `.ci/long storm` sets `TOOLCRIB_STORM` and runs the complete test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::connection::{Connection, Reply};
use crate::harness::crib::Crib;
use crate::harness::server::{Server, command};

mod descriptors;
mod disk;
mod kills;
mod readers;
mod rewrites;
mod stops;
mod streams;

const TOKEN: &str = "a-token-that-is-kept-over-restarts";

/// Tools that append a number to the file `data/effects`: one that starts a program for each call, one that needs
/// approval, and one with a single process for many calls. `nap` sleeps, `pick` is run by the client.
const TOOLS: &str = r#"toolcrib: 1
tools:
  - name: mark
    description: Append a number to a file.
    input: {properties: {number: {type: string}}, required: [number]}
    limits: {timeout: 120s}
    run:
      argv: [sh, -c, 'cd data; printf "%s\n" "$NUMBER" >>effects; printf "marked %s" "$NUMBER"']
      env: {NUMBER: "${args.number}"}
  - name: sign
    description: Append a number to a file once somebody agrees.
    approval: always
    input: {properties: {number: {type: string}}, required: [number]}
    limits: {timeout: 120s}
    run:
      argv: [sh, -c, 'cd data; printf "%s\n" "$NUMBER" >>effects; printf "signed %s" "$NUMBER"']
      env: {NUMBER: "${args.number}"}
  - name: note
    description: Append a number to a file, in a process that stays.
    input: {properties: {number: {type: string}}, required: [number]}
    limits: {timeout: 120s}
    run:
      worker: [python3, -I, -S, worker.py]
      env: {EFFECTS: "FOLDER/data"}
  - name: nap
    description: Sleep.
    input: {properties: {seconds: {type: string}}, required: [seconds]}
    limits: {timeout: 10m}
    run: {argv: [sleep, "${args.seconds}"]}
  - name: pick
    description: Ask the person for a file.
    client: true
"#;

const WORKER: &str = r#"
import json, os, sys

effects = os.open(os.environ["EFFECTS"] + "/effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for line in sys.stdin:
    call = json.loads(line)
    if "cancel" in call:
        continue
    number = call["arguments"]["number"]
    os.write(effects, (number + "\n").encode())
    print(json.dumps({"id": call["id"], "output": "noted " + number}), flush=True)
"#;

/// A figure of the regular run, and of the long one.
fn figure(short: usize, long: usize) -> usize {
    if std::env::var_os("TOOLCRIB_STORM").is_some() { long } else { short }
}

fn crib(config: &str) -> Crib {
    let crib = Crib::new(&[("worker.py", WORKER)]);
    let folder = crib.path().to_str().expect("a name in UTF-8");
    fs::create_dir(crib.path().join("data")).expect("a folder");
    crib.write("tools.yaml", &TOOLS.replace("FOLDER", folder));
    crib.config(&format!(
        "state: {{dir: state}}\naudit: {{file: audit.jsonl}}\nserver: {{token: {TOKEN}, read_timeout: 3s}}\n{config}"
    ));
    crib
}

/// A server and its address.
struct Listening {
    server: Server,
    address: String,
}

impl Listening {
    fn start(crib: &Crib) -> Self {
        Self::of(Server::start(crib, &["serve", "--listen", "127.0.0.1:0", "--json"]))
    }

    /// A server that is started by a line of shell, which ends with `exec "$@"`.
    fn start_by(crib: &Crib, shell: &[&str]) -> Self {
        let (program, arguments) = shell.split_first().expect("a shell");
        let mut own: Command = command(program);
        own.args(arguments).arg(env!("CARGO_BIN_EXE_toolcrib"));
        own.args(["serve", "--listen", "127.0.0.1:0", "--json"]).env_remove("TOOLCRIB_TOKEN");
        Self::of(Server::spawn(crib, own))
    }

    fn of(mut server: Server) -> Self {
        let said = server.receive();
        let address = said["api"].as_str().expect("a URL").trim_start_matches("http://").to_owned();
        Self { server, address }
    }

    fn connection(&self) -> Connection {
        Connection::open(&self.address, TOKEN).expect("it listens")
    }

    /// Whether a new connection gets an answer within this time.
    #[track_caller]
    fn serves_within(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        loop {
            let health = Connection::open(&self.address, TOKEN)
                .and_then(|mut connection| connection.ask("GET /health", &[], &Value::Null));
            match health {
                Ok(Reply { status: 200, .. }) => return,
                other => assert!(Instant::now() < deadline, "it serves no more: {other:?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn body(number: &str) -> Value {
    json!({"arguments": {"number": number}, "call_id": number})
}

/// The reported outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It succeeded: its number is in the file exactly once.
    Done,
    /// It did not run: its number is not in the file.
    Refused,
    /// Its outcome is unknown, because the client was told so or disconnected: its number is there
    /// at most once.
    Unknown,
}

/// Interprets the answer to a call of one of [`TOOLS`]. `Err`: the answer cannot be correct.
fn told(number: &str, reply: &Reply) -> Result<Told, String> {
    let Reply { status, body, .. } = reply;
    let wrong = || Err(format!("{number}: {reply:?}"));
    if *status == 200 {
        let output = body["output"].as_str().unwrap_or_default();
        let is_its = output.strip_suffix(number).is_some_and(|said| said.ends_with("ed "));
        return if is_its && body["call_id"] == number { Ok(Told::Done) } else { wrong() };
    }
    match (*status, body["kind"].as_str().unwrap_or_default()) {
        (503, "unavailable" | "paused") | (429, "rate_limited") => Ok(Told::Refused),
        (424, "outcome_unknown") | (503, "cancelled") => Ok(Told::Unknown),
        _ => wrong(),
    }
}

/// All calls with their reported outcomes.
#[derive(Default)]
struct Ledger {
    calls: Mutex<BTreeMap<String, Told>>,
    wrong: Mutex<Vec<String>>,
    /// Calls without an effect that were answered correctly.
    others: Mutex<usize>,
}

impl Ledger {
    fn enter(&self, number: &str, told: Result<Told, String>) {
        match told {
            Ok(told) => {
                let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                if calls.insert(number.to_owned(), told).is_some() {
                    drop(calls);
                    self.wrong(format!("{number} has two answers"));
                }
            }
            Err(wrong) => self.wrong(wrong),
        }
    }

    fn wrong(&self, what: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn right(&self) {
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    /// Compares the reported outcomes with the effects.
    #[expect(clippy::print_stdout, reason = "a test prints what it counted")]
    #[track_caller]
    fn close(self, part: &str, crib: &Crib) -> Sum {
        let calls = self.calls.into_inner().expect("nobody failed");
        let mut wrong = self.wrong.into_inner().expect("nobody failed");
        let others = self.others.into_inner().expect("nobody failed");
        let effects = effects(crib);
        let mut sum = Sum { others, ..Sum::default() };
        let (mut lost, mut doubled) = (Vec::new(), Vec::new());
        for (number, told) in &calls {
            let times = effects.get(number).copied().unwrap_or_default();
            match told {
                Told::Done => sum.done += 1,
                Told::Refused => sum.refused += 1,
                Told::Unknown => sum.unknown += 1,
            }
            match (told, times) {
                (Told::Done, 1) | (Told::Refused, 0) | (Told::Unknown, 0 | 1) => {}
                (Told::Done, 0) => lost.push(number),
                (Told::Refused, 1) => wrong.push(format!("{number} was refused and done")),
                _ => doubled.push(number),
            }
        }
        wrong.extend(
            effects
                .keys()
                .filter(|number| !calls.contains_key(*number))
                .map(|number| format!("{number} was done for nobody")),
        );
        println!(
            "storm {part}: {sum}; {} lost, {} doubled, {} wrong",
            lost.len(),
            doubled.len(),
            wrong.len()
        );
        wrong.truncate(20);
        assert!(
            lost.is_empty() && doubled.is_empty() && wrong.is_empty(),
            "{part}: lost {lost:?}, doubled {doubled:?}, wrong {wrong:#?}"
        );
        sum
    }
}

#[derive(Default)]
struct Sum {
    done: usize,
    refused: usize,
    unknown: usize,
    others: usize,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, refused, unknown, others } = self;
        let all = done + refused + unknown + others;
        write!(
            f,
            "{all} calls: {done} done, {refused} refused, {unknown} of unknown outcome, {others} without effects"
        )
    }
}

/// How often each number is in the file.
fn effects(crib: &Crib) -> BTreeMap<String, usize> {
    let mut effects = BTreeMap::new();
    for line in fs::read_to_string(crib.path().join("data/effects")).unwrap_or_default().lines() {
        *effects.entry(line.to_owned()).or_insert(0) += 1;
    }
    effects
}

/// Every line of the audit log is complete, and no call has succeeded twice.
#[track_caller]
fn audited(crib: &Crib) -> usize {
    let text = fs::read_to_string(crib.path().join("audit.jsonl")).expect("it is written");
    assert!(text.ends_with('\n'), "half a line");
    let mut succeeded = BTreeSet::new();
    for line in text.lines() {
        let record: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if record["outcome"] == "success" && record["tool"] != "pick" {
            let id = record["call_id"].as_str().expect("an id");
            assert!(succeeded.insert(id.to_owned()), "twice: {record}");
        }
    }
    text.lines().count()
}

/// Processes with this text in their arguments.
fn processes_with(argument: &str) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    all.map(|entry| entry.path().join("cmdline"))
        .filter(|path| {
            let line = fs::read(path).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|one| one == argument.as_bytes())
        })
        .collect()
}

/// Ends the clients of a test, even if it fails: it would wait for them forever.
struct EndsClients<'a>(&'a AtomicBool);

impl Drop for EndsClients<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[track_caller]
fn until(what: &str, patience: Duration, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + patience;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The median and the maximum.
fn times(mut took: Vec<Duration>) -> String {
    took.sort_unstable();
    let middle = took.get(took.len() / 2).copied().unwrap_or_default();
    format!("p50 {middle:.1?}, at most {:.1?}", took.last().copied().unwrap_or_default())
}
