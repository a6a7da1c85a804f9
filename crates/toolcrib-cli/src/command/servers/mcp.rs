//! `toolcrib mcp`: serves MCP on standard input and output, for clients that start their servers.

use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use toolcrib::TurnOptions;
use toolcrib::mcp::McpServer;

use crate::Exit;
use crate::options::{Options, ToolsetChoice};
use crate::runtime;
use crate::screen;
use crate::serving::background::BackgroundTasks;
use crate::serving::service_manager::ServiceManager;
use crate::serving::stop::{self, StopRequests};
use crate::startup::{self, Started};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolcrib mcp
  toolcrib mcp --toolset reader      only the tools of one toolset of the config

On Ctrl-C or SIGTERM it accepts no new calls and waits up to 5 s for running ones.")]
pub(crate) struct StdioOptions {
    #[command(flatten)]
    toolset: ToolsetChoice,
}

pub(in crate::command) fn run(options: &Options, own: &StdioOptions) -> anyhow::Result<Exit> {
    let started = startup::serve(options, false)?;
    if std::io::stdin().is_terminal() {
        screen::note(
            "serves MCP on standard input and output, which a client starts: `toolcrib serve` serves it over HTTP; \
             Ctrl-C ends it",
        );
    }
    let may_approve = started.config.mcp.stdio.rights.may_approve();
    let turn = own.toolset.turn_options(&started.crib)?;
    let turn = turn.may_approve(may_approve).client("mcp over stdio");
    let server = server(&started, turn);
    #[cfg(feature = "otlp")]
    let _told = crate::collector::start_export(&started.crib)?;
    // The service manager of the client that started this, if there is one, waits for the client.
    let manager = ServiceManager::default();
    runtime::block_on(async {
        // Before anybody learns that the server is ready, and stops it.
        let requests = StopRequests::begin();
        let mut background = BackgroundTasks::begin(&started, &manager)?;
        background
            .serve_owner(&started, self::server(&started, started.crib.turn_options()))
            .await?;
        started.crib.connect().await;
        let ended =
            Box::pin(server.serve_stdio(stop::drained(requests, &started.crib, &manager))).await;
        // The client may have closed its end without a stop request.
        started.crib.shutdown(stop::GRACE).await;
        background.end().await;
        ended?;
        Ok(Exit::Success)
    })?
}

/// Creates the MCP server of a crib; the turns of its requests are opened with `turn`.
pub(in crate::command) fn server(started: &Started, turn: TurnOptions) -> McpServer {
    let options = started
        .config
        .mcp
        .options()
        .version(env!("CARGO_PKG_VERSION"))
        .turn(turn)
        .catalog(started.crib.catalog().clone())
        .linked(started.crib.upstreams().linked());
    let options = match started.crib.task_store() {
        Some(store) => options.task_store(Arc::clone(store)),
        None => options,
    };
    McpServer::new(started.crib.executor().clone(), options)
}
