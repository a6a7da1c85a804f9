//! toolcrib's state in one SQLite database, on disk or in memory.
//!
//! A [`Database`] is opened once by each server; several servers of one machine may share the file.
//! [`Suspensions`], [`Runs`] and [`Spills`] are the core's stores over it. What each server works on is claimed
//! under its number; what a server that died had claimed is free at once, and its late writes are
//! refused. A run is kept as its journal, a row for each step, and is what the rows add up to.
//!
//! This is the only crate that knows SQLite.

mod database;
mod error;
mod folder;
mod places;
mod tables;

use toolcrib_core::clock::Timestamp;

#[cfg(feature = "http")]
pub use crate::tables::answers::Answers;
#[cfg(feature = "mcp")]
pub use crate::tables::pins::{DatabasePins, PinnedTools};
pub use crate::tables::runs::Runs;
pub use crate::tables::spills::Spills;
pub use crate::tables::suspensions::Suspensions;
#[cfg(feature = "mcp")]
pub use crate::tables::tasks::Tasks;
pub use crate::tables::trust::{TrustTable, Trusted};
pub use database::Database;
pub use error::DatabaseError;
pub use folder::StateFolder;

/// A moment as it is stored; the end of all time for what is beyond SQLite's numbers.
fn millis(time: Timestamp) -> i64 {
    i64::try_from(time.unix_millis()).unwrap_or(i64::MAX)
}
