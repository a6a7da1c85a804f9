//! The stations of the call pipeline, two by two: every pair of options meets in a row, and each row
//! is run against a plain model of what must hold.
//!
//! A row is a value for each dimension in [`factors`]; [`rows`] chooses the rows. [`scenario`] runs a
//! row on a real executor and keeps what was seen, [`model`] says what each call must come to, and
//! [`checks`] compares the two. A failing row prints its name, and runs alone with
//!
//! ```sh
//! TOOLCRIB_PAIRWISE='NAME' cargo test -p toolcrib-core --test pairwise
//! ```
#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of it is a test")]

mod bodies;
mod calls;
mod checks;
mod constraints;
mod factors;
mod model;
mod resume;
mod rows;
mod scenario;
mod setup;
mod witness;
