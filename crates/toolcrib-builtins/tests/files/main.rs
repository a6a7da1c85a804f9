//! The promises of the file tools, tested through the executor.
#![cfg(feature = "files")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changing;
mod definitions;
mod editing;
mod harness;
mod listing;
mod projects;
mod reading;
mod searching;
mod sharing;
