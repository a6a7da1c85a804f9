//! Stores in files: outputs that outlive the process, and the audit log.
//!
//! The core keeps nothing on disk; these are what a host gives it to do so. Everything is written
//! for its owner alone: directories have mode 0700, files 0600.

mod audit;
mod spill;

pub use audit::FileAudit;
pub use spill::FileSpill;
