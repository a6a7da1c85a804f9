//! Routes of the API: calls, runs, events, and what they promise.

mod calls;
mod contract;
mod events;
mod idempotency;
mod masking;
mod openapi;
mod operations;
mod questions;
pub(crate) mod runs;
mod streams;
mod tools;
