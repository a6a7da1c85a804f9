//! SQL for agents, read-only: `data_analysis` queries CSV, TSV, JSON and JSONL files of the workspace.
//!
//! The queries run in a process of their own, in a jail: it gets the bytes of the named files through a pipe and cannot
//! open any other file of the workspace or the user. The process is the running program itself, so its `main` calls
//! [`worker_hook`] first. Without that call the tool is unavailable.
//!
//! Calls get their settings as a service, [`AnalysisSettings`], and their folder from
//! [`Projects`](toolcrib_builtins::Projects).
#![forbid(unsafe_code)]

mod analysis;
mod answer;
mod jailed;
mod protocol;
mod settings;
mod worker;

pub use settings::AnalysisSettings;
pub use worker::worker_hook;

/// The crate whose linked tools these are: the unit that declares them.
pub const CRATE: &str = env!("CARGO_PKG_NAME");
