//! `toolcrib search WORDS`: tools by what they say about themselves.

use clap::Args;
use serde_json::{Value, json};

use super::list::Columns;
use super::{JsonOutput, Options, ToolsetChoice};
use crate::screen::{self, FAINT};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib search disk space
  toolcrib search --toolset reader log

Words are looked for in names, titles, categories, tags, parameters and descriptions; the best tool
comes first. Exit code 1: nothing was found.")]
pub(crate) struct SearchOptions {
    /// What the tool is for
    #[arg(required = true)]
    words: Vec<String>,
    /// How many tools to show at most
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    toolset: ToolsetChoice,
    #[command(flatten)]
    output: JsonOutput,
}

pub(super) fn run(options: &Options, own: &SearchOptions) -> anyhow::Result<Exit> {
    let started = startup::look(options)?;
    let crib = &started.crib;
    let turn = crib.executor().turn(own.toolset.turn_options(crib)?);
    let question = own.words.join(" ");
    let found = turn.search(&question);
    let shown = &found[..found.len().min(own.limit)];
    if own.output.json {
        let tools: Vec<Value> = shown
            .iter()
            .map(|tool| json!({"name": tool.name(), "description": tool.description()}))
            .collect();
        screen::json(&json!({"found": found.len(), "tools": tools}))?;
    } else if found.is_empty() {
        screen::note(format!("no tool fits {question:?}: `toolcrib list` shows all"));
    } else {
        let rows = shown.iter().map(|tool| [tool.name(), super::list::gist(tool.description())]);
        screen::out(Columns::new(["NAME", "DESCRIPTION"]).rows(rows))?;
        if found.len() > shown.len() {
            let more = found.len() - shown.len();
            screen::note(format!("{FAINT}{more} more: see --limit{FAINT:#}"));
        }
    }
    Ok(if found.is_empty() { Exit::Failure } else { Exit::Success })
}
