//! `toolcrib runs`: lists, shows, cancels and exports runs of agents.

mod markdown;

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolcrib::Toolcrib;
use toolcrib::agent::AgentError;
use toolcrib::agent::run::{AgentRun, Outcome, RunState};
use toolcrib::core::clock::{Clock as _, SystemClock, Timestamp};
use toolcrib::core::suspension::{StoreError, Suspension};
use toolcrib::tool::{canonical_json, fully_visible, fully_visible_text};

use super::journals::{self, StoredRun};
use crate::options::{JsonOutput, Options};
use crate::screen::columns::Columns;
use crate::screen::{self, FAINT, STRONG};
use crate::serving::stop;
use crate::startup::{self, Started};
use crate::{Exit, runtime};

/// The digits of an id in a listing.
const ID_SHOWN: usize = 8;
/// The characters of an agent's name in a listing.
const AGENT_SHOWN: usize = 16;
/// How long `runs cancel` waits for another process.
const CANCEL_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib runs list
  toolcrib runs show last --md > run.md
  toolcrib runs cancel 7f3a09
  toolcrib runs export last > run.jsonl

ID is an id, a unique beginning of one, or `last`. `toolcrib run --resume ID` continues a run.")]
pub(crate) struct RunsOptions {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs, oldest first
    List(ListOptions),
    /// Show a run: its state, what it has used, which calls wait, and its answer
    Show(ShowOptions),
    /// Cancel a run and its waiting calls
    Cancel(CancelOptions),
    /// Print the journal of a run: one line of JSON for each step
    Export(ExportOptions),
}

#[derive(Debug, Args)]
struct ListOptions {
    /// List the runs of sub-agents as well, below the run that started them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
struct ShowOptions {
    /// The run
    id: String,
    /// Print the whole conversation as Markdown
    #[arg(long, conflicts_with = "json")]
    md: bool,
    #[command(flatten)]
    output: JsonOutput,
}

#[derive(Debug, Args)]
struct CancelOptions {
    /// The run
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "cancelled by the operator")]
    reason: String,
}

#[derive(Debug, Args)]
struct ExportOptions {
    /// The run
    id: String,
}

pub(in crate::command) fn run(options: &Options, own: &RunsOptions) -> anyhow::Result<Exit> {
    let started = match &own.command {
        RunsCommand::Cancel(_) => startup::run(options)?,
        _ => startup::runs(options)?,
    };
    runtime::block_on(async {
        let exit = match &own.command {
            RunsCommand::List(own) => list(&started, own).await,
            RunsCommand::Show(own) => show(&started, own).await,
            RunsCommand::Cancel(own) => cancel(&started, own).await,
            RunsCommand::Export(own) => export(&started, own).await,
        };
        started.crib.shutdown(stop::GRACE).await;
        exit
    })?
}

async fn list(started: &Started, own: &ListOptions) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let cursors = if own.all {
        journals::all_with_sub_agents(crib).await?
    } else {
        journals::all(crib).await?
    };
    let mut runs = Vec::new();
    for cursor in cursors {
        // It may have been removed meanwhile.
        let Some(run) = journals::read(crib, cursor.id()).await? else { continue };
        match run.state() {
            Ok(state) => runs.push((run, state)),
            Err(error) => screen::note(format!("{error:#}")),
        }
    }
    let runs = below_their_parents(runs);
    if own.output.json {
        let mut records = Vec::new();
        for (_, run, state) in &runs {
            let waiting = waiting(crib, run, state).await.unwrap_or_else(|error| {
                screen::note(format!("{error:#}"));
                Vec::new()
            });
            records.push(record(run, state, &waiting));
        }
        screen::json(&json!({"runs": records}))?;
    } else if runs.is_empty() {
        screen::note("there is no run yet: `toolcrib run PROMPT` begins one");
    } else {
        let columns = Columns::new(["ID", "STATE", "AGENT", "AGE", "INPUT"]).shorten(4, false);
        screen::out(columns.rows(runs.iter().map(|(level, run, state)| {
            let id: String = run.id.as_str().chars().take(ID_SHOWN).collect();
            [
                format!("{}{id}", "  ".repeat(*level)),
                state.state().as_str().to_owned(),
                state.agent().chars().take(AGENT_SHOWN).collect(),
                age(state.created_at()),
                run.inputs().into_iter().next().unwrap_or_default(),
            ]
        })))?;
    }
    Ok(Exit::Success)
}

/// Each run with its level: those of sub-agents follow the run that started them.
fn below_their_parents(runs: Vec<(StoredRun, AgentRun)>) -> Vec<(usize, StoredRun, AgentRun)> {
    let mut placed: Vec<(usize, StoredRun, AgentRun)> = Vec::new();
    for (run, state) in runs {
        let above = state.parent().and_then(|parent| {
            let at = placed.iter().position(|(_, one, _)| one.id == parent.run)?;
            Some((at, placed[at].0))
        });
        match above {
            Some((at, level)) => {
                let behind = placed[at + 1..].iter().take_while(|(other, ..)| *other > level);
                let place = at + 1 + behind.count();
                placed.insert(place, (level + 1, run, state));
            }
            None => placed.push((0, run, state)),
        }
    }
    placed
}

async fn show(started: &Started, own: &ShowOptions) -> anyhow::Result<Exit> {
    let run = journals::find(&started.crib, &own.id).await?;
    let state = run.state()?;
    let waiting = waiting(&started.crib, &run, &state).await?;
    if own.output.json {
        let mut value = record(&run, &state, &waiting);
        value["conversation"] = serde_json::to_value(state.conversation())?;
        screen::json(&value)?;
    } else if own.md {
        screen::out(markdown::page(&run, &state, &waiting))?;
    } else {
        let below = below(&started.crib, &run).await?;
        screen::out(summary(&run, &state, &below, &waiting))?;
    }
    Ok(Exit::Success)
}

/// The calls of a run that wait for somebody. A call that waits for sub-agents cannot be decided: the calls for which
/// they wait stand in its place.
async fn waiting(
    crib: &Toolcrib,
    run: &StoredRun,
    state: &AgentRun,
) -> anyhow::Result<Vec<Suspension>> {
    if state.waiting().next().is_none() {
        return Ok(Vec::new());
    }
    let report = run.reader(crib).load(&run.id).await?;
    Ok(report.waiting().cloned().collect())
}

async fn cancel(started: &Started, own: &CancelOptions) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let run = journals::find(crib, &own.id).await?;
    let state = run.state()?;
    if let Some(outcome) = state.outcome() {
        screen::note(format!("the run {} has already ended: {}", run.id, ending(outcome)));
        return Ok(Exit::Failure);
    }
    let reader = run.reader(crib);
    let report = match reader.cancel_within(&run.id, own.reason.as_str(), CANCEL_WAIT).await {
        Ok(report) => report,
        Err(AgentError::Store(StoreError::Claimed { process })) => {
            screen::note(format!(
                "the process {process} works on the run and was asked to cancel it; it does so when its current work \
                 lets it"
            ));
            return Ok(Exit::Failure);
        }
        Err(error) => return Err(error.into()),
    };
    screen::note(format!("the run {STRONG}{}{STRONG:#} is {}", run.id, report.state().as_str()));
    Ok(if report.state() == RunState::Cancelled { Exit::Success } else { Exit::Failure })
}

/// The runs of sub-agents that a run has started.
async fn below(crib: &Toolcrib, run: &StoredRun) -> anyhow::Result<Vec<(StoredRun, AgentRun)>> {
    let mut found = Vec::new();
    for cursor in journals::all_with_sub_agents(crib).await? {
        let Some(other) = journals::read(crib, cursor.id()).await? else { continue };
        let Ok(state) = other.state() else { continue };
        if state.parent().is_some_and(|parent| parent.run == run.id) {
            found.push((other, state));
        }
    }
    Ok(found)
}

async fn export(started: &Started, own: &ExportOptions) -> anyhow::Result<Exit> {
    let run = journals::find(&started.crib, &own.id).await?;
    for row in &run.rows {
        screen::out(serde_json::to_string(row)?)?;
    }
    Ok(Exit::Success)
}

fn record(run: &StoredRun, state: &AgentRun, waiting: &[Suspension]) -> Value {
    let waiting = waiting.iter().map(|call| {
        json!({"id": call.id().as_str(), "tool": call.tool(), "arguments": call.shown().arguments})
    });
    let spent = state.spent_in_all();
    json!({
        "id": run.id.as_str(),
        "agent": state.agent(),
        "status": state.state().as_str(),
        "parent": state.parent().map(|parent| parent.run.as_str()),
        "created_at": state.created_at().unix_millis(),
        "inputs": run.inputs(),
        "outcome": state.outcome(),
        "waiting": waiting.collect::<Vec<_>>(),
        "turns": spent.turns,
        "calls": spent.calls,
        "tokens": spent.usage.total(),
        "cost_nanodollars": spent.cost,
    })
}

fn summary(
    run: &StoredRun,
    state: &AgentRun,
    below: &[(StoredRun, AgentRun)],
    waiting: &[Suspension],
) -> String {
    let mut text =
        format!("{STRONG}{}{STRONG:#} {FAINT}{}{FAINT:#}\n", state.state().as_str(), run.id);
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<8} {value}");
        }
    };
    row("agent", &fully_visible(state.agent()));
    row("begun", &format!("{} ago", age(state.created_at())));
    for input in run.inputs() {
        row("input", &fully_visible(&input));
    }
    let spent = state.spent_in_all();
    row(
        "used",
        &format!(
            "{}, {}, {}",
            screen::count(spent.turns as usize, "turn"),
            screen::count(spent.calls as usize, "call"),
            screen::count(usize::try_from(spent.usage.total()).unwrap_or(usize::MAX), "token"),
        ),
    );
    for (other, state) in below {
        let line = format!("{} {}, {}", other.id, state.agent(), state.state().as_str());
        row("started", &fully_visible(&line));
    }
    row("paused", &fully_visible(state.paused().unwrap_or_default()));
    for call in waiting {
        let arguments = canonical_json(&call.shown().arguments);
        let call_line = format!("{} {} {}", call.id(), call.tool(), arguments);
        row("waits", &fully_visible(&call_line));
    }
    if let Some(outcome) = state.outcome() {
        row("ended", &ending(outcome));
    }
    text
}

/// How a run ended, in words.
fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed { text } => fully_visible_text(text).into_owned(),
        Outcome::Failed { reason, message, .. } => {
            format!("failed ({reason}): {}", fully_visible_text(message))
        }
        Outcome::Cancelled { reason } => format!("cancelled: {}", fully_visible_text(reason)),
        _ => "ended".to_owned(),
    }
}

/// The time since a moment: `40s`, `12m`, `3h`, `2d`.
fn age(moment: Timestamp) -> String {
    let seconds = SystemClock.now().since(moment).as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
