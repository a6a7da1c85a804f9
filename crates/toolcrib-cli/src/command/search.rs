//! `toolcrib search WORDS`: tools by what they say about themselves.

use clap::Args;
use serde_json::{Map, Value, json};
use toolcrib::core::{FoundTool, Match};

use super::columns::{Columns, gist};
use crate::options::{JsonOutput, Options, ToolsetChoice};
use crate::screen::{self, FAINT};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib search disk space
  toolcrib search --toolset reader log

Words are looked for in names, titles, categories, tags, descriptions and parameters, in any form and
order; a whole sentence will do. The best tool comes first. Exit code 1: nothing was found.")]
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
    let started = startup::look(options, false)?;
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
        screen::json(&json!({"found": found.len(), "tools": tools}))?;
    } else if found.is_empty() {
        screen::note(format!("no tool fits {question:?}: `toolcrib list` shows all"));
    } else {
        let why = |tool: &FoundTool<'_>| why(&turn.matches(&question, tool.definition.name()));
        let reasons: Vec<String> = shown.iter().map(why).collect();
        let rows = shown
            .iter()
            .zip(&reasons)
            .map(|(tool, why)| [tool.definition.name(), why, gist(tool.definition.description())]);
        screen::out(Columns::new(["NAME", "MATCHED", "DESCRIPTION"]).rows(rows))?;
        if found.len() > shown.len() {
            let more = found.len() - shown.len();
            screen::note(format!("{FAINT}{more} more: see --limit{FAINT:#}"));
        }
    }
    Ok(if found.is_empty() { Exit::Failure } else { Exit::Success })
}

/// The words that stand in a tool, by where they stand: `disk (name), space (description)`.
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
