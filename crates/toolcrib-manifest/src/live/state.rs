//! What is known of every file: what it last said, and under which name.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use crate::diagnostic::Severity;
use crate::directory::FileLoad;
use crate::live::observation::{Digest, FileId, FileVersion, SeenFile};

/// A manifest as a registry's unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ManifestUnit {
    /// The file as people know it: the directory as it was configured, and the name.
    pub name: String,
    /// The position of the directory in the configuration.
    pub rank: u32,
}

impl fmt::Display for ManifestUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A place at which a manifest may be: a name in one of the directories.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) rank: u32,
    pub(super) name: OsString,
}

/// What is known of a place.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    /// The last text that was checked, good or not; `None` as long as the file cannot be read.
    pub(super) version: Option<FileVersion>,
    /// Where a symbolic link led or leads to that leads to nothing now.
    pub(super) lost_target: Option<PathBuf>,
    /// Whether it is a unit of the registry: it had no errors once, and has not been removed.
    pub(super) declares: bool,
    /// Tools of the last text without errors.
    pub(super) tools: usize,
    /// What is wrong with the file as it stands.
    pub(super) trouble: Option<Trouble>,
}

impl Known {
    pub(super) fn id(&self) -> Option<FileId> {
        self.version.as_ref()?.stamp.id()
    }

    pub(super) fn has(&self, digest: Digest) -> bool {
        self.version.as_ref().is_some_and(|version| version.digest == digest)
    }

    /// Where the file really is, if a symbolic link leads to it.
    pub(super) fn target(&self) -> Option<&PathBuf> {
        let target = self.version.as_ref().and_then(|version| version.target.as_ref());
        target.or(self.lost_target.as_ref())
    }
}

/// Why a file's last good tools are kept, or why it has none.
#[derive(Debug, Clone)]
pub(super) enum Trouble {
    /// It cannot be read, or it has errors.
    Load(Box<FileLoad>),
    /// There is nothing in it, or nothing at its place.
    Absent(&'static str),
    /// The registry would not take it.
    Refused(String),
}

impl Trouble {
    /// In one line.
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

/// All places, and which of them have a file.
#[derive(Debug, Default)]
pub(super) struct Files {
    known: BTreeMap<Key, Known>,
    by_id: HashMap<FileId, Vec<Key>>,
    /// How many are reached through symbolic links.
    links: usize,
}

impl Files {
    pub(super) fn get(&self, key: &Key) -> Option<&Known> {
        self.known.get(key)
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.known.contains_key(key)
    }

    /// How many places are symbolic links.
    pub(super) fn links(&self) -> usize {
        self.links
    }

    /// Whether there is something that could not be read.
    pub(super) fn is_unread(&self, key: &Key) -> bool {
        self.get(key).is_some_and(|known| known.version.is_none())
    }

    /// Whether any of them could not be read.
    pub(super) fn has_unread(&self) -> bool {
        self.known.values().any(|known| known.version.is_none())
    }

    /// The places that have a file, hard links among them.
    pub(super) fn with_id(&self, id: FileId) -> &[Key] {
        self.by_id.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The other places this file was at when they were looked at last.
    pub(super) fn that_had(&self, file: &SeenFile, here: &Key) -> impl Iterator<Item = &Key> {
        let had = file.id().map(|id| self.with_id(id)).unwrap_or_default();
        had.iter().filter(move |key| {
            let is_it =
                |version: &FileVersion| version.is_settled || version.digest == file.version.digest;
            *key != here && self.get(key).and_then(|own| own.version.as_ref()).is_some_and(is_it)
        })
    }

    pub(super) fn insert(&mut self, key: Key, known: Known) {
        self.remove(&key);
        self.links += usize::from(known.target().is_some());
        if let Some(id) = known.id() {
            self.by_id.entry(id).or_default().push(key.clone());
        }
        self.known.insert(key, known);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Known> {
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

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Known)> {
        self.known.iter()
    }

    /// The places in one directory.
    pub(super) fn of_rank(&self, rank: u32) -> impl Iterator<Item = (&Key, &Known)> {
        let first = Key { rank, name: OsString::new() };
        self.known.range(first..).take_while(move |(key, _)| key.rank == rank)
    }
}
