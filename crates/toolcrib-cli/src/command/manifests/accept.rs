//! `toolcrib accept NAME[@DIGEST]`: takes the changed definition of an imported tool.

use std::io::{self, IsTerminal as _};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use toolcrib::Toolcrib;
use toolcrib::mcp::upstream::Unaccepted;

use crate::command::manifests::trust::report::lines_between;
use crate::options::{JsonOutput, Options};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::serving::stop;
use crate::terminal_approver::{is_yes, visible};
use crate::{Exit, runtime, startup, upstream_wait};

/// Digits of a digest that are enough: what listings show.
const DIGITS: usize = 12;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib list --all --connect                       which tools are disabled, and why
  toolcrib accept github_get_issue                    show what the server says now, and ask
  toolcrib accept github_get_issue@3f1c0d9a77be       accept this definition, and no other

A tool of another MCP server is pinned when it is first seen. If its definition changes, it is
disabled until you accept the change here or, if toolcrib.lock contains the tool, with `toolcrib lock`.
Exactly the definition that was shown is accepted, even if the server has changed it since. Running servers with
the same state folder notice by themselves.")]
pub(crate) struct AcceptOptions {
    /// The tools' names; with a digest (12 digits or more) no confirmation is needed
    #[arg(required = true, value_name = "NAME[@DIGEST]")]
    names: Vec<String>,
    #[command(flatten)]
    output: JsonOutput,
}

/// What came of one name.
enum Outcome {
    /// Its definition is accepted.
    Accepted { fingerprint: String },
    /// It is not, for this reason; with the definition that is offered, if there is one.
    Refused { reason: String, offered: Option<Unaccepted> },
}

impl Outcome {
    fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), offered: None }
    }
}

pub(in crate::command) fn run(options: &Options, own: &AcceptOptions) -> anyhow::Result<Exit> {
    let started = startup::call(options)?;
    let crib = &started.crib;
    if started.config.state.dir.is_none() {
        bail!(
            "there is no state folder (`state.dir: none`), so nothing is remembered: a server that is \
             started again takes every definition as it is then"
        );
    }
    runtime::block_on(async {
        upstream_wait::connect(&started).await?;
        let mut exit = Exit::Success;
        let mut records = Vec::new();
        for wanted in &own.names {
            let outcome = accept(crib, wanted, own.output.json).await?;
            if matches!(outcome, Outcome::Refused { .. }) {
                exit = Exit::Failure;
            }
            if own.output.json {
                records.push(record(wanted, &outcome));
            } else {
                say(wanted, &outcome)?;
            }
        }
        if own.output.json {
            screen::json(&json!({"tools": records}))?;
        }
        for line in upstream_wait::absent(crib) {
            screen::note(line);
        }
        crib.shutdown(stop::GRACE).await;
        Ok(exit)
    })?
}

/// The name, and the digest behind it.
fn name_and_digest(wanted: &str) -> (&str, Option<&str>) {
    match wanted.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (wanted, None),
    }
}

fn say(wanted: &str, outcome: &Outcome) -> anyhow::Result<()> {
    match outcome {
        Outcome::Accepted { fingerprint } => {
            let (name, _) = name_and_digest(wanted);
            screen::out(format!("accepted {STRONG}{name}{STRONG:#} {FAINT}{fingerprint}{FAINT:#}"))
        }
        Outcome::Refused { reason, .. } => {
            screen::note(format!("{ERROR}error{ERROR:#}: {reason}"));
            Ok(())
        }
    }
}

/// The outcome as JSON. A definition that is not accepted yet is part of it, so that a program can show it.
fn record(wanted: &str, outcome: &Outcome) -> Value {
    let (name, _) = name_and_digest(wanted);
    match outcome {
        Outcome::Accepted { fingerprint } => {
            json!({"name": name, "accepted": true, "digest": fingerprint})
        }
        Outcome::Refused { reason, offered } => {
            let mut record = json!({"name": name, "accepted": false, "reason": reason});
            if let Some(offered) = offered {
                record["digest"] = json!(offered.fingerprint.to_string());
                record["definition"] = offered.says.clone();
            }
            record
        }
    }
}

/// Accepts one definition. Nobody is asked if a program reads the answer.
async fn accept(crib: &Toolcrib, wanted: &str, for_program: bool) -> anyhow::Result<Outcome> {
    let (name, digest) = name_and_digest(wanted);
    let Some(offered) = crib.upstreams().unaccepted(name) else {
        let why = nothing(crib, name);
        return Ok(Outcome::refused(format!("nothing to accept: {why} ({name})")));
    };
    let now = offered.fingerprint.to_string();
    let before = crib.upstreams().pinned_text(name).await?;
    match digest {
        Some(digest) if digest.len() < DIGITS => {
            let reason = format!("`{digest}` is too short: write at least {DIGITS} digits");
            return Ok(Outcome::Refused { reason, offered: Some(offered) });
        }
        Some(digest) if !now.starts_with(digest) => {
            if !for_program {
                screen::note(page(name, &offered, before.as_ref()));
            }
            let reason = format!("{name} has another definition now: {now}");
            return Ok(Outcome::Refused { reason, offered: Some(offered) });
        }
        Some(_) => {}
        None => {
            let short = now.get(..DIGITS).unwrap_or(&now);
            let command = format!("`toolcrib accept {name}@{short}`");
            if for_program {
                let reason = format!("it has to be accepted by its digest: {command}");
                return Ok(Outcome::Refused { reason, offered: Some(offered) });
            }
            screen::note(page(name, &offered, before.as_ref()));
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                return Ok(Outcome::refused(format!(
                    "there is no terminal to ask on: accept what is shown above with {command}"
                )));
            }
            screen::ask("Accept it? [y/N] ");
            if !is_yes(&mut io::stdin().lock())? {
                return Ok(Outcome::refused(format!("{name} was not accepted")));
            }
        }
    }
    if crib.upstreams().accept(name, offered.fingerprint).await? {
        return Ok(Outcome::Accepted { fingerprint: now });
    }
    Ok(Outcome::refused(format!("the definition that was shown is offered no longer ({name})")))
}

/// All that the server says of the tool now, and how that differs from what was accepted before, where
/// that is known.
fn page(name: &str, offered: &Unaccepted, before: Option<&Value>) -> String {
    let text = |says: &Value| serde_json::to_string_pretty(says).unwrap_or_default();
    let now = text(&offered.says);
    let mut page = format!(
        "{WARNING}changed{WARNING:#} {STRONG}{name}{STRONG:#} {FAINT}{}{FAINT:#}\n{}",
        offered.fingerprint,
        visible(&now)
    );
    if let Some(before) = before {
        let lines = lines_between(&text(before), &now, "accepted");
        page.push_str("\n\nWhat is different:\n");
        page.push_str(&visible(&lines));
    }
    page
}

fn nothing(crib: &Toolcrib, name: &str) -> &'static str {
    let snapshot = crib.executor().registry().snapshot();
    match snapshot.get(name) {
        Some(tool) if tool.is_blocked() => {
            "toolcrib.lock decides about it: see `toolcrib lock --diff`, accept it with `toolcrib lock`"
        }
        Some(_) => "its definition is the one that was first seen, or nobody pins it",
        None => "there is no such tool",
    }
}
