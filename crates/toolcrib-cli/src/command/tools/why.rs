//! `toolcrib why NAME`: the owner of a name, other declarations of it, and why a tool cannot be
//! called.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::Style;
use clap::Args;
use serde_json::{Value, json};
use toolcrib::core::policy::Verdict;
use toolcrib::core::{Conflict, Divergence, RegistrySnapshot, Reservation};
use toolcrib::manifest::lock::Kind;
use toolcrib::names::{DeclaredName, NotOffered};
use toolcrib::tool::{Source, ToolEntry, fully_visible};

use super::show::because;
use crate::command::servers::{ask_servers, reset};
use crate::options::{ConnectChoice, JsonOutput, Options};
use crate::screen::{self, ERROR, STRONG, WARNING};
use crate::startup::Started;
use crate::upstream_wait::UnaskedServer;
use crate::{Exit, runtime, startup, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib why tail_log
  toolcrib why tail_log --json | jq .owner.file
  toolcrib why notes://today           a resource, by its address

NAME is the name of a tool, a prompt or another MCP server, or the address of a resource. With --connect, a
server that may have a tool with the name is started and asked. Exit code 1: no source owns the name.")]
pub(crate) struct WhyOptions {
    /// The name
    name: String,
    #[command(flatten)]
    connect: ConnectChoice,
    #[command(flatten)]
    output: JsonOutput,
}

/// Everything that is known about a name.
struct Facts<'a> {
    name: &'a str,
    owner: Option<&'a ToolEntry>,
    team: Option<&'a str>,
    waiting: Vec<&'a Conflict>,
    reserved: Option<&'a Reservation>,
    replaced: Option<&'a ToolEntry>,
    restart: Option<Divergence>,
    toolsets: Vec<String>,
    not_in: Vec<String>,
    /// Prompts, resources and other MCP servers with the name.
    besides: Vec<DeclaredName>,
    /// The rule that denies every call, and the message that callers get.
    denied: Option<(String, String)>,
    /// The rule that requires approval for every call, and why.
    asks: Option<(String, String)>,
    /// Invalid files that contain the name.
    broken: Vec<String>,
    /// The MCP server that has the pinned tool, if it was not asked.
    pinned: Option<String>,
    /// Why the MCP server that may have the tool was asked in vain.
    down: Option<String>,
    /// Whether a running server has a tool with the name.
    is_at_server: bool,
    near: Vec<&'a str>,
}

pub(in crate::command) fn run(options: &Options, own: &WhyOptions) -> anyhow::Result<Exit> {
    let connect = own.connect.connect;
    let started = startup::look(options, connect)?;
    if !connect || started.manifests.files().upstreams().next().is_none() {
        let outcome = runtime::block_on(explained(&started, own))?;
        return outcome;
    }
    runtime::block_on(async {
        upstream_wait::connect_for(&started, &own.name).await?;
        let outcome = explained(&started, own).await;
        started.crib.shutdown(Duration::ZERO).await;
        outcome
    })?
}

async fn explained(started: &Started, own: &WhyOptions) -> anyhow::Result<Exit> {
    let snapshot = started.crib.executor().registry().snapshot();
    let mut facts = Facts::of(&own.name, &snapshot).with(started);
    let servers = ask_servers::why(started, &own.name).await;
    facts.is_at_server = servers.iter().any(|(_, answer)| answer["owner"].is_string());
    if facts.state() == "unknown" && !own.connect.connect {
        let pinned = upstream_wait::pinned_tools(started, |tool| tool == own.name);
        facts.pinned = pinned.first().map(UnaskedServer::source);
    }
    facts.down = upstream_wait::down_for(started, &own.name);
    if own.output.json {
        let mut record = facts.record();
        record["servers"] =
            servers.into_iter().map(|(pid, answer)| of_server(pid, answer)).collect();
        screen::json(&record)?;
    } else {
        let now = facts.owner.and_then(ToolEntry::unavailable_reason);
        let is_upstream = |(_, answer): &(u32, Value)| {
            let besides = answer["besides"].as_array().into_iter().flatten();
            besides.into_iter().any(|own| own["kind"] == Kind::Upstream.as_str())
        };
        let statuses = if servers.iter().any(is_upstream) {
            ask_servers::statuses(started).await
        } else {
            Vec::new()
        };
        let lines = servers.iter().map(|(pid, answer)| {
            let status = statuses.iter().find(|(of, _)| of == pid).map(|(_, status)| status);
            let down = status.and_then(|status| why_down(status, &own.name));
            server_line(*pid, answer, now, down)
        });
        screen::out((facts.page() + &lines.collect::<String>()).trim_end())?;
    }
    let absent = upstream_wait::absent(&started.crib).into_iter();
    for line in absent.chain(upstream_wait::last_output(&started.crib)) {
        screen::note(line);
    }
    let is_open = facts.pinned.is_none() && !own.connect.connect;
    if let Some(line) = is_open.then(|| upstream_wait::not_asked_for(started, &own.name)).flatten()
    {
        screen::note(screen::folded_note(&line, 4));
    }
    let is_known = facts.owner.is_some() || !facts.besides.is_empty() || facts.pinned.is_some();
    Ok(if is_known { Exit::Success } else { Exit::Failure })
}

fn of_server(pid: u32, mut answer: Value) -> Value {
    answer["pid"] = json!(pid);
    answer
}

/// Why another MCP server is not connected, by the status of a running server.
fn why_down(status: &Value, upstream: &str) -> Option<String> {
    let mut upstreams = status["upstreams"].as_array()?.iter();
    let own = upstreams.find(|own| own["name"] == upstream && own["state"] != "connected")?;
    let part = |key: &str| own[key].as_str();
    let detail = part("detail").map(|detail| format!(" ({detail})")).unwrap_or_default();
    let reason = part("reason").map(|reason| format!(": {reason}{detail}")).unwrap_or_default();
    Some(format!("{}{reason}", part("state").unwrap_or_default()))
}

/// What a running server reports about the name, which may differ from the current files: `now` is
/// why the tool would be unavailable to a server that starts now.
fn server_line(pid: u32, answer: &Value, now: Option<&str>, down: Option<String>) -> String {
    let says = |key: &str| answer[key].as_str();
    let besides = answer["besides"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = match (says("owner"), says("given_up_by")) {
        (Some(owner), _) => format!("has it from {owner}"),
        (None, Some(last)) => format!("keeps the name reserved since {last} gave it up"),
        (None, None) if besides.is_empty() => "does not know it".to_owned(),
        (None, None) => String::new(),
    };
    if let Some(reason) = says("unavailable") {
        let _ = write!(text, "; unavailable: {reason}");
    } else if let (Some(reason), Some(_)) = (now, says("owner")) {
        let _ = write!(text, ", as it was loaded; what the files say now is unavailable: {reason}");
    }
    if let Some(left) = answer["paused_seconds"].as_u64() {
        let name = answer["name"].as_str().unwrap_or_default();
        let _ = write!(text, "; {}", reset::paused(name, left));
    }
    if let Some(reason) = says("stale") {
        let _ = write!(text, "; its last good version, since the file cannot be used: {reason}");
    }
    if let Some(fresh) = says("after_restart") {
        let _ = write!(text, "; a restart would give it to {fresh}");
    }
    for own in besides {
        let says = |key: &str| own[key].as_str();
        let (kind, by) = (own["kind"].as_str().unwrap_or_default(), &own["declared_by"]);
        let by = by.as_str().unwrap_or_default();
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = match (says("blocked"), says("kept_by")) {
            (Some(reason), _) => write!(text, "{separator}blocks the {kind} of {by}: {reason}"),
            (None, Some(_)) => write!(text, "{separator}does not take the {kind} of {by}"),
            (None, None) => write!(text, "{separator}has the {kind} from {by}"),
        };
        if let Some(fresh) = says("after_restart") {
            let _ = write!(text, "; a restart would give it to {fresh}");
        }
    }
    if let Some(down) = down {
        let _ = write!(text, "; it is {down}");
    }
    let text = fully_visible(&text);
    format!("  {:<13} {}\n", format!("server {pid}"), screen::folded(&text, 16, 16))
}

impl<'a> Facts<'a> {
    /// The facts in the registry.
    fn of(name: &'a str, snapshot: &'a RegistrySnapshot) -> Self {
        let owner = snapshot.get(name);
        let reserved = snapshot.reserved().iter().find(|own| own.name.as_str() == name);
        let known = owner.is_some() || reserved.is_some();
        Self {
            name,
            owner,
            team: None,
            waiting: snapshot.conflicts().iter().filter(|own| own.loser.name() == name).collect(),
            reserved,
            replaced: snapshot.overridden().find(|entry| entry.name() == name),
            restart: snapshot.would_differ().into_iter().find(|own| own.name.as_str() == name),
            toolsets: Vec::new(),
            not_in: Vec::new(),
            besides: Vec::new(),
            denied: None,
            asks: None,
            broken: Vec::new(),
            pinned: None,
            down: None,
            is_at_server: false,
            near: if known { Vec::new() } else { snapshot.near(name, |_| true) },
        }
    }

    /// Adds the facts from toolsets and files.
    fn with(mut self, started: &'a Started) -> Self {
        let names = started.crib.declared_names();
        self.besides = names.into_iter().filter(|one| one.name == self.name).collect();
        for (name, toolset) in started.crib.toolsets() {
            let takes = self.owner.is_some_and(|owner| toolset.allows(owner));
            if takes { self.toolsets.push(name) } else { self.not_in.push(name) }
        }
        let verdict = |owner| started.config.policy.verdict_of_every_call(owner);
        match self.owner.and_then(verdict) {
            Some(Verdict::Deny { by, message }) => self.denied = Some((by.to_string(), message)),
            Some(Verdict::Ask { by, reason }) => self.asks = Some((by.to_string(), reason)),
            _ => {}
        }
        let files = started.manifests.files();
        let origin = self.owner.and_then(|owner| owner.source.origin.as_ref());
        let declared = files.declarations().find(|tool| Some(&tool.origin) == origin);
        self.team = declared.and_then(|tool| tool.owner.as_deref());
        let broken = files.files.iter().filter(|file| file.loaded.has_errors());
        self.broken = broken.filter_map(|file| mention(file, self.name)).collect();
        if !self.besides.is_empty() {
            self.near.clear();
        }
        self
    }

    fn state(&self) -> &'static str {
        match (self.owner, self.reserved) {
            (Some(owner), _) if owner.is_blocked() => "blocked",
            (Some(owner), _) if owner.unavailable_reason().is_some() => "unavailable",
            (Some(_), _) if self.denied.is_some() => "denied",
            (Some(_), _) => "available",
            (None, Some(_)) => "reserved",
            (None, None) if self.pinned.is_some() => "pinned",
            (None, None) if self.besides.is_empty() => "unknown",
            (None, None) => "no tool",
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
            "reason": self.owner.and_then(ToolEntry::unavailable_reason).or(self.down.as_deref()),
            "denied_by": self.denied.as_ref().map(|(rule, _)| rule),
            "denied_with": self.denied.as_ref().map(|(_, message)| message),
            "approval_by": self.asks.as_ref().map(|(by, _)| by),
            "approval_reason": self.asks.as_ref().map(|(_, reason)| reason),
            "remark": self.owner.and_then(|owner| owner.remark.as_deref()),
            "waiting": waiting,
            "replaces": self.replaced.map(|entry| source(&entry.source)),
            "given_up_by": self.reserved.map(|own| source(&own.owner)),
            "after_restart": self.restart.as_ref().map(|own| source(&own.fresh)),
            "toolsets": self.toolsets,
            "besides": self.besides.iter().map(besides).collect::<Vec<_>>(),
            "broken_files": self.broken,
            "near": self.near,
        })
    }

    fn page(&self) -> String {
        let name = fully_visible(self.name);
        let mut page = format!("{STRONG}{name}{STRONG:#}\n");
        let plain = Style::new();
        let mut line = |head: &str, style: Style, text: &str| {
            let text = fully_visible(text);
            let text = screen::folded(&text, 16, 16);
            let _ = writeln!(page, "  {head:<13} {style}{text}{style:#}");
        };
        match (self.owner, self.reserved) {
            (Some(owner), _) => {
                let team = self.team.map(|team| format!(", owned by {team}")).unwrap_or_default();
                line("declared by", plain, &format!("{}{team}", owner.source));
                if let Some(reason) = owner.unavailable_reason() {
                    let state = if owner.is_blocked() { "blocked" } else { "unavailable" };
                    line(state, WARNING, reason);
                } else if let Some((by, reason)) = &self.asks {
                    let because = because(by, reason);
                    let text = format!("it can be called; every call needs approval{because}");
                    line("state", plain, &text);
                } else if self.denied.is_none() {
                    line("state", plain, "it can be called");
                }
                if let Some((rule, message)) = &self.denied {
                    let text = format!("every call, by {rule} of the config: {message}");
                    line("denied", WARNING, &text);
                }
                if let Some(remark) = &owner.remark {
                    line("remark", WARNING, remark);
                }
            }
            (None, Some(own)) => line(
                "reserved",
                plain,
                &format!(
                    "{} gave it up; until a restart only another {} can get it",
                    own.owner,
                    own.owner.layer.as_str()
                ),
            ),
            (None, None) if self.besides.is_empty() => match &self.pinned {
                Some(source) => line(
                    "pinned",
                    plain,
                    &format!("{source}; `--connect` asks the server whether it has it now"),
                ),
                None if self.is_at_server => {
                    line(
                        "not here",
                        plain,
                        "no usable manifest declares it; the server below has it",
                    );
                }
                None => {
                    line("unknown", ERROR, self.down.as_deref().unwrap_or("no source declares it"));
                }
            },
            (None, None) => {}
        }
        for own in &self.besides {
            let (style, state) = beside_state(own);
            line(own.kind.as_str(), style, &format!("declared by {}; {state}", own.source));
        }
        for own in &self.waiting {
            line("waiting", plain, &format!("{}, which came later", own.loser.source));
        }
        if let Some(replaced) = self.replaced {
            line("replaces", plain, &format!("{}, as it may", replaced.source));
        }
        if let Some(own) = &self.restart {
            line("a restart", plain, &format!("would give it to {}", own.fresh));
        }
        if !self.toolsets.is_empty() {
            line("in toolsets", plain, &self.toolsets.join(", "));
        }
        if self.owner.is_some() && !self.not_in.is_empty() {
            line("not in", plain, &self.not_in.join(", "));
        }
        for place in &self.broken {
            line(
                "left out",
                plain,
                &format!("{place} names it, but cannot be used (see `toolcrib check`)"),
            );
        }
        if !self.near.is_empty() {
            line("did you mean", plain, &self.near.join(", "));
        }
        page
    }
}

/// Whether clients are offered something else of the name.
fn beside_state(own: &DeclaredName) -> (Style, String) {
    match (&own.withheld, &own.remark) {
        (Some(NotOffered::Blocked(reason)), _) => (WARNING, format!("blocked: {reason}")),
        (Some(NotOffered::Untrusted(reason)), _) => (WARNING, format!("unavailable: {reason}")),
        (Some(NotOffered::Shadowed(by)), _) => {
            (WARNING, format!("not offered: the name belongs to {by}"))
        }
        (None, Some(remark)) => (WARNING, remark.clone()),
        (None, None) if own.kind == Kind::Upstream => {
            (Style::new(), format!("its tools are called {}_…", own.name))
        }
        (None, None) => (Style::new(), "MCP clients are offered it".to_owned()),
    }
}

/// Where an invalid file names the tool.
pub(in crate::command) fn mention(
    file: &toolcrib::manifest::directory::FileLoad,
    name: &str,
) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let names = |line: &str| line.split(|c: char| !is_word(c)).any(|word| word == name);
    let line = file.text.lines().position(names)? + 1;
    Some(format!("{}:{line}", file.path.display()))
}

fn besides(own: &DeclaredName) -> Value {
    let mut record = json!({"kind": own.kind.as_str(), "declared_by": source(&own.source)});
    match &own.withheld {
        Some(NotOffered::Blocked(reason)) => record["blocked"] = json!(reason),
        Some(NotOffered::Untrusted(reason)) => record["untrusted"] = json!(reason),
        Some(NotOffered::Shadowed(by)) => record["kept_by"] = source(by),
        None => {}
    }
    if let Some(remark) = &own.remark {
        record["remark"] = json!(remark);
    }
    record
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcrib::core::{Change, RegistryBuilder, SourceUnit};
    use toolcrib::tool::Layer;
    use toolcrib::{ToolDefinition, tool_fn};

    use super::*;

    fn entry(layer: Layer, unit: &str) -> ToolEntry {
        let definition = ToolDefinition::builder("ping").description("Answer.").build().unwrap();
        let body = tool_fn(|_: Value, _| async { "pong" });
        ToolEntry::new(definition, Arc::new(body), Source::new(layer, unit))
    }

    fn page(snapshot: &RegistrySnapshot) -> String {
        anstream::adapter::strip_str(&Facts::of("ping", snapshot).page()).to_string()
    }

    #[test]
    fn why_explains_a_reserved_name() {
        let unit = SourceUnit::new(Layer::Manifest, "a.yaml");
        let mut builder = RegistryBuilder::new();
        builder.declare(&unit, vec![entry(Layer::Manifest, "a.yaml")]).unwrap();
        let waits = SourceUnit::new(Layer::Upstream, "github");
        builder.declare(&waits, vec![entry(Layer::Upstream, "github")]).unwrap();
        let (snapshot, _) = builder.build().evolve([Change::Remove { unit }]).unwrap();
        assert_eq!(
            page(&snapshot),
            "ping
  reserved      manifest a.yaml gave it up; until a restart only another manifest can get it
  waiting       upstream github, which came later
  a restart     would give it to upstream github
"
        );
        let record = Facts::of("ping", &snapshot).record();
        assert_eq!((&record["state"], &record["owner"]), (&"reserved".into(), &Value::Null));
        assert_eq!(record["after_restart"]["unit"], "github");
    }

    #[test]
    fn why_names_the_owner_after_a_restart() {
        let mut builder = RegistryBuilder::new();
        let unit = SourceUnit::new(Layer::Manifest, "b.yaml");
        builder.declare(&unit, vec![entry(Layer::Manifest, "b.yaml")]).unwrap();
        let unit = SourceUnit::new(Layer::Manifest, "a.yaml");
        let entries = vec![entry(Layer::Manifest, "a.yaml")];
        let (snapshot, _) = builder.build().evolve([Change::Replace { unit, entries }]).unwrap();
        let page = page(&snapshot);
        assert!(page.contains("declared by   manifest b.yaml"), "{page}");
        assert!(page.contains("a restart     would give it to manifest a.yaml"), "{page}");
    }
}
