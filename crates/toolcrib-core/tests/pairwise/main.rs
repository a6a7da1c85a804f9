//! Pairwise test of the stages of the call pipeline: every pair of options occurs in a row, and
//! each row is compared with a simple model.
//!
//! A row is a value for each dimension in [`factors`]; [`rows`] chooses the rows. [`scenario`] runs a row on a real
//! executor and records what happens, [`model`] predicts the outcome of each call, and [`checks`] compares the two. A
//! failing row prints its name, and can be run alone with
//!
//! ```sh
//! TOOLCRIB_PAIRWISE='NAME' cargo test -p toolcrib-core --test pairwise
//! ```
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of it is a test")]

mod bodies;
mod calls;
mod checks;
mod consent_checks;
mod constraints;
mod factors;
mod model;
mod process_store;
mod resume;
mod rows;
mod scenario;
mod setup;
mod witness;
