//! What several of toolcrib's test suites, benches and fuzz targets need alike.
//!
//! - [`search_tool`]: one ordinary tool of a fixed size, and registries of any number of copies,
//!   so that every measurement speaks of the same work.
//! - [`covering`]: covering arrays, for tests of every pair of circumstances.
//! - [`fuzzing`]: the bodies of the fuzz targets as plain functions, so that a test can run the
//!   committed seeds without a fuzzer.
//!
//! Only tests, benches and fuzz targets use this crate; it is not published.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "everything here is part of a test: failing loudly is its job"
)]

pub mod covering;
pub mod fuzzing;
pub mod search_tool;
