//! `toolcrib accept NAME`: takes the changed definition of an imported tool.

use anyhow::bail;
use clap::Args;

use super::stop;
use crate::options::Options;
use crate::screen::{self, ERROR, STRONG};
use crate::{Exit, runtime, startup, upstreams};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib list --all                      which tools are disabled, and why
  toolcrib show github_get_issue           what the server says of it now
  toolcrib accept github_get_issue

A tool of another MCP server is pinned when it is first seen. When its definition changes it is
disabled until it is accepted here, or, where toolcrib.lock has the tool, with `toolcrib lock`. Running
servers with the same state.dir notice by themselves.")]
pub(crate) struct AcceptOptions {
    /// The tools' names
    #[arg(required = true)]
    names: Vec<String>,
}

pub(super) fn run(options: &Options, own: &AcceptOptions) -> anyhow::Result<Exit> {
    let started = startup::call(options)?;
    let crib = &started.crib;
    if started.config.state.dir.is_none() {
        bail!(
            "there is no state folder (`state.dir: none`), so nothing is remembered: a server that is \
             started again takes every definition as it is then"
        );
    }
    runtime::block_on(async {
        upstreams::connect(&started).await;
        let mut exit = Exit::Success;
        for name in &own.names {
            if crib.upstreams().accept(name).await? {
                screen::out(format!("accepted {STRONG}{name}{STRONG:#}"))?;
            } else {
                let snapshot = crib.executor().registry().snapshot();
                let why = match snapshot.get(name) {
                    Some(tool) if tool.is_blocked() => {
                        "toolcrib.lock decides about it: see `toolcrib lock --diff`, accept it with \
                         `toolcrib lock`"
                    }
                    Some(_) => "its definition is the one that was first seen, or nobody pins it",
                    None => "there is no such tool",
                };
                screen::note(format!("{ERROR}error{ERROR:#}: nothing to accept: {why} ({name})"));
                exit = Exit::Failure;
            }
        }
        for line in upstreams::absent(crib) {
            screen::note(line);
        }
        crib.shutdown(stop::GRACE).await;
        Ok(exit)
    })?
}
