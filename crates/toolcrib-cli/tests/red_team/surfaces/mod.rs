//! The program under attack, and its connections to clients.

pub(crate) mod http;
pub(crate) mod listeners;
pub(crate) mod mcp;
pub(crate) mod program;
