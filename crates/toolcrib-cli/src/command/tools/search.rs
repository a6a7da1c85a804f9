//! `toolcrib search WORDS`: finds tools by their names and descriptions.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};
use toolcrib::core::{FoundTool, Match};

use crate::options::{ConnectChoice, JsonOutput, Options, ToolsetChoice};
use crate::screen::columns::{Columns, gist};
use crate::screen::{self, FAINT};
use crate::startup::Started;
use crate::upstream_wait::UnaskedServer;
use crate::{Exit, runtime, startup, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib search disk space
  toolcrib search --toolset reader log

Searches names, titles, categories, tags, descriptions and parameters for the words, in any form and order;
a whole sentence works as well. The best match comes first. Nothing is started: pinned tools of other MCP
servers are searched by name only; --connect asks the servers. Exit code 1: nothing was found.")]
pub(crate) struct SearchOptions {
    /// Words that describe the tool
    #[arg(required = true)]
    words: Vec<String>,
    /// The maximum number of tools to show
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    limit: usize,
    /// Do not shorten descriptions
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    connect: ConnectChoice,
    #[command(flatten)]
    toolset: ToolsetChoice,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &SearchOptions) -> anyhow::Result<Exit> {
    let connect = own.connect.connect;
    let started = startup::look(options, connect)?;
    if !connect || started.manifests.files().upstreams().next().is_none() {
        let pinned = upstream_wait::pinned_tools(&started, |name| is_meant(name, &own.words));
        return searched(&started, own, &pinned);
    }
    runtime::block_on(async {
        upstream_wait::connect(&started).await?;
        let outcome = searched(&started, own, &[]);
        let absent = upstream_wait::absent(&started.crib).into_iter();
        for line in absent.chain(upstream_wait::cut_lists(&started.crib)) {
            screen::note(line);
        }
        started.crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

/// Whether a tool of which only the name is known matches.
fn is_meant(name: &str, words: &[String]) -> bool {
    let name = name.to_lowercase();
    let words = words.iter().flat_map(|word| word.split_whitespace());
    words.map(str::to_lowercase).any(|word| word.len() > 1 && name.contains(&word))
}

/// Searches the known tools; `pinned` are those of MCP servers that were not asked.
fn searched(
    started: &Started,
    own: &SearchOptions,
    pinned: &[UnaskedServer],
) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let turn = crib.executor().turn(own.toolset.turn_options(crib)?);
    let question = own.words.join(" ");
    let found = turn.search(&question, usize::MAX);
    let shown = &found[..found.len().min(own.limit)];
    if own.output.json {
        let tools: Vec<Value> = shown
            .iter()
            .map(|tool| {
                let matched = turn.matches(&question, tool.definition.name());
                let matched: Map<String, Value> = matched
                    .into_iter()
                    .map(|found| (found.word, found.field.to_string().into()))
                    .collect();
                json!({
                    "name": tool.definition.name(),
                    "description": tool.definition.description(),
                    "score": tool.score,
                    "matched": matched,
                })
            })
            .collect();
        let pinned: Vec<_> = pinned
            .iter()
            .map(|own| json!({"upstream": own.upstream, "tools": own.tools}))
            .collect();
        screen::json(&json!({"found": found.len(), "tools": tools, "pinned": pinned}))?;
    } else if found.is_empty() {
        if pinned.is_empty() {
            screen::note(format!("no tool matches {question:?}: `toolcrib list` shows all tools"));
        }
    } else {
        let why = |tool: &FoundTool<'_>| why(&turn.matches(&question, tool.definition.name()));
        let reasons: Vec<String> = shown.iter().map(why).collect();
        let rows = shown
            .iter()
            .zip(&reasons)
            .map(|(tool, why)| [tool.definition.name(), why, gist(tool.definition.description())]);
        let columns = Columns::new(["NAME", "MATCHED", "DESCRIPTION"]).shorten(2, own.wide);
        screen::out(columns.rows(rows))?;
        if found.len() > shown.len() {
            let more = found.len() - shown.len();
            screen::note(format!("{FAINT}{more} more: see --limit{FAINT:#}"));
        }
    }
    if !own.output.json {
        pinned.iter().for_each(UnaskedServer::say);
    }
    let is_found = !found.is_empty() || !pinned.is_empty();
    Ok(if is_found { Exit::Success } else { Exit::Failure })
}

/// The matching words by the field they occur in: `disk (name), space (description)`.
fn why(matches: &[Match]) -> String {
    let mut fields: Vec<_> = matches.iter().map(|found| found.field).collect();
    fields.sort_unstable();
    fields.dedup();
    let of_field = |field| {
        let words = matches.iter().filter(|found| found.field == field);
        let words: Vec<&str> = words.map(|found| found.word.as_str()).collect();
        format!("{} ({field})", words.join(" "))
    };
    fields.into_iter().map(of_field).collect::<Vec<_>>().join(", ")
}
