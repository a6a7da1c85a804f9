//! `toolcrib mcp`: MCP on standard input and output, for clients that start their servers.

use toolcrib::mcp::{McpOptions, McpServer};

use super::Options;
use crate::Exit;
use crate::startup::{self, Started};

pub(super) fn run(options: &Options) -> anyhow::Result<Exit> {
    let started = startup::serve(options)?;
    let server = server(&started);
    super::block_on(server.serve_stdio(super::stop_requested()))??;
    Ok(Exit::Success)
}

/// The MCP server over a crib, with the crib's context.
pub(super) fn server(started: &Started) -> McpServer {
    let options = McpOptions::default()
        .version(env!("CARGO_PKG_VERSION"))
        .values(started.crib.context().clone());
    McpServer::new(started.crib.executor().clone(), options)
}
