//! `toolcrib why NAME`: who owns a name, who wants it, and why a tool cannot be called.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};
use toolcrib::core::{Conflict, Divergence, RegistrySnapshot, Reservation};
use toolcrib::tool::{Source, ToolEntry};

use super::{JsonOutput, Options};
use crate::screen::{self, ERROR, STRONG, WARNING};
use crate::startup::Started;
use crate::{Exit, startup};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib why tail_log
  toolcrib why tail_log --json | jq .owner.file

Exit code 1: no source owns the name.")]
pub(crate) struct WhyOptions {
    /// The tool's name
    name: String,
    #[command(flatten)]
    output: JsonOutput,
}

/// Everything that is known of a name.
struct Facts<'a> {
    name: &'a str,
    owner: Option<&'a ToolEntry>,
    team: Option<&'a str>,
    waiting: Vec<&'a Conflict>,
    reserved: Option<&'a Reservation>,
    replaced: Option<&'a ToolEntry>,
    restart: Option<Divergence>,
    toolsets: Vec<&'a str>,
    not_in: Vec<&'a str>,
    /// Files that could not be used and hold the name.
    broken: Vec<String>,
    near: Vec<&'a str>,
}

pub(super) fn run(options: &Options, own: &WhyOptions) -> anyhow::Result<Exit> {
    let started = startup::look(options)?;
    let snapshot = started.crib.executor().registry().snapshot();
    let facts = Facts::find(&own.name, &started, &snapshot);
    if own.output.json {
        screen::json(&facts.record())?;
    } else {
        screen::out(facts.page())?;
    }
    Ok(if facts.owner.is_some() { Exit::Success } else { Exit::Failure })
}

impl<'a> Facts<'a> {
    fn find(name: &'a str, started: &'a Started, snapshot: &'a RegistrySnapshot) -> Self {
        let owner = snapshot.get(name);
        let files = started.manifests.files();
        let declares = |entry: &ToolEntry| {
            let mut declarations = files.declarations();
            declarations.find(|tool| Some(&tool.origin) == entry.source.origin.as_ref())
        };
        let (toolsets, not_in): (Vec<_>, Vec<_>) = started
            .crib
            .toolsets()
            .partition(|(_, toolset)| owner.is_some_and(|entry| toolset.allows(entry)));
        let names = |toolsets: Vec<(&'a str, _)>| toolsets.into_iter().map(|(name, _)| name);
        let broken = files.files.iter().filter(|file| file.loaded.has_errors());
        let known =
            owner.is_some() || snapshot.reserved().iter().any(|own| own.name.as_str() == name);
        Self {
            name,
            owner,
            team: owner.and_then(declares).and_then(|tool| tool.owner.as_deref()),
            waiting: snapshot.conflicts().iter().filter(|own| own.loser.name() == name).collect(),
            reserved: snapshot.reserved().iter().find(|own| own.name.as_str() == name),
            replaced: snapshot.overridden().find(|entry| entry.name() == name),
            restart: snapshot.would_differ().into_iter().find(|own| own.name.as_str() == name),
            toolsets: names(toolsets).collect(),
            not_in: names(not_in).collect(),
            broken: broken.filter_map(|file| mention(file, name)).collect(),
            near: if known { Vec::new() } else { snapshot.near(name, |_| true) },
        }
    }

    fn state(&self) -> &'static str {
        match (self.owner, self.reserved) {
            (Some(owner), _) if owner.unavailable_reason().is_some() => "unavailable",
            (Some(_), _) => "available",
            (None, Some(_)) => "reserved",
            (None, None) => "unknown",
        }
    }

    fn record(&self) -> Value {
        let owner = self.owner.map(|owner| {
            let mut record = source(&owner.source);
            record["team"] = json!(self.team);
            record
        });
        let waiting: Vec<_> = self.waiting.iter().map(|own| source(&own.loser.source)).collect();
        json!({
            "name": self.name,
            "state": self.state(),
            "owner": owner,
            "reason": self.owner.and_then(ToolEntry::unavailable_reason),
            "waiting": waiting,
            "replaces": self.replaced.map(|entry| source(&entry.source)),
            "given_up_by": self.reserved.map(|own| source(&own.owner)),
            "after_restart": self.restart.as_ref().map(|own| source(&own.fresh)),
            "toolsets": self.toolsets,
            "broken_files": self.broken,
            "near": self.near,
        })
    }

    fn page(&self) -> String {
        let name = self.name;
        let mut page = format!("{STRONG}{name}{STRONG:#}\n");
        let mut line = |head: &str, text: String| {
            let text = screen::folded(&text, 16, 16);
            let _ = writeln!(page, "  {head:<13} {text}");
        };
        match (self.owner, self.reserved) {
            (Some(owner), _) => {
                let team = self.team.map(|team| format!(", owned by {team}")).unwrap_or_default();
                line("declared by", format!("{}{team}", owner.source));
                if let Some(reason) = owner.unavailable_reason() {
                    line("unavailable", format!("{WARNING}{reason}{WARNING:#}"));
                } else {
                    line("state", "it can be called".to_owned());
                }
            }
            (None, Some(own)) => line(
                "reserved",
                format!(
                    "{} gave it up; only another {} can have it before a restart",
                    own.owner,
                    own.owner.layer.as_str()
                ),
            ),
            (None, None) => line("unknown", format!("{ERROR}no source declares it{ERROR:#}")),
        }
        for own in &self.waiting {
            line("waiting", format!("{}, which came later", own.loser.source));
        }
        if let Some(replaced) = self.replaced {
            line("replaces", format!("{}, as it may", replaced.source));
        }
        if let Some(own) = &self.restart {
            line("a restart", format!("would give it to {}", own.fresh));
        }
        if !self.toolsets.is_empty() {
            line("in toolsets", self.toolsets.join(", "));
        }
        if self.owner.is_some() && !self.not_in.is_empty() {
            line("not in", self.not_in.join(", "));
        }
        for place in &self.broken {
            line(
                "left out",
                format!("{place} names it, but cannot be used (see `toolcrib check`)"),
            );
        }
        if !self.near.is_empty() {
            line("did you mean", self.near.join(", "));
        }
        page
    }
}

/// Where a file that cannot be used names the tool.
fn mention(file: &toolcrib::manifest::directory::FileLoad, name: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let names = |line: &str| line.split(|c: char| !is_word(c)).any(|word| word == name);
    let line = file.text.lines().position(names)? + 1;
    Some(format!("{}:{line}", file.path.display()))
}

fn source(source: &Source) -> Value {
    let origin = source.origin.as_ref();
    json!({
        "layer": source.layer.as_str(),
        "unit": source.unit,
        "file": origin.map(|origin| &origin.file),
        "line": origin.map(|origin| origin.line),
    })
}
