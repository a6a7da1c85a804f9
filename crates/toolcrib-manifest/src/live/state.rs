//! The table of manifests: for each file, the last version that was read and what is wrong with it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::diagnostic::Severity;
use crate::directory::FileLoad;
use crate::live::observation::{ContentDigest, FileId, FileVersion, ObservedFile};

/// A manifest as a registry's unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ManifestUnit {
    /// The path for display: the directory as it was configured, and the file name.
    pub name: String,
    /// The position of the directory in the configuration.
    pub rank: u32,
}

impl fmt::Display for ManifestUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The place of a manifest: a file name in one of the directories.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileKey {
    pub(super) rank: u32,
    pub(super) name: OsString,
}

/// What is known about a place.
#[derive(Debug, Clone, Default)]
pub(super) struct FileRecord {
    /// The last version that was checked, valid or not; `None` while the file cannot be read.
    pub(super) version: Option<FileVersion>,
    /// The target of a dangling symbolic link.
    pub(super) lost_target: Option<PathBuf>,
    /// Whether it is a unit of the registry: it was loaded without errors once and has not been
    /// removed.
    pub(super) declares: bool,
    /// The number of tools in the last valid version.
    pub(super) tools: usize,
    /// What is currently wrong with the file.
    pub(super) problem: Option<FileProblem>,
}

impl FileRecord {
    pub(super) fn id(&self) -> Option<FileId> {
        self.version.as_ref()?.stamp.id()
    }

    pub(super) fn has(&self, digest: ContentDigest) -> bool {
        self.version.as_ref().is_some_and(|version| version.digest == digest)
    }

    /// The target, if the file is a symbolic link.
    pub(super) fn target(&self) -> Option<&PathBuf> {
        let target = self.version.as_ref().and_then(|version| version.target.as_ref());
        target.or(self.lost_target.as_ref())
    }
}

/// Why a file keeps the tools of its last valid version, or has none.
#[derive(Debug, Clone)]
pub(super) enum FileProblem {
    /// The file cannot be read or has errors.
    Load(Box<FileLoad>),
    /// The file is empty or missing.
    Absent(&'static str),
    /// The registry refused the changes.
    Refused(String),
}

impl FileProblem {
    /// The reason, in one line.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Absent(reason) => (*reason).to_owned(),
            Self::Refused(reason) => reason.clone(),
            Self::Load(load) => {
                let errors = || {
                    let all = load.loaded.diagnostics.iter();
                    all.filter(|found| found.severity == Severity::Error)
                };
                let Some(first) = errors().next() else { return "it has errors".to_owned() };
                let (line, column) = first.position(&load.text);
                let more = match errors().count() {
                    0 | 1 => String::new(),
                    count => format!(" (and {} more)", count - 1),
                };
                if load.text.is_empty() {
                    return format!("{}{more}", first.message);
                }
                format!("line {line}, column {column}: {}{more}", first.message)
            }
        }
    }

    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// All places, with an index by file identity.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    known: BTreeMap<FileKey, FileRecord>,
    by_id: HashMap<FileId, Vec<FileKey>>,
    /// How many of them are symbolic links.
    links: usize,
}

impl FileTable {
    pub(super) fn get(&self, key: &FileKey) -> Option<&FileRecord> {
        self.known.get(key)
    }

    pub(super) fn contains(&self, key: &FileKey) -> bool {
        self.known.contains_key(key)
    }

    /// How many places are symbolic links.
    pub(super) fn links(&self) -> usize {
        self.links
    }

    /// Whether the file at this place could not be read.
    pub(super) fn is_unread(&self, key: &FileKey) -> bool {
        self.get(key).is_some_and(|known| known.version.is_none())
    }

    /// Whether any file could not be read.
    pub(super) fn has_unread(&self) -> bool {
        self.known.values().any(|known| known.version.is_none())
    }

    /// The places that have this file; hard links count.
    pub(super) fn with_id(&self, id: FileId) -> &[FileKey] {
        self.by_id.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The other places at which this file was last observed.
    pub(super) fn previous_places(
        &self,
        file: &ObservedFile,
        here: &FileKey,
    ) -> impl Iterator<Item = &FileKey> {
        let had = file.id().map(|id| self.with_id(id)).unwrap_or_default();
        had.iter().filter(move |key| {
            let is_it =
                |version: &FileVersion| version.is_settled || version.digest == file.version.digest;
            *key != here && self.get(key).and_then(|own| own.version.as_ref()).is_some_and(is_it)
        })
    }

    pub(super) fn insert(&mut self, key: FileKey, known: FileRecord) {
        self.remove(&key);
        self.links += usize::from(known.target().is_some());
        if let Some(id) = known.id() {
            self.by_id.entry(id).or_default().push(key.clone());
        }
        self.known.insert(key, known);
    }

    pub(super) fn remove(&mut self, key: &FileKey) -> Option<FileRecord> {
        let known = self.known.remove(key)?;
        self.links -= usize::from(known.target().is_some());
        if let Some(id) = known.id()
            && let Some(keys) = self.by_id.get_mut(&id)
        {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.by_id.remove(&id);
            }
        }
        Some(known)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&FileKey, &FileRecord)> {
        self.known.iter()
    }

    /// The places in one directory.
    pub(super) fn of_rank(&self, rank: u32) -> impl Iterator<Item = (&FileKey, &FileRecord)> {
        let first = FileKey { rank, name: OsString::new() };
        self.known.range(first..).take_while(move |(key, _)| key.rank == rank)
    }
}
