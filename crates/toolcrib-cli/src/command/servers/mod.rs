//! Commands that serve, and commands for running servers.

pub(crate) mod approvals;
pub(crate) mod background;
pub(crate) mod mcp;
pub(crate) mod running;
pub(crate) mod serve;
pub(crate) mod stop;
pub(crate) mod token;
