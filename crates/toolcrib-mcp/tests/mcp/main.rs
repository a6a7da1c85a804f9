//! The promises to MCP clients, in both protocol revisions and over both transports.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod asking;
mod cancellation;
mod client;
mod fixture;
mod handshake_revision;
mod http_service;
mod list_changes;
mod offering;
mod outputs;
mod paging;
mod robustness;
mod sessions;
mod stateless_revision;
mod tasks;
mod upstream;
mod wire;
