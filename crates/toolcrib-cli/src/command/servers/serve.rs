//! `toolcrib serve`: serves the HTTP API, and MCP over HTTP.

use clap::Args;
use serde_json::json;
use toolcrib::http::{HttpServer, Token};

use super::mcp;
use crate::Exit;
use crate::options::{JsonOutput, Options, ServerFlags, ToolsetChoice};
use crate::runtime;
use crate::screen::{self, FAINT, STRONG, count};
use crate::serving::background::{BackgroundTasks, owner_socket};
use crate::serving::service_manager::ServiceManager;
use crate::serving::stop::{self, StopRequests};
use crate::startup;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib serve
  toolcrib serve --listen 127.0.0.1:9000 --token \"$(cat token)\"
  toolcrib serve --listen unix:$XDG_RUNTIME_DIR/toolcrib.sock      only for programs of this user
  toolcrib serve --no-auth                             only on a loopback address or a socket

If you set no token, a new one is created and printed at every start; `toolcrib token` creates tokens for
clients. On Ctrl-C or SIGTERM it accepts no new calls and waits up to 5 s for running ones. A service manager
that sets NOTIFY_SOCKET, such as systemd with Type=notify, learns when it is ready, reloads and stops.")]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: JsonOutput,
}

impl ServeOptions {
    pub(in crate::command) fn settings(&self) -> &ServerFlags {
        &self.server
    }
}

pub(in crate::command) fn run(options: &Options, own: &ServeOptions) -> anyhow::Result<Exit> {
    let started = startup::serve(options, true)?;
    let config = started.config.server.clone();
    let toolset = ToolsetChoice::from(config.toolset.clone());
    let turn = toolset.turn_options(&started.crib)?;
    // The rights of each client apply later; this turn has no right to approve.
    let mcp = mcp::server(&started, turn.clone());
    let tools = started.crib.executor().turn(turn);
    let tools = tools.definitions().len();
    #[cfg(feature = "otlp")]
    let _told = crate::collector::start_export(&started.crib)?;

    let manager = ServiceManager::from_environment();
    runtime::block_on(async {
        started.crib.connect().await;
        let mut server = HttpServer::bind(config, started.crib.clone(), mcp).await?;
        if let Some(settings) = server.settings() {
            started.crib.follow_server(settings);
        }
        let mut _announcement = None;
        if let Some((socket, announcement)) = owner_socket(&started).await {
            server = server.with_owner_socket(socket)?;
            _announcement = Some(announcement);
        }
        // Before anybody learns that the server is ready, and stops it.
        let requests = StopRequests::begin();
        let _beside = BackgroundTasks::begin(&started, &manager)?;
        warn_of_network(&server);
        announce(tools, &server, own.output.json)?;
        manager.ready(&format!("serves {} on {}", count(tools, "tool"), server.url()));
        let ended = server.serve(stop::drained(requests, &started.crib, &manager)).await;
        started.crib.shutdown(stop::GRACE).await;
        ended?;
        if !own.output.json {
            screen::note("stopped");
        }
        Ok(Exit::Success)
    })?
}

/// Warns about a listener that other machines can reach.
fn warn_of_network(server: &HttpServer) {
    let Some(address) = server.local_addr().filter(|address| !address.ip().is_loopback()) else {
        return;
    };
    tracing::warn!(
        "the server is bound to {address}, which other machines can reach, and has no TLS: tokens, calls \
         and results cross the network in clear text. Put a TLS proxy in front of it, or listen on \
         127.0.0.1; clients reach it under the addresses of this machine, and under the host names that \
         `server.allowed_hosts` lists"
    );
}

/// Prints the server's address and token; the token only if it was just generated.
fn announce(tools: usize, server: &HttpServer, json: bool) -> anyhow::Result<()> {
    let token = server.token().filter(|_| server.token_is_new()).map(Token::reveal);
    let (url, mcp) = (server.url(), server.mcp_url());
    if json {
        let mut record = json!({"url": mcp, "api": url});
        if let Some(address) = server.local_addr() {
            record["bound"] = address.to_string().into();
        }
        if let Some(socket) = server.socket() {
            record["socket"] = socket.to_string_lossy().into();
        }
        if let Some(token) = token {
            record["token"] = token.into();
        }
        return screen::out(record.to_string());
    }
    screen::out(format!(
        "toolcrib {} serves {}\n{STRONG}MCP{STRONG:#}    {mcp}\n{STRONG}API{STRONG:#}    {url}/v1, described in {url}/openapi.json",
        env!("CARGO_PKG_VERSION"),
        count(tools, "tool")
    ))?;
    if let Some(address) = server.local_addr().filter(|address| !address.ip().is_loopback()) {
        screen::out(format!("{STRONG}Bound{STRONG:#}  {address}"))?;
    }
    if let Some(socket) = server.socket() {
        screen::out(format!(
            "{STRONG}Socket{STRONG:#} {0}, for this user alone\n{FAINT}       curl --unix-socket {0} {url}/health{FAINT:#}",
            socket.display()
        ))?;
    }
    match token {
        Some(token) => screen::out(format!(
            "{STRONG}Token{STRONG:#}  {token}\n{FAINT}       new at every start; set TOOLCRIB_TOKEN to keep one{FAINT:#}"
        ))?,
        None if server.token().is_some() => {
            screen::out(format!("{STRONG}Token{STRONG:#}  the one you set"))?;
        }
        None if server.asks_for_tokens() => {
            screen::out(format!("{STRONG}Token{STRONG:#}  those of `server.tokens`"))?;
        }
        None => screen::out(format!("{STRONG}Token{STRONG:#}  none required (--no-auth)"))?,
    }
    screen::note(format!("{FAINT}press Ctrl-C to stop{FAINT:#}"));
    Ok(())
}
