//! The promises of the file tools, kept through the executor, as a model meets them.
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
