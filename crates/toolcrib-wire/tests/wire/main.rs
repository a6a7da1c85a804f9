//! What the crate promises, from outside.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod catalogue;
mod golden;
mod properties;
mod results;
mod rules;
mod sample;
mod semantics;
