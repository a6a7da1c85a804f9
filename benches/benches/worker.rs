//! A call of a kept-alive worker beside a start for each call, and beside a bare round trip through
//! the pipes of the same program.
//!
//! `cargo bench -p toolcrib-benches --bench worker [-- compiled|python]`

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use toolcrib::manifests::Manifests;
use toolcrib::runners::RunnerHost;
use toolcrib::{ToolCall, Toolcrib};
use toolcrib_benches::target::{Target, verdicts};
use toolcrib_benches::{Contender, interleaved};

/// Rounds; their median is shown.
const ROUNDS: usize = 9;
/// Calls in a round.
const CALLS: u64 = 2_000;
/// Of so many calls a contender that starts a program makes one.
const PER_START: u64 = 100;

/// Calls made by a task of the runtime, as a server makes them.
const SERVED: &str = "ours/task-of-two-threads";

const ARGUMENTS: &str = r#"{"lat":52.52,"lon":13.405}"#;
/// The line that the tool's worker gets for a call.
const LINE: &str = r#"{"id":1,"tool":"stay","arguments":{"lat":52.52,"lon":13.405},"context":{}}"#;

/// A worker that does no more than one in Python must.
const PYTHON: &str = r#"
import json, sys
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({"id": call["id"], "output": "ok"}), flush=True)
"#;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    println!("Medians of {ROUNDS} interleaved rounds; only the ratios inside one run count.\n");
    println!("| worker | contender | µs per call | `ours` ÷ this | target |");
    println!("|---|---|---:|---:|---|");
    if wants("compiled") {
        rows("compiled", &[env!("CARGO_BIN_EXE_echo-worker")])?;
    }
    if wants("python") {
        let dir = tempfile::tempdir()?;
        let script = dir.path().join("worker.py");
        fs::write(&script, PYTHON)?;
        rows("python3", &[&python()?, &script.to_string_lossy()])?;
    }
    Ok(())
}

/// The interpreter itself, whatever wrapper the name leads to.
fn python() -> Result<String, Failure> {
    let asked = std_command(&["python3", "-c", "import sys; print(sys.executable)"]).output()?;
    Ok(String::from_utf8(asked.stdout)?.trim().to_owned())
}

fn rows(worker: &str, argv: &[&str]) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("tools.yaml"), manifest(argv)?)?;
    let one = Builder::new_current_thread().enable_all().build()?;
    let served = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let two = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let starting = Builder::new_current_thread().enable_all().build()?;
    let rounds = interleaved(
        &mut [
            calls("ours", one, dir.path(), "stay", 1)?,
            calls(SERVED, served, dir.path(), "stay", 1)?,
            calls("ours/beside-two-threads", two, dir.path(), "stay", 1)?,
            calls("ours/start", starting, dir.path(), "start", PER_START)?,
            pipes("limit/pipes", argv)?,
        ],
        ROUNDS,
        CALLS,
    );
    for name in rounds.names() {
        let targets = [Target::Nanoseconds(15_000.0)];
        let verdict = if ["ours", SERVED].contains(name) {
            verdicts(&targets, &rounds, name)
        } else {
            String::new()
        };
        println!(
            "| {worker} | {name} | {:.1} | {:.3} | {verdict} |",
            rounds.median(name) / 1e3,
            rounds.ratio("ours", name)
        );
    }
    Ok(())
}

/// Two tools of one program: it stays, or it is started for each call.
fn manifest(argv: &[&str]) -> Result<String, Failure> {
    let argv = serde_json::to_string(argv)?;
    let tool = |name: &str, run: &str| {
        format!(
            "  - name: {name}
    description: Find the country of a place by its coordinates. Read-only.
    annotations: {{read_only: true}}
    input:
      properties: {{lat: {{type: number}}, lon: {{type: number}}}}
      required: [lat, lon]
    run: {run}
"
        )
    };
    let stay = tool("stay", &format!("{{worker: {argv}}}"));
    // Started for the call, it reads the same line.
    let line = LINE.replace("52.52", "${args.lat}").replace("13.405", "${args.lon}");
    let start = tool("start", &format!("{{argv: {argv}, stdin: '{line}'}}"));
    Ok(format!("toolcrib: 1\ntools:\n{stay}{start}"))
}

/// The whole call: `Turn::call`, from the text of the arguments to the result. `every` says of how
/// many calls one is made.
fn calls(
    contender: &'static str,
    runtime: Runtime,
    dir: &Path,
    tool: &'static str,
    every: u64,
) -> Result<Contender, Failure> {
    let found = Manifests::load(&[dir.to_owned()], RunnerHost::new(dir));
    if let Some((file, _)) = found.files().problems().next() {
        return Err(file.render(false).into());
    }
    let crib: Arc<Toolcrib> = {
        let _inside = runtime.enter();
        Arc::new(Toolcrib::builder().manifests(&found).build()?)
    };
    Ok(Contender::new(contender, move |times| {
        let made = times / every;
        let crib = Arc::clone(&crib);
        let work = async move {
            let turn = crib.turn();
            let start = Instant::now();
            for _ in 0..made {
                let result = turn.call(ToolCall::new("call_1", tool, ARGUMENTS)).await;
                assert!(result.is_success(), "{}", result.text());
            }
            start.elapsed()
        };
        let elapsed = match contender {
            SERVED => runtime.block_on(async {
                match runtime.spawn(work).await {
                    Ok(elapsed) => elapsed,
                    Err(ended) => std::panic::resume_unwind(ended.into_panic()),
                }
            }),
            _ => runtime.block_on(work),
        };
        // As if all had been made: a start takes too long to make as many.
        elapsed * u32::try_from(every).unwrap_or(u32::MAX)
    }))
}

/// A line written to the program and its answer read, by the calling thread: no parsing, no checks.
fn pipes(contender: &'static str, argv: &[&str]) -> Result<Contender, Failure> {
    let mut child = std_command(argv).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("it is piped")?;
    let mut output = BufReader::new(child.stdout.take().ok_or("it is piped")?);
    let line = format!("{LINE}\n");
    let mut answer = String::new();
    let mut trip = move || {
        answer.clear();
        input.write_all(line.as_bytes()).and_then(|()| output.read_line(&mut answer))
    };
    // The first answer comes when the program has been loaded.
    trip()?;
    Ok(Contender::new(contender, move |times| {
        let start = Instant::now();
        for _ in 0..times {
            assert!(trip().is_ok_and(|read| read > 0), "the program has ended");
        }
        start.elapsed()
    }))
}

#[expect(clippy::disallowed_methods, reason = "std is what ours is held against")]
fn std_command(argv: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(argv.first().copied().unwrap_or_default());
    command.args(argv.iter().skip(1));
    command
}
