//! The listener over real TCP on loopback, seen with nothing but sockets.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod calls;
mod checks;
mod clients;
mod contract;
mod events;
mod fixture;
mod idempotency;
mod lifetime;
mod mcp;
mod mcp_checks;
mod mcp_rights;
mod openapi;
mod operations;
mod owner;
mod raw_client;
mod revocation;
mod robustness;
mod runs;
mod streams;
mod tools;
mod unix_sockets;
