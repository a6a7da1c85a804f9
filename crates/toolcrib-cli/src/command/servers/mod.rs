//! Commands that serve, and commands for running servers.

pub(crate) mod approvals;
pub(crate) mod ask_servers;
pub(crate) mod health;
pub(crate) mod mcp;
pub(crate) mod release;
pub(crate) mod reload;
mod report;
pub(crate) mod reset;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod token;
