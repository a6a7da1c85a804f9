//! The listener over real TCP on loopback, seen with nothing but sockets.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod checks;
mod fixture;
mod lifetime;
mod mcp;
mod raw_client;
