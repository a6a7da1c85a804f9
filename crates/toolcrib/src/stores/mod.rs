//! Persistent state: a state folder with one database, and the audit log.
//!
//! The core keeps nothing on disk; these are what a host gives it to do so. Everything is written
//! for its owner alone: directories have mode 0700, files 0600.

mod audit;
#[cfg(feature = "store")]
mod private_dir;
#[cfg(feature = "store")]
mod state_dir;

pub(crate) use audit::AuditSinks;
pub use audit::{FileAudit, Rotation, SyslogAddress, SyslogAudit};
#[cfg(feature = "http")]
pub(crate) use private_dir::private_dir;
#[cfg(feature = "store")]
pub use state_dir::{StateDir, foreign_entry};
#[cfg(feature = "http")]
pub use toolcrib_store::Answers;
#[cfg(all(feature = "store", feature = "mcp"))]
pub use toolcrib_store::Tasks;
#[cfg(feature = "store")]
pub use toolcrib_store::{
    Database, DatabaseError, Kept, Retention, Runs, Spills, StateReport, StoredKind, Suspensions,
    back_up, restore,
};
#[cfg(all(feature = "store", feature = "mcp"))]
pub use toolcrib_store::{DatabasePins, PinnedTools};
