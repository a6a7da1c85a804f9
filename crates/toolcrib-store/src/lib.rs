//! toolcrib's state in one SQLite database, on disk or in memory.
//!
//! Each server opens a [`Database`] once; several servers of one machine may share the file. [`Suspensions`], [`Runs`]
//! and [`Spills`] implement the core's stores on it. A server claims the rows that it works on under its own number.
//! When a server dies, its claims are free at once, and its late writes are refused. A run is stored as a journal with
//! one row for each step; replaying the rows gives the run's state.
//!
//! This is the only crate that knows SQLite.

mod backup;
mod database;
mod error;
mod folder;
mod report;
mod retention;
mod run_quota;
mod tables;

use toolcrib_core::clock::Timestamp;

#[cfg(feature = "http")]
pub use crate::tables::answers::Answers;
pub use crate::tables::exposed::ExposedTable;
#[cfg(feature = "mcp")]
pub use crate::tables::pins::{DatabasePins, PinnedTools};
pub use crate::tables::runs::Runs;
pub use crate::tables::spills::Spills;
pub use crate::tables::suspensions::Suspensions;
#[cfg(feature = "mcp")]
pub use crate::tables::tasks::Tasks;
pub use crate::tables::trust::{TrustTable, TrustedDeclaration};
pub use backup::{back_up, restore};
pub use database::Database;
pub use error::DatabaseError;
pub use folder::StateFolder;
pub use report::{StateReport, StoredKind};
pub use retention::{Kept, Retention, Swept};

/// A moment as it is stored. Moments beyond SQLite's integers become the largest one.
fn millis(time: Timestamp) -> i64 {
    i64::try_from(time.unix_millis()).unwrap_or(i64::MAX)
}
