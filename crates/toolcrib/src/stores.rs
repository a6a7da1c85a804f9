//! What outlives the program: a state folder with one database, and the files of answers under an `Idempotency-Key` and
//! pins of imported definitions; and the audit log.
//!
//! The core keeps nothing on disk; these are what a host gives it to do so. Everything is written
//! for its owner alone: directories have mode 0700, files 0600.

mod audit;
#[cfg(feature = "mcp")]
mod pins;
#[cfg(any(feature = "store", feature = "mcp"))]
mod private_dir;
#[cfg(feature = "store")]
mod state_dir;

pub use audit::{FileAudit, Rotation};
#[cfg(feature = "mcp")]
pub use pins::FilePins;
#[cfg(feature = "manifests")]
pub(crate) use private_dir::give_to_owner;
#[cfg(feature = "http")]
pub(crate) use private_dir::private_dir;
#[cfg(feature = "store")]
pub use state_dir::{StateDir, foreign_entry};
#[cfg(feature = "store")]
#[cfg(feature = "http")]
pub use toolcrib_store::Answers;
pub use toolcrib_store::{Database, DatabaseError, Runs, Spills, Suspensions};
