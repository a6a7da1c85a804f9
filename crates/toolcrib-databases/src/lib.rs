//! SQL for agents, read-only: `data_analysis` queries CSV, TSV, JSON and JSONL files of the workspace, `db_query`
//! configured databases of SQLite and PostgreSQL, which `describe_database` shows.
//!
//! Queries of files and of SQLite databases run in a process of their own, in a jail: it gets the bytes of the named files through a pipe, can
//! read the file of a configured database, and cannot open any other file of the workspace or the user. The process is the running program itself, so its `main` calls
//! [`worker_hook`] first. Without that call these tools are unavailable.
//!
//! Calls get their settings as services, [`AnalysisSettings`], [`Databases`] and [`SecretLookup`], and their folder from
//! [`Projects`](toolcrib_builtins::Projects).
#![forbid(unsafe_code)]

mod analysis;
mod answer;
mod database;
mod jailed;
mod protocol;
mod settings;
mod worker;

pub use database::{Database, Databases, SecretLookup, UrlSource};
pub use settings::AnalysisSettings;
pub use worker::worker_hook;

/// The crate whose linked tools these are: the unit that declares them.
pub const CRATE: &str = env!("CARGO_PKG_NAME");
