//! Declared commands as tools: what they start and what they answer.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod availability;
mod confinement;
mod declare;
mod entries;
mod expansion;
#[cfg(feature = "http")]
mod http;
mod output;
mod scripts;
mod secrets;
mod stop;
mod worker;
mod worker_lines;
