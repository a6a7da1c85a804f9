//! `toolcrib list`: what is in the crib.

use std::io::IsTerminal;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};
use toolcrib::tool::ToolEntry;

use super::{JsonOutput, Options};
use crate::screen::{self, FAINT, STRONG, WARNING};
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib list
  toolcrib list --all                  also what is unavailable or shadowed, and why
  toolcrib list --json | jq '.tools[].name'")]
pub(crate) struct ListOptions {
    /// Also list tools that are unavailable or lost their name, with the reason
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: JsonOutput,
}

pub(super) fn run(options: &Options, own: &ListOptions) -> anyhow::Result<Exit> {
    let started = startup::start(options)?;
    let snapshot = started.crib.executor().registry().snapshot();
    let (available, unavailable): (Vec<_>, Vec<_>) =
        snapshot.entries().partition(|entry| entry.unavailable_reason().is_none());
    let conflicts = snapshot.conflicts();

    if own.output.json {
        let mut document =
            json!({"tools": available.iter().map(|tool| record(tool)).collect::<Vec<_>>()});
        if own.all {
            document["unavailable"] = unavailable.iter().map(|tool| record(tool)).collect();
            document["shadowed"] = conflicts
                .iter()
                .map(|conflict| {
                    let mut record = record(&conflict.loser);
                    record["kept_by"] = json!(conflict.winner.to_string());
                    record
                })
                .collect();
        }
        screen::json(&document)?;
        return Ok(Exit::Success);
    }

    if available.is_empty() {
        screen::note("no tools can be called");
    } else {
        screen::out(table(&available))?;
    }
    if own.all {
        for tool in &unavailable {
            let reason = tool.unavailable_reason().unwrap_or_default();
            screen::out(format!(
                "{WARNING}unavailable{WARNING:#} {STRONG}{}{STRONG:#}: {reason} {FAINT}({}){FAINT:#}",
                tool.name(),
                tool.source
            ))?;
        }
        for conflict in conflicts {
            screen::out(format!(
                "{WARNING}shadowed{WARNING:#} {STRONG}{}{STRONG:#} of {}: the name belongs to {}",
                conflict.loser.name(),
                conflict.loser.source,
                conflict.winner
            ))?;
        }
    } else if !unavailable.is_empty() || !conflicts.is_empty() {
        screen::note(format!(
            "{FAINT}{} unavailable, {} shadowed: see `toolcrib list --all`{FAINT:#}",
            unavailable.len(),
            conflicts.len()
        ));
    }
    Ok(Exit::Success)
}

fn table(tools: &[&ToolEntry]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["NAME", "DESCRIPTION", "SOURCE"]);
    for tool in tools {
        let source = tool.source.origin.as_ref().map_or_else(
            || tool.source.to_string(),
            |origin| match tool.source.layer {
                toolcrib::tool::Layer::Native => format!("{} {origin}", tool.source.unit),
                _ => origin.to_string(),
            },
        );
        table.add_row([tool.name(), first_sentence(tool.definition.description()), &source]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // On a terminal lines are folded to fit; in a file or a pipe each tool keeps its own line.
    if std::io::stdout().is_terminal()
        && let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size()
    {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A description's first sentence: the rest is for `show`.
fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |end| &line[..=end])
}

fn record(tool: &ToolEntry) -> Value {
    let mut record = json!({
        "name": tool.name(),
        "description": tool.definition.description(),
        "category": tool.definition.category(),
        "read_only": tool.definition.annotations().read_only,
        "layer": tool.source.layer.as_str(),
        "source": tool.source.unit,
    });
    if let Some(origin) = &tool.source.origin {
        record["file"] = json!(origin.file);
        record["line"] = json!(origin.line);
    }
    if let Some(reason) = tool.unavailable_reason() {
        record["unavailable"] = json!(reason);
    }
    record
}
