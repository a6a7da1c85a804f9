//! Tests of the core through its public interface, by capability.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod arguments;
mod calls;
mod consent;
mod harness;
mod output;
mod registry;
mod waiting;
