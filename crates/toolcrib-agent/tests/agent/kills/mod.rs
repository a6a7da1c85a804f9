//! Processes that are killed while they drive a run: no call that is not repeatable runs twice, no call is lost, and every run
//! can be continued to the end that it would have had.
//!
//! The worker is this test program itself, started with variables that tell it what to do. It kills itself with SIGKILL at
//! a moment: before or after any commit, or inside a tool, before or after its effect. A tool's effect is a line in a file, so
//! the test knows what has run whatever the journal says.

mod points;
mod scenario;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolcrib_agent::run::RunState;
use toolcrib_agent::{Agent, RunReport};
use toolcrib_core::run::Journal as _;
use toolcrib_core::suspension::SuspensionStore as _;
use toolcrib_store::{Database, Runs, Suspensions};
use toolcrib_testkit::model_server::ModelServer;

use crate::fixture::transcript;
use points::Points;
use scenario::{Kind, Mode, SAID, Scenario, times_said, work};

/// The variables that tell a worker its folder, its scenario, its models and when it dies.
const FOLDER: &str = "TOOLCRIB_AGENT_WORKER";
const SCENARIO: &str = "TOOLCRIB_AGENT_SCENARIO";
const MODELS: &str = "TOOLCRIB_AGENT_MODELS";
const DIE_AT: &str = "TOOLCRIB_AGENT_DIES_AT";

/// The variable with the number of kills, and the number without it.
const KILLS: &str = "TOOLCRIB_AGENT_KILLS";
const GATE_KILLS: usize = 100;
/// Runs at one time.
const AT_ONCE: usize = 3;

/// Runs only in a worker process: begins or continues the run of its folder, until it dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let variable = |name: &str| std::env::var(name).unwrap();
    let scenario = Scenario::all()[variable(SCENARIO).parse::<usize>().unwrap()];
    let points = Points::new(Some(variable(DIE_AT).parse().unwrap()));
    let models = variable(MODELS);
    let models: Vec<_> = models.split(' ').collect();
    work(&scenario.agent(&folder, models.try_into().unwrap(), &points)).await;
}

/// What is left of a run that is over.
struct Ended {
    /// The conversation of the root, and those of its sub-agents.
    root: Vec<String>,
    children: Vec<Vec<String>>,
    effects: BTreeMap<String, usize>,
}

impl Ended {
    async fn of(agent: &Agent, folder: &Path, report: &RunReport) -> Result<Self, String> {
        if report.state() != RunState::Completed || report.text() != "Done." {
            return Err(format!("{:?}: {:?}", report.state(), report.outcome()));
        }
        let database = Database::open(folder).unwrap();
        let waiting = Suspensions::new(&database).all().await.unwrap();
        if !waiting.is_empty() {
            return Err(format!("calls still wait: {waiting:?}"));
        }
        let mut children = Vec::new();
        for run in Runs::new(&database).list("", None, 100).await.unwrap() {
            let rows = agent.rows(run.id(), 0, 1_000).await;
            rows.map_err(|error| format!("a journal cannot be read: {error}"))?;
            if run.id() != report.id() {
                let child = agent.load(run.id()).await.map_err(|error| error.to_string())?;
                children.push(transcript(&child));
            }
        }
        children.sort();
        let mut effects = BTreeMap::new();
        for line in fs::read_to_string(folder.join("effects")).unwrap_or_default().lines() {
            *effects.entry(line.to_owned()).or_insert(0) += 1;
        }
        let mut root = transcript(report);
        let lines = root.len();
        root.retain(|line| !line.ends_with(SAID));
        let (told, said) = (lines - root.len(), times_said(agent, report).await);
        // Nothing was said if the calls that would have waited were lost.
        if told != said || said > 1 {
            return Err(format!("said {said} times, and the model was told {told} times"));
        }
        Ok(Self { root, children, effects })
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        self.root.iter().chain(self.children.iter().flatten())
    }

    /// Compares it with the undisturbed run. Returns how many answers were lost.
    fn compare(&self, whole: &Self, scenario: Scenario) -> Result<usize, String> {
        if self.root.len() != whole.root.len() || self.children.len() != whole.children.len() {
            return Err(format!("other conversations: {:?} {:?}", self.root, self.children));
        }
        let (own, expected) = (self.lines().count(), whole.lines().count());
        if own != expected {
            return Err(format!("{own} instead of {expected} lines: {:?}", self.children));
        }
        // Where an answer was lost, the model is told so under the id of the call.
        let is_unknown = |line: &str| line.contains("not known") || line.contains("before it said");
        let mut lost = 0;
        for (line, expected) in self.lines().zip(whole.lines()) {
            if line == expected {
                continue;
            }
            if !is_unknown(line) || line.split(':').next() != expected.split(':').next() {
                return Err(format!("{line:?} instead of {expected:?}"));
            }
            lost += 1;
        }
        if scenario.kind == Kind::Neither
            && let Some((call, times)) = self.effects.iter().find(|(_, times)| **times > 1)
        {
            return Err(format!("the call {call} ran {times} times"));
        }
        // The answers of repeatable calls are never lost. Clients' tools are not repeatable here.
        if lost > 0 && scenario.kind != Kind::Neither && scenario.mode != Mode::ClientTool {
            return Err(format!("{lost} repeatable calls are unknown"));
        }
        let missing = whole.effects.len().saturating_sub(self.effects.len());
        if missing > lost {
            return Err(format!("{missing} calls have not run, and {lost} are unknown"));
        }
        Ok(lost)
    }
}

/// An undisturbed run, and the number of moments at which it can be killed.
async fn undisturbed(scenario: Scenario) -> (Ended, usize) {
    let folder = tempfile::tempdir().unwrap();
    let models = scenario.models().await;
    let urls = models.each_ref().map(ModelServer::base_url);
    let points = Points::new(None);
    let agent = scenario.agent(folder.path(), urls.each_ref().map(String::as_str), &points);
    let report = work(&agent).await;
    let ended = Ended::of(&agent, folder.path(), &report).await.unwrap();
    (ended, points.passed())
}

/// Kills the processes of a run at these moments, each counted from the start of the process, continues it to its end and
/// checks what is left. Returns how many processes were killed, and how many answers were lost.
async fn killed(number: usize, moments: &[usize], whole: &Ended) -> Result<(usize, usize), String> {
    let scenario = Scenario::all()[number];
    let folder = tempfile::tempdir().unwrap();
    let models = scenario.models().await;
    let urls = models.each_ref().map(ModelServer::base_url);
    let mut kills = 0;
    for die_at in moments {
        let mut process = Command::new(std::env::current_exe().unwrap());
        process
            .args(["kills::worker", "--exact", "--test-threads=1"])
            .env(FOLDER, folder.path())
            .env(SCENARIO, number.to_string())
            .env(MODELS, urls.join(" "))
            .env(DIE_AT, die_at.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = tokio::task::spawn_blocking(move || process.output()).await.unwrap().unwrap();
        match output.status.code() {
            None => kills += 1,
            Some(0) => {}
            Some(_) => {
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                return Err(format!(
                    "a process failed: {said}{}",
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
    }
    let points = Points::new(None);
    let agent = scenario.agent(folder.path(), urls.each_ref().map(String::as_str), &points);
    let report = work(&agent).await;
    let violations = models.each_ref().map(ModelServer::violations).concat();
    if !violations.is_empty() {
        return Err(format!("requests that a provider would refuse: {violations:?}"));
    }
    let ended = Ended::of(&agent, folder.path(), &report).await?;
    Ok((kills, ended.compare(whole, scenario)?))
}

/// A number that follows from others without a pattern.
fn mixed(seed: usize) -> usize {
    let mixed = (seed as u64 ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    usize::try_from((mixed ^ (mixed >> 31)) & 0xffff_ffff).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_continues_and_repeats_no_call_with_effects() {
    let wanted = std::env::var(KILLS).map_or(GATE_KILLS, |kills| kills.parse().unwrap());
    let mut wholes = Vec::new();
    let mut moments = Vec::new();
    for (number, scenario) in Scenario::all().into_iter().enumerate() {
        let (whole, points) = Box::pin(undisturbed(scenario)).await;
        moments.extend((1..=points).map(|point| (number, point)));
        wholes.push(Arc::new(whole));
    }
    // Every moment of every scenario comes before any comes again.
    moments.sort_by_key(|(number, point)| mixed(number * 1_000 + point));
    let trials = moments.iter().cycle().take(wanted).copied().enumerate();

    let (at_once, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for (trial, (number, point)) in trials {
        let (at_once, whole) = (Arc::clone(&at_once), Arc::clone(&wholes[number]));
        running.spawn(async move {
            let _turn = at_once.acquire().await.unwrap();
            // Every third process that continues is killed as well.
            let again = (trial % 3 == 0).then(|| 1 + mixed(trial) % 20);
            let moments: Vec<_> = std::iter::once(point).chain(again).collect();
            let ended = Box::pin(killed(number, &moments, &whole)).await;
            (number, moments, ended)
        });
    }
    let (mut passed, mut kills, mut lost) = (0, 0, 0);
    let mut failures = BTreeSet::new();
    while let Some(ended) = running.join_next().await {
        match ended.unwrap() {
            (_, _, Ok((killed, unknown))) => {
                (passed, kills, lost) = (passed + 1, kills + killed, lost + unknown);
            }
            (number, moments, Err(problem)) => {
                let scenario = Scenario::all()[number];
                failures.insert(format!("{scenario}, killed at {moments:?}: {problem}"));
            }
        }
    }
    for failure in failures.iter().take(20) {
        println!("{failure}");
    }
    println!(
        "kills: {kills} processes killed at {} moments, {lost} answers lost and told",
        moments.len()
    );
    println!("kills: {passed} passed, {} failed", failures.len());
    assert!(failures.is_empty(), "{} runs did not end as they should", failures.len());
    assert!(kills >= wanted, "{kills} of {wanted} processes were killed");
}

/// Between the decision on a call and its answer there are a few moments only, so all moments of one scenario are tried.
#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_that_is_repeatable_runs_again_whenever_its_process_is_killed() {
    let is_it = |one: &Scenario| one.kind == Kind::Idempotent && one.mode == Mode::Approval;
    let number = Scenario::all().iter().position(is_it).unwrap();
    let (whole, points) = Box::pin(undisturbed(Scenario::all()[number])).await;
    let (whole, at_once) = (Arc::new(whole), Arc::new(Semaphore::new(AT_ONCE)));
    let mut running = JoinSet::new();
    for point in 1..=points {
        let (at_once, whole) = (Arc::clone(&at_once), Arc::clone(&whole));
        running.spawn(async move {
            let _turn = at_once.acquire().await.unwrap();
            (point, Box::pin(killed(number, &[point], &whole)).await)
        });
    }
    for (point, ended) in running.join_all().await {
        assert_eq!(ended, Ok((1, 0)), "killed at {point} of {points}");
    }
}
