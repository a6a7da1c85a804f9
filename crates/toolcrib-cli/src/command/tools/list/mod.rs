//! `toolcrib list`: lists the tools.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use toolcrib::core::{Conflict, RegistrySnapshot, Reservation};
use toolcrib::tool::{ToolEntry, fully_visible};

mod after_restart;
mod catalogue;
mod names;

use self::names::OtherDeclarations;
use crate::command::servers::ask_servers;
use crate::command::tools::list::after_restart::AfterRestart;
use crate::options::{ConnectChoice, JsonOutput, Options, ToolsetChoice};
use crate::screen::columns::{Columns, gist};
use crate::screen::{self, FAINT, STRONG, WARNING};
use crate::startup::{self, Started};
use crate::{Exit, runtime, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib list
  toolcrib list --all                  also tools that cannot be called, with the reasons
  toolcrib list --toolset reader       what `serve --toolset reader` would offer
  toolcrib list --wide                 do not shorten descriptions
  toolcrib list --json | jq '.tools[].name'

Nothing is started: for other MCP servers, their pinned tools are named. With --connect the servers are
started and asked, each within the `connect_timeout` of its manifest.")]
pub(crate) struct ListOptions {
    /// Also list unavailable, blocked and shadowed tools and reserved names, each with the reason
    #[arg(long)]
    all: bool,
    /// Do not shorten descriptions and sources
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    toolset: ToolsetChoice,
    #[command(flatten)]
    connect: ConnectChoice,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &ListOptions) -> anyhow::Result<Exit> {
    let connect = own.connect.connect;
    let started = startup::look(options, connect)?;
    if !connect || started.manifests.files().upstreams().next().is_none() {
        let outcome = runtime::block_on(listed(&started, own))?;
        upstream_wait::note_pinned_tools(&started);
        return outcome;
    }
    runtime::block_on(async {
        upstream_wait::connect(&started).await?;
        let outcome = listed(&started, own).await;
        started.crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

async fn listed(started: &Started, own: &ListOptions) -> anyhow::Result<Exit> {
    let crib = &started.crib;
    let snapshot = crib.executor().registry().snapshot();
    let mut tools = Vec::new();
    for tool in snapshot.entries() {
        if own.toolset.allows(crib, tool)? {
            tools.push(tool);
        }
    }
    let (available, unavailable): (Vec<_>, Vec<_>) =
        tools.into_iter().partition(|entry| entry.unavailable_reason().is_none());

    let names = OtherDeclarations::of(started, &own.toolset)?;
    let after_restart = AfterRestart::of(&ask_servers::statuses(started).await);
    if own.output.json {
        let mut document = json!({"tools": records(&available)});
        names.add_to(&mut document, own.all);
        document["after_restart"] = after_restart.records();
        if own.all {
            document["unavailable"] = records(&unavailable);
            document["shadowed"] = shadowed(&snapshot);
            document["reserved"] = reserved(&snapshot);
            document["catalogues"] = catalogue::records(started);
        }
        if !crib.upstreams().status().is_empty() {
            document["upstreams"] = upstream_wait::records(crib);
        }
        screen::json(&document)?;
        return Ok(Exit::Success);
    }

    let tools_differ_from_lock =
        unavailable.iter().any(|tool| tool.is_blocked()) || remarks(&available).next().is_some();
    if available.is_empty() {
        screen::note("no tools can be called");
    } else {
        screen::out(table(&available, &after_restart, own.wide))?;
    }
    for table in names.tables(own.wide) {
        screen::out(format!("\n{table}"))?;
    }
    if own.all {
        for line in remarks(&available)
            .chain(unsafe_argv_remarks(&available))
            .chain(withheld(&unavailable, &snapshot))
            .chain(names.lines())
        {
            screen::out(screen::folded(&line, 0, 4))?;
        }
        if tools_differ_from_lock || names.differ_from_lock() {
            screen::note(format!(
                "{FAINT}Some entries differ from the lock: see `toolcrib lock --diff`, accept them with \
                 `toolcrib lock`{FAINT:#}"
            ));
        }
    } else {
        let blocked = unavailable.iter().filter(|tool| tool.is_blocked()).count();
        let counts = [
            (unavailable.len() - blocked + names.untrusted(), "unavailable"),
            (blocked + names.blocked(), "blocked"),
            (snapshot.conflicts().len() + names.shadowed(), "shadowed"),
            (remarks(&available).count() + names.remarks(), "with a remark"),
            (unsafe_argv_remarks(&available).count(), "with `unsafe_argv`"),
        ];
        let counts: Vec<_> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !counts.is_empty() {
            let counts = counts.join(", ");
            screen::note(format!("{FAINT}{counts}: see `toolcrib list --all`{FAINT:#}"));
        }
    }
    if own.all {
        let aside = screen::left_aside(started.manifests.files());
        for line in catalogue::lines(started).chain(aside) {
            screen::note(line);
        }
    }
    for line in after_restart.lines() {
        screen::note(line);
    }
    let unmatched = upstream_wait::unmatched(crib).into_iter();
    let unmatched =
        unmatched.map(|text| format!("{WARNING}unmatched{WARNING:#} {}", fully_visible(&text)));
    let absent = upstream_wait::absent(crib).into_iter();
    for line in absent.chain(upstream_wait::cut_lists(crib)).chain(unmatched) {
        screen::note(line);
    }
    Ok(Exit::Success)
}

/// Remarks about tools that can be called, one line each.
fn remarks(available: &[&ToolEntry]) -> impl Iterator<Item = String> {
    available.iter().filter_map(|tool| {
        let (name, remark) = (tool.name(), tool.remark.as_deref()?);
        let source = &tool.source;
        let (remark, source) = (fully_visible(remark), fully_visible(&source.to_string()).into_owned());
        Some(format!(
            "{WARNING}remark{WARNING:#} {STRONG}{name}{STRONG:#}: {remark} {FAINT}({source}){FAINT:#}"
        ))
    })
}

/// Tools in which a value may choose a program or be run, because their manifest says
/// `unsafe_argv`; one line each.
fn unsafe_argv_remarks(available: &[&ToolEntry]) -> impl Iterator<Item = String> {
    available.iter().filter_map(|tool| {
        let (name, reason) = (tool.name(), fully_visible(tool.unsafe_argv.as_deref()?));
        let source = tool.source.to_string();
        let source = fully_visible(&source);
        Some(format!(
            "{WARNING}unsafe_argv{WARNING:#} {STRONG}{name}{STRONG:#}: a value may choose a program or be \
             run: {reason} {FAINT}({source}){FAINT:#}"
        ))
    })
}

/// Tools that cannot be called, with the reason, one line each.
fn withheld(unavailable: &[&ToolEntry], snapshot: &RegistrySnapshot) -> Vec<String> {
    let unavailable = unavailable.iter().map(|tool| {
        let reason = fully_visible(tool.unavailable_reason().unwrap_or_default());
        let word = if tool.is_blocked() { "blocked" } else { "unavailable" };
        format!(
            "{WARNING}{word}{WARNING:#} {STRONG}{}{STRONG:#}: {reason} {FAINT}({}){FAINT:#}",
            tool.name(),
            fully_visible(&tool.source.to_string())
        )
    });
    let shadowed = snapshot.conflicts().iter().map(|conflict| {
        let name = conflict.loser.name();
        let (loser, winner) = (conflict.loser.source.to_string(), conflict.winner.to_string());
        let (loser, winner) = (fully_visible(&loser), fully_visible(&winner));
        let why = if conflict.reserved {
            format!("the name is reserved since {winner} gave it up")
        } else {
            format!("the name belongs to {winner}")
        };
        format!("{WARNING}shadowed{WARNING:#} {STRONG}{name}{STRONG:#} of {loser}: {why}")
    });
    let reserved = snapshot.reserved().iter().map(|reservation| {
        format!(
            "{WARNING}reserved{WARNING:#} {STRONG}{}{STRONG:#}: {} gave it up; until a restart only \
             another {} can get it",
            reservation.name,
            fully_visible(&reservation.owner.to_string()),
            reservation.owner.layer.as_str()
        )
    });
    unavailable.chain(shadowed).chain(reserved).collect()
}

fn records(tools: &[&ToolEntry]) -> Value {
    tools.iter().map(|tool| record(tool)).collect()
}

fn shadowed(snapshot: &RegistrySnapshot) -> Value {
    let record = |conflict: &Conflict| {
        let mut record = record(&conflict.loser);
        record["kept_by"] = json!(conflict.winner.to_string());
        record["reserved"] = json!(conflict.reserved);
        record
    };
    snapshot.conflicts().iter().map(record).collect()
}

fn reserved(snapshot: &RegistrySnapshot) -> Value {
    let record = |reservation: &Reservation| {
        json!({
            "name": reservation.name.as_str(),
            "given_up_by": reservation.owner.to_string(),
            "layer": reservation.owner.layer.as_str(),
        })
    };
    snapshot.reserved().iter().map(record).collect()
}

fn table(tools: &[&ToolEntry], after_restart: &AfterRestart, wide: bool) -> String {
    let columns = Columns::new(["NAME", "DESCRIPTION", "SOURCE"]).shorten(1, wide);
    columns.rows(tools.iter().map(|tool| {
        let source = tool.source.origin.as_ref().map_or_else(
            || tool.source.to_string(),
            |origin| match tool.source.layer {
                // The position in the program's source is rarely of interest.
                toolcrib::tool::Layer::Native if !wide => tool.source.unit.clone(),
                toolcrib::tool::Layer::Native => format!("{} {origin}", tool.source.unit),
                _ => origin.to_string(),
            },
        );
        let source = if after_restart.concerns(tool.name()) {
            format!("{source} (after a restart)")
        } else {
            source
        };
        [tool.name().to_owned(), gist(tool.definition.description()).to_owned(), source]
    }))
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
        record["blocked"] = json!(tool.is_blocked());
    }
    if let Some(remark) = &tool.remark {
        record["remark"] = json!(remark);
    }
    if let Some(reason) = &tool.unsafe_argv {
        record["unsafe_argv"] = json!(reason);
    }
    record
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcrib::core::{Change, RegistryBuilder, SourceUnit};
    use toolcrib::tool::{Layer, Source};
    use toolcrib::{ToolDefinition, tool_fn};

    use super::*;

    fn entry(layer: Layer, unit: &str) -> ToolEntry {
        let definition = ToolDefinition::builder("ping").description("Answer.").build().unwrap();
        let body = tool_fn(|_: Value, _| async { "pong" });
        ToolEntry::new(definition, Arc::new(body), Source::new(layer, unit))
    }

    #[test]
    fn a_reserved_name_is_listed_with_who_gave_it_up_and_who_waits_for_it() {
        let unit = SourceUnit::new(Layer::Manifest, "a.yaml");
        let mut builder = RegistryBuilder::new();
        builder.declare(&unit, vec![entry(Layer::Manifest, "a.yaml")]).unwrap();
        let waits = SourceUnit::new(Layer::Upstream, "github");
        builder.declare(&waits, vec![entry(Layer::Upstream, "github")]).unwrap();
        let (snapshot, _) = builder.build().evolve([Change::Remove { unit }]).unwrap();

        let lines = withheld(&[], &snapshot);
        let lines: Vec<_> =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(
            lines,
            [
                "shadowed ping of upstream github: the name is reserved since manifest a.yaml gave \
                 it up",
                "reserved ping: manifest a.yaml gave it up; until a restart only another \
                 manifest can get it",
            ]
        );
        assert_eq!(reserved(&snapshot)[0]["layer"], "manifest");
        assert_eq!(shadowed(&snapshot)[0]["reserved"], true);
    }
}
