//! Record and replay of tool calls for tests, and code shared by toolcrib's own tests, benches and fuzz targets.
//!
//! - [`recording`]: records what tools really answered as text beside a test, and plays it back without running
//!   anything.
//! - [`search_tool`]: one ordinary tool of a fixed size, and registries of any number of copies, so that all
//!   measurements are comparable.
//! - [`covering`]: covering arrays, for tests of every pair of conditions.
//! - [`model_server`]: a scripted model behind HTTP on the loopback interface, with faults, for tests of agents.
//! - [`served`]: checkers of what a server of OpenAI's APIs sends, written from the specifications.
//! - [`fuzzing`]: the bodies of the fuzz targets as plain functions, so that a test can run the
//!   committed seeds without a fuzzer.
//!
//! Use this crate as a dev-dependency. Only [`recording`] is meant for other projects.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "everything here is part of a test: failing loudly is its job"
)]

pub mod covering;
pub mod fuzzing;
pub mod model_server;
pub mod recording;
pub mod search_tool;
pub mod served;
