//! `toolcrib runs`: lists, shows, cancels and exports runs of agents.

mod markdown;

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolcrib::agent::run::{AgentRun, Outcome, RunState};
use toolcrib::core::clock::{Clock as _, SystemClock, Timestamp};
use toolcrib::tool::{canonical_json, fully_visible, fully_visible_text};
use toolcrib::wire::model::{Item, Role};

use super::journals::{self, StoredRun};
use crate::options::{JsonOutput, Options};
use crate::screen::columns::Columns;
use crate::screen::{self, FAINT, STRONG};
use crate::serving::stop;
use crate::startup::{self, Started};
use crate::{Exit, runtime};

/// The digits of an id in a listing.
const ID_SHOWN: usize = 12;

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
    let mut runs = Vec::new();
    for cursor in journals::all(crib).await? {
        // It may have been removed meanwhile.
        let Some(run) = journals::read(crib, cursor.id()).await? else { continue };
        match run.state() {
            // Sub-agents belong to the run that started them.
            Ok(state) if state.parent().is_some() => {}
            Ok(state) => runs.push((run, state)),
            Err(error) => screen::note(format!("{error:#}")),
        }
    }
    if own.output.json {
        let runs: Vec<Value> = runs.iter().map(|(run, state)| record(run, state)).collect();
        screen::json(&json!({"runs": runs}))?;
    } else if runs.is_empty() {
        screen::note("there is no run yet: `toolcrib run PROMPT` begins one");
    } else {
        let columns =
            Columns::new(["ID", "STATE", "AGENT", "AGE", "TURNS", "INPUT"]).shorten(5, false);
        screen::out(columns.rows(runs.iter().map(|(run, state)| {
            [
                run.id.as_str().chars().take(ID_SHOWN).collect(),
                state.state().as_str().to_owned(),
                state.agent().to_owned(),
                age(state.created_at()),
                state.spent().turns.to_string(),
                first_input(state),
            ]
        })))?;
    }
    Ok(Exit::Success)
}

async fn show(started: &Started, own: &ShowOptions) -> anyhow::Result<Exit> {
    let run = journals::find(&started.crib, &own.id).await?;
    let state = run.state()?;
    if own.output.json {
        let mut value = record(&run, &state);
        value["conversation"] = serde_json::to_value(state.conversation())?;
        screen::json(&value)?;
    } else if own.md {
        screen::out(markdown::page(&run, &state))?;
    } else {
        screen::out(summary(&run, &state))?;
    }
    Ok(Exit::Success)
}

async fn cancel(started: &Started, own: &CancelOptions) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let run = journals::find(crib, &own.id).await?;
    let state = run.state()?;
    if let Some(outcome) = state.outcome() {
        screen::note(format!("the run {} has already ended: {}", run.id, ending(outcome)));
        return Ok(Exit::Failure);
    }
    let report = journals::reader(crib).cancel(&run.id, own.reason.as_str()).await?;
    screen::note(format!("the run {STRONG}{}{STRONG:#} is {}", run.id, report.state().as_str()));
    Ok(if report.state() == RunState::Cancelled { Exit::Success } else { Exit::Failure })
}

async fn export(started: &Started, own: &ExportOptions) -> anyhow::Result<Exit> {
    let run = journals::find(&started.crib, &own.id).await?;
    for row in &run.rows {
        screen::out(serde_json::to_string(row)?)?;
    }
    Ok(Exit::Success)
}

fn record(run: &StoredRun, state: &AgentRun) -> Value {
    let waiting = state.waiting().map(|call| {
        json!({"id": call.id().as_str(), "tool": call.tool(), "arguments": call.shown().arguments})
    });
    json!({
        "run": run.id.as_str(),
        "agent": state.agent(),
        "state": state.state().as_str(),
        "created_at": state.created_at().unix_millis(),
        "input": first_input(state),
        "outcome": state.outcome(),
        "waiting": waiting.collect::<Vec<_>>(),
        "turns": state.spent().turns,
        "calls": state.spent().calls,
        "tokens": state.spent().usage.total(),
        "cost_nanodollars": state.spent().cost,
    })
}

fn summary(run: &StoredRun, state: &AgentRun) -> String {
    let mut text =
        format!("{STRONG}{}{STRONG:#} {FAINT}{}{FAINT:#}\n", state.state().as_str(), run.id);
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<8} {value}");
        }
    };
    row("agent", &fully_visible(state.agent()));
    row("begun", &format!("{} ago", age(state.created_at())));
    row("input", &fully_visible(&first_input(state)));
    let spent = state.spent();
    row(
        "used",
        &format!(
            "{}, {}, {}",
            screen::count(spent.turns as usize, "turn"),
            screen::count(spent.calls as usize, "call"),
            screen::count(usize::try_from(spent.usage.total()).unwrap_or(usize::MAX), "token"),
        ),
    );
    row("paused", &fully_visible(state.paused().unwrap_or_default()));
    for call in state.waiting() {
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

/// What the agent was told first.
fn first_input(state: &AgentRun) -> String {
    let first = state.conversation().iter().flatten().find_map(|item| match item {
        Item::Input(input) if input.role == Role::User => {
            let parts: Vec<_> = input.content.iter().map(|part| part.as_text()).collect();
            Some(parts.join("\n\n"))
        }
        _ => None,
    });
    first.unwrap_or_default()
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
