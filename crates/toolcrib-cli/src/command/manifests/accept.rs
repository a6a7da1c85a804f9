//! `toolcrib accept NAME[@DIGEST]`: takes the changed definition of an imported tool.

use std::io::{self, IsTerminal as _};

use anyhow::bail;
use clap::Args;
use serde_json::Value;
use toolcrib::Toolcrib;
use toolcrib::mcp::upstream::Unaccepted;

use crate::command::manifests::trust::report::lines_between;
use crate::command::servers::stop;
use crate::options::Options;
use crate::screen::{self, ERROR, FAINT, STRONG, WARNING};
use crate::terminal_approver::{is_yes, visible};
use crate::{Exit, runtime, startup, upstream_wait};

/// Digits of a digest that are enough: what listings show.
const DIGITS: usize = 12;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib list --all --connect                       which tools are disabled, and why
  toolcrib accept github_get_issue                    show what the server says now, and ask
  toolcrib accept github_get_issue@3f1c0d9a77be       accept this definition, and no other

A tool of another MCP server is pinned when it is first seen. When its definition changes it is
disabled until it is accepted here, or, where toolcrib.lock has the tool, with `toolcrib lock`. Only
the definition that was shown is accepted, whatever the server says meanwhile. Running servers with
the same state folder notice by themselves.")]
pub(crate) struct AcceptOptions {
    /// The tools' names; with a digest (12 digits or more) nothing is asked
    #[arg(required = true, value_name = "NAME[@DIGEST]")]
    names: Vec<String>,
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
        upstream_wait::connect(&started).await;
        let mut exit = Exit::Success;
        for name in &own.names {
            if let Err(problem) = accept(crib, name).await? {
                screen::note(format!("{ERROR}error{ERROR:#}: {problem}"));
                exit = Exit::Failure;
            }
        }
        for line in upstream_wait::absent(crib) {
            screen::note(line);
        }
        crib.shutdown(stop::GRACE).await;
        Ok(exit)
    })?
}

/// Accepts one definition; the inner error says why it was not.
async fn accept(crib: &Toolcrib, wanted: &str) -> anyhow::Result<Result<(), String>> {
    let (name, digest) = match wanted.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (wanted, None),
    };
    let Some(offered) = crib.upstreams().unaccepted(name) else {
        return Ok(Err(format!("nothing to accept: {} ({name})", nothing(crib, name))));
    };
    let now = offered.fingerprint.to_string();
    let before = crib.upstreams().pinned_text(name).await?;
    match digest {
        Some(digest) if digest.len() < DIGITS => {
            return Ok(Err(format!("`{digest}` is too short: write at least {DIGITS} digits")));
        }
        Some(digest) if !now.starts_with(digest) => {
            screen::note(page(name, &offered, before.as_ref()));
            return Ok(Err(format!("{name} has another definition now: {now}")));
        }
        Some(_) => {}
        None => {
            screen::note(page(name, &offered, before.as_ref()));
            if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
                let short = now.get(..DIGITS).unwrap_or(&now);
                return Ok(Err(format!(
                    "there is no terminal to ask on: accept what is shown above with `toolcrib accept \
                     {name}@{short}`"
                )));
            }
            screen::ask("Accept it? [y/N] ");
            if !is_yes(&mut io::stdin().lock())? {
                return Ok(Err(format!("{name} was not accepted")));
            }
        }
    }
    if crib.upstreams().accept(name, offered.fingerprint).await? {
        screen::out(format!("accepted {STRONG}{name}{STRONG:#} {FAINT}{now}{FAINT:#}"))?;
        return Ok(Ok(()));
    }
    Ok(Err(format!("the definition that was shown is offered no longer ({name})")))
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
