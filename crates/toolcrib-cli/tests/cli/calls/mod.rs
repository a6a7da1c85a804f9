//! Calls from the command line: arguments, approval, output, and the environment of programs.

mod approval;
mod command;
mod constraints;
mod cuts;
mod data;
mod dry_runs;
mod first_line;
pub(crate) mod live_output;
mod meta_tools;
mod numbers;
mod processes;
mod programs;
mod questions;
pub(crate) mod requests;
mod toolsets;
mod worker_lines;
