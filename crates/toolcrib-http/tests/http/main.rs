//! The listener over real TCP on loopback, tested only through sockets.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod api;
mod auth;
mod fixture;
mod raw_client;
mod serving;
