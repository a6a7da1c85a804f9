//! Record and replay of tool calls for tests, and what toolcrib's own tests, benches and fuzz targets
//! share.
//!
//! - [`recording`]: what tools really answered, kept as text beside a test and played back without
//!   running anything.
//! - [`search_tool`]: one ordinary tool of a fixed size, and registries of any number of copies,
//!   so that every measurement speaks of the same work.
//! - [`covering`]: covering arrays, for tests of every pair of circumstances.
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
pub mod recording;
pub mod search_tool;
