//! Connections: their lifetime, sockets, limits, and MCP over HTTP.

mod lifetime;
mod mcp;
mod mcp_checks;
mod owner;
mod robustness;
mod unix_sockets;
