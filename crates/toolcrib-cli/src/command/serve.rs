//! `toolcrib serve`: MCP over HTTP.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;
use toolcrib::Toolcrib;
use toolcrib::http::{HttpServer, Token};
use toolcrib::manifests::Reloader;

use super::server_flags::ServerFlags;
use super::{JsonOutput, Options, ToolsetChoice, beside, mcp, stop};
use crate::Exit;
use crate::screen::{self, FAINT, STRONG, count};
use crate::startup;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib serve
  toolcrib serve --listen 127.0.0.1:9000 --token \"$(cat token)\"
  toolcrib serve --no-auth                             only on a loopback address

Without a token of yours a new one is made and printed at every start. Asked to stop (Ctrl-C,
SIGTERM), it takes no more calls and gives those that run 5 s to end.")]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    toolset: ToolsetChoice,
    #[command(flatten)]
    output: JsonOutput,
}

impl ServeOptions {
    pub(super) fn settings(&self) -> &ServerFlags {
        &self.server
    }
}

pub(super) fn run(options: &Options, own: &ServeOptions) -> anyhow::Result<Exit> {
    let started = startup::serve(options)?;
    let config = started.config.server.clone();
    let mcp = mcp::server(&started, &own.toolset)?;
    let tools = started.crib.executor().turn(own.toolset.turn_options(&started.crib)?);
    let tools = tools.definitions().len();

    super::block_on(async {
        started.crib.connect().await;
        let crib = started.crib.clone();
        let server = HttpServer::bind(config, mcp).await?.gauges(move || gauges(&crib));
        let _beside = beside::beside(&started)?;
        announce(tools, &server, own.output.json)?;
        let ended = server.serve(stop::drained(&started.crib)).await;
        started.crib.shutdown(stop::GRACE).await;
        ended?;
        if !own.output.json {
            screen::note("stopped");
        }
        Ok(Exit::Success)
    })?
}

/// What an operator watches: names are told by `toolcrib status` only.
fn gauges(crib: &Toolcrib) -> BTreeMap<&'static str, u64> {
    let snapshot = crib.executor().registry().snapshot();
    let files = crib.manifests().map(Reloader::files).unwrap_or_default();
    let of_state = |state: &str| files.iter().filter(|file| file.state.as_str() == state).count();
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    BTreeMap::from([
        ("generation", snapshot.generation()),
        ("tools", number(snapshot.entries().len())),
        ("files_live", number(of_state("live"))),
        ("files_stale", number(of_state("stale"))),
        ("files_broken", number(of_state("broken"))),
        ("names_after_restart", number(snapshot.would_differ().len())),
    ])
}

/// Says where the server is and how to get in; the token only if nobody can know it yet.
fn announce(tools: usize, server: &HttpServer, json: bool) -> anyhow::Result<()> {
    let token = server.token().filter(|_| server.token_is_new()).map(Token::reveal);
    let url = server.mcp_url();
    if json {
        return screen::out(match token {
            Some(token) => json!({"url": url, "token": token}).to_string(),
            None => json!({"url": url}).to_string(),
        });
    }
    screen::out(format!(
        "toolcrib {} serves {}\n{STRONG}MCP{STRONG:#}    {url}",
        env!("CARGO_PKG_VERSION"),
        count(tools, "tool")
    ))?;
    match token {
        Some(token) => screen::out(format!(
            "{STRONG}Token{STRONG:#}  {token}\n{FAINT}       new at every start; set TOOLCRIB_TOKEN to keep one{FAINT:#}"
        ))?,
        None if server.token().is_some() => {
            screen::out(format!("{STRONG}Token{STRONG:#}  the one you set"))?;
        }
        None => screen::out(format!("{STRONG}Token{STRONG:#}  none is asked for (--no-auth)"))?,
    }
    screen::note(format!("{FAINT}Ctrl-C stops it{FAINT:#}"));
    Ok(())
}
