//! What a look at manifests has found, for logs and listings.

use std::path::PathBuf;
use std::time::Instant;

use crate::directory::FileLoad;
use crate::live::state::{Known, ManifestUnit, Trouble};

/// What a look has found, and what became of it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LookReport {
    /// What changed, a file each.
    pub events: Vec<FileEvent>,
    /// Why nothing was applied, if it was not.
    pub refused: Option<String>,
    /// When to look again, because something may be about to come back.
    pub(super) next: Option<Instant>,
}

/// What became of a file. Exhaustive on purpose: nothing is to be passed over.
#[derive(Debug)]
pub enum FileEvent {
    /// Its tools are live.
    Loaded {
        /// The file.
        unit: ManifestUnit,
        /// What it was called before, if it was renamed.
        from: Option<ManifestUnit>,
        /// How many tools it declares.
        tools: usize,
    },
    /// It is gone, and its tools with it.
    Removed {
        /// The file.
        unit: ManifestUnit,
    },
    /// It cannot be used as it stands: its last good tools stay.
    Stale {
        /// The file.
        unit: ManifestUnit,
        /// Why, in one line.
        reason: String,
        /// How many tools stay.
        tools: usize,
        /// The file with its errors, if it could be read.
        load: Option<Box<FileLoad>>,
    },
    /// It cannot be used, and never could.
    Broken {
        /// The file.
        unit: ManifestUnit,
        /// Why, in one line.
        reason: String,
        /// The file with its errors, if it could be read.
        load: Option<Box<FileLoad>>,
    },
}

impl FileEvent {
    /// A file in trouble, which keeps so many tools, if it ever had any.
    pub(super) fn of_trouble(unit: ManifestUnit, trouble: &Trouble, keeps: Option<usize>) -> Self {
        let reason = trouble.reason();
        let load = match trouble {
            Trouble::Load(load) => Some(load.clone()),
            Trouble::Absent(_) | Trouble::Refused(_) => None,
        };
        match keeps {
            Some(tools) => Self::Stale { unit, reason, tools, load },
            None => Self::Broken { unit, reason, load },
        }
    }
}

/// A manifest as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStatus {
    /// The file.
    pub path: PathBuf,
    /// How many tools of it are live.
    pub tools: usize,
    /// Whether they are what the file says.
    pub state: FileState,
}

/// Whether a file's tools are what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileState {
    /// They are.
    Live,
    /// The file cannot be used as it stands; these are its last good tools.
    Stale {
        /// Why, in one line.
        reason: String,
    },
    /// The file cannot be used, and never could.
    Broken {
        /// Why, in one line.
        reason: String,
    },
}

impl FileState {
    /// The stable word: `live`, `stale` or `broken`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale { .. } => "stale",
            Self::Broken { .. } => "broken",
        }
    }

    /// Why the file cannot be used, if it cannot.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Live => None,
            Self::Stale { reason } | Self::Broken { reason } => Some(reason),
        }
    }
}

impl FileStatus {
    pub(super) fn of(path: PathBuf, known: &Known) -> Self {
        let reason = known.trouble.as_ref().map(Trouble::reason);
        let state = match reason {
            None => FileState::Live,
            Some(reason) if known.declares => FileState::Stale { reason },
            Some(reason) => FileState::Broken { reason },
        };
        Self { path, tools: known.tools, state }
    }
}
