//! Processes that are killed while they drive a run: no call that is not repeatable runs twice, and every run can be continued.
//!
//! The worker is this test program itself, started with a variable that tells it its folder. Its tools write a line
//! before and after their effect, so the test knows what has run whatever the journal says.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_agent::journal;
use toolcrib_agent::model::Endpoint;
use toolcrib_agent::run::RunState;
use toolcrib_agent::{Agent, JournalEntry};
use toolcrib_core::run::Journal as _;
use toolcrib_core::{Executor, Registry, TurnOptions};
use toolcrib_store::{Database, Runs};
use toolcrib_testkit::model_server::{ModelServer, Reply};
use toolcrib_tool::ToolDefinition;
use toolcrib_wire::model::Wire;

use crate::fixture::transcript;

/// The variable that names the worker's folder.
const FOLDER: &str = "TOOLCRIB_AGENT_WORKER";
/// The variable that names the model's address.
const MODEL: &str = "TOOLCRIB_AGENT_MODEL";
/// The variable that names the model's protocol.
const WIRE: &str = "TOOLCRIB_AGENT_WIRE";
/// Runs that are killed for each protocol.
const RUNS: usize = 12;
/// How often each is killed.
const KILLS: u64 = 3;

/// An agent whose tools leave a line for every effect.
fn agent(folder: &Path, wire: Wire, base_url: &str) -> Agent {
    let effects = folder.join("effects");
    let tool = |name: &'static str, is_read_only: bool| {
        let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
        let definition = ToolDefinition::builder(name)
            .description("A tool of a test.")
            .read_only(is_read_only)
            .input_schema(schema)
            .build()
            .unwrap();
        let effects = effects.clone();
        let body = move |arguments: Value, _| {
            let effects: PathBuf = effects.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                let line = format!("{name} {}\n", arguments["id"]);
                let mut file = OpenOptions::new().create(true).append(true).open(effects).unwrap();
                file.write_all(line.as_bytes()).unwrap();
                tokio::time::sleep(Duration::from_millis(3)).await;
                "done"
            }
        };
        (definition, body)
    };
    let ((look, looks), (act, acts)) = (tool("look", true), tool("act", false));
    let registry = Registry::scratch().tool_as(look, looks).tool_as(act, acts).build().unwrap();
    let model = Endpoint::new(wire, base_url, "scripted").allow("127.0.0.0/8".parse().unwrap());
    Agent::builder(Executor::builder(registry).build(), Arc::new(model))
        .journal(Arc::new(Runs::new(&Database::open(folder).unwrap())))
        .turn_options(TurnOptions::default())
        .build()
}

fn wire_named(name: &str) -> Wire {
    *Wire::ALL.iter().find(|wire| wire.as_str() == name).unwrap()
}

/// Runs only in a worker process: begins or continues the run of its folder.
#[tokio::test]
async fn worker() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let wire = wire_named(&std::env::var(WIRE).unwrap());
    let agent = agent(&folder, wire, &std::env::var(MODEL).unwrap());
    match agent.runs(None, 1).await.unwrap().first() {
        None => agent.run("Work.").await.unwrap(),
        Some(run) => agent.resume(run.id()).await.unwrap(),
    };
}

/// Five rounds: each looks, acts twice and is followed by the next.
fn script() -> Vec<Reply> {
    let round = |number: i64| {
        Reply::call("look", json!({"id": number}))
            .and_call("act", json!({"id": number}))
            .and_call("act", json!({"id": number + 100}))
    };
    (0..5).map(round).chain([Reply::text("Done.")]).collect()
}

/// Kills a run's processes at moments that differ from run to run, continues it to its end, and checks what ran. Returns
/// how many kills hit a run that was not over.
async fn kill_and_continue(wire: Wire, seed: u64) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let worker = |url: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["kills::worker", "--exact", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .env(MODEL, url)
            .env(WIRE, wire.as_str())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let journal = Runs::new(&Database::open(folder.path()).unwrap());
    let server = ModelServer::without_memory(wire, script()).await;
    let mut inside = 0;
    for kill in 0..KILLS {
        let mut child = worker(&server.base_url());
        let wait = 20 + (seed * 37 + kill * 53) % 90;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        inside += usize::from(is_inside(&journal).await);
    }
    let agent = agent(folder.path(), wire, &server.base_url());
    let report = match agent.runs(None, 1).await.unwrap().first() {
        None => agent.run("Work.").await.unwrap(),
        Some(run) => agent.resume(run.id()).await.unwrap(),
    };
    assert_eq!(server.violations(), Vec::<String>::new(), "{wire} {seed}");
    assert_eq!(report.state(), RunState::Completed, "{wire} {seed}");
    assert_eq!(report.text(), "Done.", "{wire} {seed}");

    let effects = fs::read_to_string(folder.path().join("effects")).unwrap();
    let mut counts = BTreeMap::new();
    for line in effects.lines() {
        *counts.entry(line).or_insert(0) += 1;
    }
    let said = transcript(&report);
    let unknown = said.iter().filter(|line| line.contains("Look before")).count();
    let mut missing = 0;
    for id in (0..5).chain(100..105) {
        let count = counts.get(format!("act {id}").as_str()).copied().unwrap_or(0);
        assert!(count <= 1, "{wire} {seed}: act {id} ran {count} times");
        missing += usize::from(count == 0);
    }
    assert!(missing <= unknown, "{wire} {seed}: {missing} calls are missing, {unknown} unknown");
    // The transcript differs from the undisturbed one only where an outcome is unknown.
    assert_eq!(said.len(), 1 + 5 * 6 + 1, "{wire} {seed}: {said:?}");
    let answered = said.iter().filter(|line| line.ends_with(": done")).count();
    assert_eq!(answered + unknown, 15, "{wire} {seed}: {said:?}");
    inside
}

/// Whether the run of a journal has begun but not ended.
async fn is_inside(journal: &Runs) -> bool {
    let runs = journal.list("", None, 1).await.unwrap();
    let Some(run) = runs.first() else { return false };
    let rows = journal::read(journal, run.id(), 0, 10_000).await.unwrap().unwrap();
    !matches!(rows.last(), Some((_, row)) if matches!(row.entry, JournalEntry::Finished { .. }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_continues_and_repeats_no_call_with_effects() {
    let mut inside = 0;
    for &wire in Wire::ALL {
        for seed in 0..RUNS {
            inside += kill_and_continue(wire, seed as u64).await;
        }
    }
    println!("{inside} kills inside a run");
    assert!(inside > 0, "no kill hit a run that was not over");
}
