//! The promises of the crate, tested through its public interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod catalogue;
mod golden;
mod interleaving;
mod model;
mod properties;
mod responses;
mod results;
mod rules;
mod sample;
mod semantics;
mod served;
