//! What is measured, apart from how: every piece of work as a [`Contender`], ours beside the peers
//! and the limit, so that criterion and the table of ratios run the same code.
//!
//! Large registries are visited in a fixed shuffled order: a loop over one hot tool
//! would measure the processor's caches and nothing else.

#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a bench that cannot set up its work has nothing to measure"
)]

pub mod batch;
pub mod cached;
pub mod call;
pub mod concurrency;
pub mod edit;
pub mod lookup;
mod order;
mod peer;
pub mod process;
pub mod registration;
#[cfg(feature = "rig")]
mod rig;
#[cfg(feature = "rig")]
pub mod rig_agent;
mod settle;

pub use peer::router;
pub use settle::settle;
pub use toolcrib_rounds::{Contender, Rounds, Target, instructions_of_run, interleaved, target};

/// Sizes of the registries, in tools.
pub const SIZES: [usize; 4] = [10, 1_000, 10_000, 100_000];
