//! The results of a scan of manifests, for logs and listings.

use std::path::PathBuf;
use std::time::Instant;

use crate::directory::FileLoad;
use crate::live::state::{FileProblem, FileRecord, ManifestUnit};

/// What a scan found, and whether the changes were applied.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ScanReport {
    /// The changes, one for each file.
    pub events: Vec<FileEvent>,
    /// Why the changes were refused; `None` if they were applied.
    pub refused: Option<String>,
    /// When to scan again, because a missing file may come back.
    pub(super) next: Option<Instant>,
}

/// A change of a file. Exhaustive on purpose: callers have to handle every kind.
#[derive(Debug)]
pub enum FileEvent {
    /// Its tools were loaded.
    Loaded {
        /// The file.
        unit: ManifestUnit,
        /// Its previous name, if it was renamed.
        from: Option<ManifestUnit>,
        /// How many tools it declares.
        tools: usize,
        /// Whether the file could not be used before.
        mended: bool,
    },
    /// The file was removed, and its tools with it.
    Removed {
        /// The file.
        unit: ManifestUnit,
    },
    /// The file currently cannot be used: the tools of its last valid version stay.
    Stale {
        /// The file.
        unit: ManifestUnit,
        /// The reason, in one line.
        reason: String,
        /// How many tools it keeps.
        tools: usize,
        /// The file with its errors, if it could be read.
        load: Option<Box<FileLoad>>,
    },
    /// The file cannot be used and has never been loaded.
    Broken {
        /// The file.
        unit: ManifestUnit,
        /// The reason, in one line.
        reason: String,
        /// The file with its errors, if it could be read.
        load: Option<Box<FileLoad>>,
    },
}

impl FileEvent {
    /// The event for a file with a problem; `keeps` is the number of tools it keeps, `None` if it
    /// was never loaded.
    pub(super) fn of_problem(
        unit: ManifestUnit,
        problem: &FileProblem,
        keeps: Option<usize>,
    ) -> Self {
        let reason = problem.reason();
        let load = match problem {
            FileProblem::Load(load) => Some(load.clone()),
            FileProblem::Absent(_) | FileProblem::Refused(_) => None,
        };
        match keeps {
            Some(tools) => Self::Stale { unit, reason, tools, load },
            None => Self::Broken { unit, reason, load },
        }
    }
}

/// The status of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStatus {
    /// The file.
    pub path: PathBuf,
    /// How many of its tools are live.
    pub tools: usize,
    /// Whether its tools match its current content.
    pub state: FileState,
}

/// Whether the tools of a file match its current content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileState {
    /// They match.
    Live,
    /// The file currently cannot be used; the tools are those of its last valid version.
    Stale {
        /// The reason, in one line.
        reason: String,
    },
    /// The file cannot be used and has never been loaded.
    Broken {
        /// The reason, in one line.
        reason: String,
    },
}

impl FileState {
    /// Its stable name: `live`, `stale` or `broken`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale { .. } => "stale",
            Self::Broken { .. } => "broken",
        }
    }

    /// Why the file cannot be used; `None` if it can.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Live => None,
            Self::Stale { reason } | Self::Broken { reason } => Some(reason),
        }
    }
}

impl FileStatus {
    pub(super) fn of(path: PathBuf, known: &FileRecord) -> Self {
        let reason = known.problem.as_ref().map(FileProblem::reason);
        let state = match reason {
            None => FileState::Live,
            Some(reason) if known.declares => FileState::Stale { reason },
            Some(reason) => FileState::Broken { reason },
        };
        Self { path, tools: known.tools, state }
    }
}
