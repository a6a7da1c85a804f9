//! Stores in files: what outlives the process (outputs, suspended calls, runs, answers under an `Idempotency-Key`, pins of imported definitions), and the audit log.
//!
//! The core keeps nothing on disk; these are what a host gives it to do so. Everything is written
//! for its owner alone: directories have mode 0700, files 0600.

#[cfg(feature = "http")]
mod answers;
mod audit;
#[cfg(feature = "mcp")]
mod pins;
mod private_dir;
mod records;
mod runs;
mod spill;
mod state_dir;
mod suspensions;

#[cfg(feature = "http")]
pub use answers::FileAnswers;
pub use audit::{FileAudit, Rotation};
#[cfg(feature = "mcp")]
pub use pins::FilePins;
#[cfg(feature = "manifests")]
pub(crate) use private_dir::give_to_owner;
#[cfg(feature = "http")]
pub(crate) use private_dir::private_dir;
pub use runs::FileRuns;
pub use spill::FileSpill;
pub use state_dir::{StateDir, foreign_entry};
pub use suspensions::FileSuspensions;
