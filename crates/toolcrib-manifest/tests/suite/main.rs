//! What loading promises, seen from outside.
#![expect(clippy::expect_used, reason = "a test that cannot be set up fails")]

mod complete;
mod config;
mod constraints;
mod diagnostics;
mod directories;
mod fixes;
mod gallery;
mod http;
mod layers;
mod loading;
mod lock;
mod memory;
mod mistakes;
mod policies;
mod programs;
mod robustness;
mod schemas;
mod upstreams;
