//! `toolcrib reset NAME`: ends the pause of a tool that timed out repeatedly, or restarts an MCP server.

use clap::Args;
use serde_json::Value;
use toolcrib::servers::{OwnerClient, path_segment};

use super::ask_servers::{WHICH, each};
use crate::Exit;
use crate::options::{JsonOutput, Options};

const RESTART: &str = "An MCP server of a manifest (`upstream`) is ended and connected again at once. Calls that it is \
     running end with `outcome_unknown`, or with `unavailable` if they can safely be repeated. Its files and the pins of \
     its tools are checked again before it is used.";

#[derive(Debug, Args)]
#[command(after_help = format!("{RESTART}\n\n{WHICH}"))]
pub(crate) struct ResetOptions {
    /// The paused tool, or the MCP server to restart
    name: String,
    #[command(flatten)]
    output: JsonOutput,
}

pub(in crate::command) fn run(options: &Options, own: &ResetOptions) -> anyhow::Result<Exit> {
    let path = format!("/v1/tools/{}/reset", path_segment(&own.name));
    let reset = async |server: &OwnerClient| server.post(&path, None).await;
    each(options, own.output, &reset, |answer| reset_page(&own.name, answer))
}

fn reset_page(name: &str, answer: &Value) -> String {
    match answer["paused"].as_u64().unwrap_or_default() {
        0 if answer["restarted"] == true => format!("  the MCP server `{name}` is being restarted"),
        0 => format!("  `{name}` was not paused"),
        1 => format!("  `{name}` was paused for one identity and can be called again"),
        several => {
            format!("  `{name}` was paused for {several} identities and can be called again")
        }
    }
}

/// A sentence about a tool that a server has paused.
pub(in crate::command) fn paused(name: &str, seconds_left: u64) -> String {
    let left = match seconds_left {
        0 => "paused after repeated timeouts while one call is tried".to_owned(),
        left => format!("paused after repeated timeouts, {left} s left"),
    };
    format!("{left}; `toolcrib reset {name}` ends the pause")
}
