//! What a host sees of the core, capability by capability.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod answers;
mod approval;
mod awaiting;
mod batches;
mod bound_consent;
mod cancelling;
mod closures;
mod constraints;
mod context;
mod doubles;
mod finding;
mod harness;
mod identity;
mod listening;
mod mending;
mod names;
mod nested_calls;
mod numbers;
mod refusals;
mod registry;
mod running;
mod spilling;
mod streaming;
mod suspending;
mod time;
mod toolsets;
mod waiting_within;
