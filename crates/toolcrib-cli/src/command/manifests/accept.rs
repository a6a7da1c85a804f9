//! `toolcrib accept NAME[@DIGEST]`: accepts the changed definition of an imported tool.

use std::io::{self, IsTerminal as _};

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use toolcrib::Toolcrib;
use toolcrib::core::fingerprint::Fingerprint;
use toolcrib::mcp::upstream::UnacceptedChange;
use toolcrib::tool::fully_visible_text;

use crate::command::manifests::trust::report::lines_between;
use crate::options::{JsonOutput, Options};
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::serving::stop;
use crate::terminal_approver::is_yes;
use crate::{Exit, runtime, startup, upstream_wait};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib list --all --connect                       list disabled tools and the reasons
  toolcrib accept github_get_issue                    show the new definition, and ask
  toolcrib accept github_get_issue@3f1c0d9a77be5e0d41c8a96b27f0d314
                                                      accept this definition, and no other

A tool of another MCP server is pinned when it is first seen. If its definition changes, it is
disabled until you accept the change here or, if toolcrib.lock contains the tool, with `toolcrib lock`.
Only the definition that was shown is accepted, even if the server has changed it since. Running servers with
the same state folder detect the change.")]
pub(crate) struct AcceptOptions {
    /// The tools' names; with a digest (32 digits or more) no confirmation is needed
    #[arg(required = true, value_name = "NAME[@DIGEST]")]
    names: Vec<String>,
    #[command(flatten)]
    output: JsonOutput,
}

/// The result for one name.
enum AcceptOutcome {
    /// The definition is accepted.
    Accepted { fingerprint: String },
    /// The definition is not accepted, for this reason; with the offered definition, if there is
    /// one.
    Refused { reason: String, offered: Option<UnacceptedChange> },
}

impl AcceptOutcome {
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
            if matches!(outcome, AcceptOutcome::Refused { .. }) {
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

/// Splits the name from the digest.
fn name_and_digest(wanted: &str) -> (&str, Option<&str>) {
    match wanted.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (wanted, None),
    }
}

fn say(wanted: &str, outcome: &AcceptOutcome) -> anyhow::Result<()> {
    match outcome {
        AcceptOutcome::Accepted { fingerprint } => {
            let (name, _) = name_and_digest(wanted);
            screen::out(format!("accepted {STRONG}{name}{STRONG:#} {FAINT}{fingerprint}{FAINT:#}"))
        }
        AcceptOutcome::Refused { reason, .. } => {
            screen::note(format!("{ERROR}error{ERROR:#}: {reason}"));
            Ok(())
        }
    }
}

/// The result as JSON. It includes a definition that is not accepted yet, so that a program can
/// show it.
fn record(wanted: &str, outcome: &AcceptOutcome) -> Value {
    let (name, _) = name_and_digest(wanted);
    match outcome {
        AcceptOutcome::Accepted { fingerprint } => {
            json!({"name": name, "accepted": true, "digest": fingerprint})
        }
        AcceptOutcome::Refused { reason, offered } => {
            let mut record = json!({"name": name, "accepted": false, "reason": reason});
            if let Some(offered) = offered {
                record["digest"] = json!(offered.fingerprint.to_string());
                record["definition"] = offered.says.clone();
            }
            record
        }
    }
}

/// Accepts one definition, without a question if a program reads the answer.
async fn accept(crib: &Toolcrib, wanted: &str, for_program: bool) -> anyhow::Result<AcceptOutcome> {
    let (name, digest) = name_and_digest(wanted);
    let Some(offered) = crib.upstreams().unaccepted(name) else {
        let why = nothing_to_accept(crib, name);
        return Ok(AcceptOutcome::refused(format!("nothing to accept: {why} ({name})")));
    };
    let now = offered.fingerprint.to_string();
    let before = crib.upstreams().pinned_text(name).await?;
    match digest {
        Some(digest) if digest.len() < Fingerprint::ACCEPTED_DIGITS => {
            let reason = format!(
                "`{digest}` is too short: write at least {} digits",
                Fingerprint::ACCEPTED_DIGITS
            );
            return Ok(AcceptOutcome::Refused { reason, offered: Some(offered) });
        }
        Some(digest) if !offered.fingerprint.is_named_by(digest) => {
            if !for_program {
                screen::note(page(name, &offered, before.as_ref()));
            }
            let reason = format!("{name} has another definition now: {now}");
            return Ok(AcceptOutcome::Refused { reason, offered: Some(offered) });
        }
        Some(_) => {}
        None => {
            let digits = offered.fingerprint.abbreviated();
            let command = format!("`toolcrib accept {name}@{digits}`");
            if for_program {
                let reason = format!("it has to be accepted by its digest: {command}");
                return Ok(AcceptOutcome::Refused { reason, offered: Some(offered) });
            }
            screen::note(page(name, &offered, before.as_ref()));
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                return Ok(AcceptOutcome::refused(format!(
                    "there is no terminal to ask on: accept what is shown above with {command}"
                )));
            }
            screen::ask("Accept it? [y/N] ");
            if !is_yes(&mut io::stdin().lock())? {
                return Ok(AcceptOutcome::refused(format!("{name} was not accepted")));
            }
        }
    }
    if crib.upstreams().accept(name, offered.fingerprint).await? {
        return Ok(AcceptOutcome::Accepted { fingerprint: now });
    }
    Ok(AcceptOutcome::refused(format!("the definition shown above is no longer offered ({name})")))
}

/// All that the server says about the tool now, and how it differs from the accepted definition, if
/// that is known.
fn page(name: &str, offered: &UnacceptedChange, before: Option<&Value>) -> String {
    let text = |says: &Value| serde_json::to_string_pretty(says).unwrap_or_default();
    let now = text(&offered.says);
    let mut page = format!(
        "{WARNING}changed{WARNING:#} {STRONG}{name}{STRONG:#} {FAINT}{}{FAINT:#}\n{}",
        offered.fingerprint,
        fully_visible_text(&now)
    );
    if let Some(before) = before {
        let lines = lines_between(&text(before), &now, "accepted");
        page.push_str("\n\nChanges:\n");
        page.push_str(&fully_visible_text(&lines));
    }
    page
}

fn nothing_to_accept(crib: &Toolcrib, name: &str) -> &'static str {
    let snapshot = crib.executor().registry().snapshot();
    match snapshot.get(name) {
        Some(tool) if tool.is_blocked() => {
            "toolcrib.lock contains it: see `toolcrib lock --diff`, and accept the change with `toolcrib lock`"
        }
        Some(_) => "its definition has not changed since it was first seen, or is not pinned",
        None => "there is no such tool",
    }
}
