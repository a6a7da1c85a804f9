//! `toolcrib export`: prints the tools in a provider's format.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use toolcrib::ToolDefinition;
use toolcrib::wire::{Target, export, prompt_text_with_notes};

use crate::command::servers::ask_servers;
use crate::options::{ConnectChoice, Options, ToolsetChoice};
use crate::screen::{self, ERROR, WARNING};
use crate::startup::Started;
use crate::{Exit, runtime, startup, upstream_wait};

/// The only format that is text instead of JSON.
const PROMPT: &str = "prompt";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib export --format openai > tools.json
  toolcrib export --format openai-strict --toolset reader
  toolcrib export --format prompt calculator

A tool that a format cannot express without a change of meaning is left out and named on standard
error; then the exit code is 1. Nothing is started: the tools of other MCP servers are named on standard
error, as they are pinned, and exported with --connect.")]
pub(crate) struct ExportOptions {
    /// The tools [default: all available tools]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The format
    #[arg(long, value_parser = formats())]
    format: String,
    /// Accepted for uniformity: all formats except `prompt` are JSON already
    #[arg(long)]
    json: bool,
    /// Show on standard error what the format changes; with the format `prompt`, add a note to tools that fail often in
    /// the running servers
    #[arg(long)]
    notes: bool,
    #[command(flatten)]
    connect: ConnectChoice,
    #[command(flatten)]
    toolset: ToolsetChoice,
}

fn formats() -> PossibleValuesParser {
    let providers = Target::ALL.iter().map(|target| target.as_str());
    PossibleValuesParser::new(providers.chain([PROMPT]).collect::<Vec<_>>())
}

pub(in crate::command) fn run(options: &Options, own: &ExportOptions) -> anyhow::Result<Exit> {
    let connect = own.connect.connect;
    let notes = match own.format.as_str() {
        PROMPT if own.notes => failing(options)?,
        _ => BTreeMap::new(),
    };
    let started = startup::look(options, connect)?;
    if !connect || started.manifests.files().upstreams().next().is_none() {
        let outcome = exported(&started, own, &notes);
        // These tools cannot be exported: a pin contains only their digest.
        upstream_wait::note_pinned_tools(&started);
        return outcome;
    }
    runtime::block_on(async {
        upstream_wait::connect(&started).await?;
        let outcome = exported(&started, own, &notes);
        let absent = upstream_wait::absent(&started.crib).into_iter();
        for line in absent.chain(upstream_wait::cut_lists(&started.crib)) {
            screen::note(line);
        }
        started.crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

fn exported(
    started: &Started,
    own: &ExportOptions,
    notes: &BTreeMap<String, String>,
) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let turn = crib.executor().turn(own.toolset.turn_options(crib)?);
    let mut chosen: Vec<&Arc<ToolDefinition>> = Vec::new();
    let mut exit = Exit::Success;
    if own.names.is_empty() {
        chosen.extend(turn.definitions());
    }
    for name in &own.names {
        if let Some(definition) = turn.describe(name) {
            chosen.push(definition);
        } else {
            screen::note(format!(
                "{ERROR}left out{ERROR:#} {name}: no such tool can be called (see `toolcrib why {name}`)"
            ));
            exit = Exit::Failure;
        }
    }
    let definitions = chosen.iter().map(|definition| &***definition);
    let Some(target) = Target::from_name(&own.format) else {
        screen::out(prompt_text_with_notes(definitions, |tool| notes.get(tool.name()).cloned()))?;
        return Ok(exit);
    };
    let exported = export(definitions, target);
    for refusal in &exported.refused {
        let at = place(&refusal.at);
        screen::note(format!("{ERROR}left out{ERROR:#} {}{at}: {}", refusal.tool, refusal.reason));
        exit = Exit::Failure;
    }
    for note in exported.notes.iter().filter(|_| own.notes) {
        let at = place(&note.at);
        screen::note(format!("{WARNING}note{WARNING:#} {}{at}: {}", note.tool, note.text));
    }
    screen::json(&Value::Array(exported.tools))?;
    Ok(exit)
}

/// What the running servers report about tools that often fail, by name.
fn failing(options: &Options) -> anyhow::Result<BTreeMap<String, String>> {
    let servers = ask_servers::servers(options)?;
    if servers.is_empty() {
        screen::note("no server runs with this config: there are no statistics of failures");
    }
    let mut notes = BTreeMap::new();
    for server in servers {
        let stats = runtime::block_on(server.client.get("/v1/stats"))??;
        for tool in stats["tools"].as_array().into_iter().flatten() {
            if let (Some(name), Some(note)) = (tool["tool"].as_str(), tool["often_fails"].as_str())
            {
                notes.insert(name.to_owned(), note.to_owned());
            }
        }
    }
    Ok(notes)
}

/// A position in a tool's schema, as a suffix of its name.
fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" at {pointer}") }
}
