//! `toolcrib call NAME`: makes one call and prints its result.

mod dry_run;
mod failure_report;
mod form;
mod live;
mod questions;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde::de::IgnoredAny;
use serde_json::Value;
use toolcrib::core::unguessable;
use toolcrib::tool::{CallId, ToolError};
use toolcrib::{ToolCall, ToolResult, Turn};

use self::live::{LiveScreen, ScreenContent};
use self::questions::Answers;
use crate::could_not_run::ARGUMENTS_ARE_INPUT;
use crate::options::{JsonOutput, Options, ToolsetChoice};
use crate::screen;
use crate::serving::stop;
use crate::startup::{self, Started};
use crate::{Exit, arguments, runtime, terminal_approver, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib call calculator expression='2 + 2'
  toolcrib call tail_log path=/var/log/dpkg.log lines=50
  toolcrib call calculator expression='2 + 2' --json   the whole result, as JSON
  toolcrib call calculator --input arguments.json      the arguments from a file
  echo '{\"expression\": \"2 + 2\"}' | toolcrib call calculator --input -
  toolcrib call rotate_log path=app.log --yes          approve the call in advance
  toolcrib call rotate_log path=app.log --dry-run      show what the call would do

If a call needs approval, you are asked on the terminal. Without a terminal the call is denied, unless
you gave --yes. A call that a rule denies stays denied.

If a tool asks a question, you are asked on the terminal, too. Ctrl-C or the end of input (Ctrl-D)
declines. Without a terminal, give the answer with --answer: call greet --answer '{\"name\": \"Ada\"}'

A value is taken as text if the tool's schema says string, and as JSON otherwise. To pass a list,
repeat the argument (names=a names=b) or write JSON (names='[\"a\",\"b\"]').")]
pub(crate) struct CallOptions {
    /// The tool's name
    name: String,
    /// The arguments
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Read the arguments from this file, as a JSON object; - reads standard input. What is not valid JSON is refused
    #[arg(long, value_name = "FILE", conflicts_with = "pairs")]
    input: Option<PathBuf>,
    /// Approve this one call, if it needs approval
    #[arg(long)]
    yes: bool,
    /// Answer a question of the tool with this JSON; several are used in their order
    #[arg(long, value_name = "JSON", value_parser = arguments::json, conflicts_with = "dry_run")]
    answer: Vec<Value>,
    /// Check the call and show what it would do: nothing runs, and nobody is asked for approval. If the tool belongs to
    /// another MCP server, that server is asked for its list of tools
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    output: JsonOutput,
    #[command(flatten)]
    toolset: ToolsetChoice,
}

/// Why a tool that the client runs cannot be called from the command line.
const AT_THE_CLIENT: &str =
    "it runs at the client of a server (`client: true`), and the command line has no client";

pub(in crate::command) fn run(options: &Options, own: &CallOptions) -> anyhow::Result<Exit> {
    if own.dry_run {
        return planned(options, own);
    }
    let started = startup::call(options)?;
    let crib = &started.crib;
    // Read before the runtime exists: a blocking read of a terminal inside it could not be
    // interrupted.
    let given = given(own)?;
    let answer = runtime::block_on(async {
        let outcome = answered(&started, own, given).await;
        crib.shutdown(stop::GRACE).await;
        outcome
    })??;
    let Some((answer, shown)) = answer else {
        screen::note("interrupted: the call was cancelled");
        return Ok(Exit::Interrupted);
    };
    print(&answer, &shown, own, &started)?;
    Ok(if answer.is_success() { Exit::Success } else { Exit::Failure })
}

/// The result of the call, and what the terminal has shown of it; `None` if it was interrupted.
async fn answered(
    started: &Started,
    own: &CallOptions,
    given: Option<String>,
) -> anyhow::Result<Option<(ToolResult, ScreenContent)>> {
    match stop::unless_requested(upstream_wait::connect_for(started, &own.name)).await {
        None => return Ok(None),
        Some(connected) => connected?,
    }
    let crib = &started.crib;
    let snapshot = crib.executor().registry().snapshot();
    if let Some(tool) = snapshot.get(&own.name).filter(|tool| tool.definition.client()) {
        // Before anybody is asked to approve it.
        let error = ToolError::unavailable(AT_THE_CLIENT).with_hint(format!(
            "A program that is connected to the server, over MCP or the HTTP API, runs it. To check \
             arguments, use `toolcrib call {} --dry-run`.",
            tool.name()
        ));
        let id = CallId::new(new_call_id()?);
        return Ok(Some((
            ToolResult::failure(id, tool.name(), error, Duration::ZERO),
            ScreenContent::default(),
        )));
    }
    if let Some(error) = upstream_wait::down_for(started, &own.name).map(unreachable) {
        let id = CallId::new(new_call_id()?);
        return Ok(Some((
            ToolResult::failure(id, &*own.name, error, Duration::ZERO),
            ScreenContent::default(),
        )));
    }
    let operator = terminal_approver::operator(own.yes);
    let options = own.toolset.turn_options(crib)?.approver(operator).client("command line");
    let (options, screen) = LiveScreen::watch(options, own.output.json);
    let turn = crib.executor().turn(options);
    let answers = Answers::new(own.answer.clone());
    let call = questions::answered(&turn, the_call(&turn, own, given)?, answers);
    let (result, shown) = match screen {
        Some(screen) => screen.show_during(call).await,
        None => (call.await, ScreenContent::default()),
    };
    Ok(result.map(|result| (result, shown)))
}

/// The error for a tool that a server may have which is down.
fn unreachable(reason: String) -> ToolError {
    ToolError::unavailable(reason)
        .with_hint("`toolcrib list --connect` tries again and shows what the server has printed.")
}

/// Shows what the call would do, without opening anything. Only the server that may have the tool
/// is connected, and only to get its list.
fn planned(options: &Options, own: &CallOptions) -> anyhow::Result<Exit> {
    let started = startup::plan(options, &own.name)?;
    let given = given(own)?;
    let crib = &started.crib;
    let json = own.output.json;
    let (outcome, absent) = runtime::block_on(async {
        upstream_wait::connect_for(&started, &own.name).await?;
        let turn = crib.executor().turn(own.toolset.turn_options(crib)?);
        let outcome = match upstream_wait::down_for(&started, &own.name) {
            Some(reason) => Err(unreachable(reason)),
            None => turn.dry_run(the_call(&turn, own, given)?).await,
        };
        let absent = upstream_wait::absent(crib);
        crib.shutdown(Duration::ZERO).await;
        anyhow::Ok((outcome, absent))
    })??;
    let would_run = match outcome {
        Ok(dry) => dry_run::print(&dry, started.config.data_limit(&own.name), json)?,
        Err(error) => {
            dry_run::refusal(&error, json)?;
            absent.iter().for_each(screen::note);
            false
        }
    };
    Ok(if would_run { Exit::Success } else { Exit::Failure })
}

/// The call from the command line.
fn the_call(turn: &Turn, own: &CallOptions, given: Option<String>) -> anyhow::Result<ToolCall> {
    let text = if let Some(text) = given {
        text
    } else {
        let empty = Value::Null;
        let schema =
            turn.describe(&own.name).map_or(&empty, |definition| definition.input_schema());
        arguments::from_pairs(&own.pairs, schema)?
    };
    Ok(ToolCall::new(new_call_id()?, &*own.name, text))
}

/// An id for the call that no other one has, so that audit records and logs of several runs can be told apart.
fn new_call_id() -> anyhow::Result<String> {
    Ok(format!("call_{}", unguessable::<8>()?))
}

/// The text of `--input`, if it was given.
fn given(own: &CallOptions) -> anyhow::Result<Option<String>> {
    if let Some(json) = own.pairs.iter().find(|pair| is_json_or_dash(pair)) {
        bail!("{json:?} is not KEY=VALUE. {ARGUMENTS_ARE_INPUT}");
    }
    let (from, text) = match own.input.as_deref() {
        None => return Ok(None),
        Some(path) if path == Path::new("-") => {
            let text = io::read_to_string(io::stdin());
            ("standard input".to_owned(), text)
        }
        Some(path) => (path.display().to_string(), fs::read_to_string(path)),
    };
    let text = text.with_context(|| format!("reading the arguments from {from}"))?;
    // Only what a model writes is repaired: a file that was cut off is half of what somebody meant.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
        bail!("the arguments from {from} are not JSON: {error}. Nothing was run");
    }
    Ok(Some(text))
}

/// Whether a positional value was probably meant as all arguments: JSON, or standard input.
fn is_json_or_dash(pair: &str) -> bool {
    pair == "-" || pair.trim_start().starts_with(['{', '['])
}

fn print(
    answer: &ToolResult,
    shown: &ScreenContent,
    own: &CallOptions,
    started: &Started,
) -> anyhow::Result<()> {
    if own.output.json {
        return screen::json_text(&answer.to_json());
    }
    match answer.error() {
        None => {
            let text = answer.text();
            let rest = shown.rest_of(&text);
            if !rest.is_empty() || text.is_empty() {
                screen::out(rest)?;
            }
        }
        Some(error) => failure_report::failure(&own.name, error, &started.manifests),
    }
    Ok(())
}
