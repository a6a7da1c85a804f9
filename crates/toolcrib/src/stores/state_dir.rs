//! One directory for all that outlives the program.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "http")]
use super::FileAnswers;
#[cfg(feature = "mcp")]
use super::FilePins;
use super::private_dir::private_dir;
use super::{FileRuns, FileSpill, FileSuspensions};

/// A directory of its owner's alone, with a place for each store. Several processes may share it.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib::Toolcrib;
/// use toolcrib::stores::StateDir;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let home = tempfile::tempdir()?;
/// # let dir = home.path().join("state");
/// let state = StateDir::open(&dir)?;
/// let crib = Toolcrib::builder()
///     .spill(Arc::new(state.spill()?))
///     .suspensions(Arc::new(state.suspensions()?))
///     .runs(Arc::new(state.runs()?))
///     .build()?;
/// # let _ = crib;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Opens it, made if it is not there. Fails if others may look into it.
    pub fn open(dir: impl Into<PathBuf>) -> io::Result<Self> {
        let dir = dir.into();
        private_dir(&dir)?;
        Ok(Self(dir))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Long outputs, in `spill`, within [`FileSpill::limits`].
    pub fn spill(&self) -> io::Result<FileSpill> {
        FileSpill::open(self.0.join("spill"), FileSpill::limits())
    }

    /// Suspended calls, in `suspensions`.
    pub fn suspensions(&self) -> io::Result<FileSuspensions> {
        FileSuspensions::open(self.0.join("suspensions"))
    }

    /// What imported definitions were when they were first seen, in `pins`.
    #[cfg(feature = "mcp")]
    pub fn pins(&self) -> io::Result<FilePins> {
        FilePins::open(self.0.join("pins"))
    }

    /// Answers to requests with an `Idempotency-Key`, in `answers`.
    #[cfg(feature = "http")]
    pub fn answers(&self) -> io::Result<FileAnswers> {
        FileAnswers::open(self.0.join("answers"))
    }

    /// Runs, in `runs`.
    pub fn runs(&self) -> io::Result<FileRuns> {
        FileRuns::open(self.0.join("runs"))
    }
}
