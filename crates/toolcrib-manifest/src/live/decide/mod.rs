//! Decides what a scan means: which units are replaced, renamed or removed, and which have to wait.
//!
//! Nothing here reads a file or a clock, and nothing depends on the order of events: the decision
//! is a function of what was known and what was observed.

use std::collections::{BTreeMap, BTreeSet};

use crate::live::observation::{FileId, Observation};
use crate::live::state::{FileKey, FileTable, ManifestUnit};
use crate::manifest::Loaded;

/// A change of what one manifest declares, for a registry.
///
/// Exhaustive on purpose: ignoring a change would lose tools.
#[derive(Debug)]
pub enum UnitChange {
    /// The file's declarations are replaced by these.
    Replace {
        /// The file.
        unit: ManifestUnit,
        /// Its declarations; it has no errors.
        loaded: Loaded,
    },
    /// The file was removed, and its declarations with it.
    Remove {
        /// The file.
        unit: ManifestUnit,
    },
    /// The file was renamed and keeps the names it owns. The previous file of the new name is gone.
    Rename {
        /// Its previous name.
        from: ManifestUnit,
        /// Its new name.
        to: ManifestUnit,
    },
}

/// The decision about a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileVerdict {
    /// Nothing has changed.
    Unchanged,
    /// It has a new content, or a file that was moved from another place.
    Take {
        /// The previous place of the file.
        from: Option<FileKey>,
    },
    /// Its file is gone and is at no other place.
    Remove,
    /// It cannot be read, or the directory is gone: its declarations stay.
    Keep,
    /// A missing file may come back: scan again before anything is removed.
    Wait,
}

/// The inputs of the decision: what was known and what was observed.
pub(super) struct Scan<'a> {
    pub(super) known: &'a FileTable,
    pub(super) observed: &'a BTreeMap<FileKey, Observation>,
    /// Places whose waiting time is over.
    pub(super) due: &'a BTreeSet<FileKey>,
    /// Ranks whose directory is missing or was replaced by an empty one.
    pub(super) vanished: &'a BTreeSet<u32>,
}

impl Scan<'_> {
    /// Decides about every observed place.
    pub(super) fn decide(&self) -> BTreeMap<FileKey, FileVerdict> {
        let mut verdicts: BTreeMap<FileKey, FileVerdict> = self
            .observed
            .iter()
            .map(|(key, observed)| (key.clone(), self.file_verdict(key, observed)))
            .collect();
        self.treat_copies_as_moves(&mut verdicts);
        self.spread_waits(&mut verdicts);
        self.redeclare_sources(&mut verdicts);
        verdicts
    }

    fn file_verdict(&self, key: &FileKey, observed: &Observation) -> FileVerdict {
        let known = self.known.get(key);
        let file = match observed {
            Observation::Same(_) => return FileVerdict::Unchanged,
            Observation::Unread(_) => return FileVerdict::Keep,
            Observation::Busy => return FileVerdict::Wait,
            Observation::Missing { is_link } => {
                let is_known_to_be_gone = known.is_some_and(|known| known.version.is_none());
                let is_due = self.due.contains(key) || is_known_to_be_gone;
                return match known {
                    // The target of a dangling link may come back.
                    _ if *is_link && is_due => FileVerdict::Keep,
                    None if !is_link => FileVerdict::Unchanged,
                    Some(_) if self.vanished.contains(&key.rank) => FileVerdict::Keep,
                    // The verdict about its new place removes it from here.
                    Some(known) if self.is_elsewhere(known.id(), key) => FileVerdict::Unchanged,
                    Some(_) if self.due.contains(key) => FileVerdict::Remove,
                    None | Some(_) => FileVerdict::Wait,
                };
            }
            Observation::File(file) => file,
        };
        let Some(known) = known else {
            return FileVerdict::Take { from: self.source(observed, key) };
        };
        let is_new = !known.has(file.version.digest);
        let own = if is_new { FileVerdict::Take { from: None } } else { FileVerdict::Unchanged };
        if known.id() == file.id() {
            return own;
        }
        // A file without a source was saved by writing a new file and renaming it over the old one.
        let Some(from) = self.source(observed, key) else { return own };
        // One manifest was moved over another. If the other is at no other place, the two may be
        // about to exchange names.
        let displaced = known.declares
            && !self.is_elsewhere(known.id(), key)
            && !self.due.contains(key)
            && !self.due.contains(&from);
        if displaced { FileVerdict::Wait } else { FileVerdict::Take { from: Some(from) } }
    }

    /// The place from which a file was moved: one that had it and no longer does.
    fn source(&self, observed: &Observation, here: &FileKey) -> Option<FileKey> {
        let Observation::File(file) = observed else { return None };
        let id = file.id()?;
        // A second name that existed before is a hard link, not a move.
        if self.known.with_id(id).contains(here) {
            return None;
        }
        let declares = |key: &FileKey| self.known.get(key).is_some_and(|known| known.declares);
        let left = |key: &FileKey| {
            self.observed.get(key).is_some_and(|observed| {
                matches!(observed, Observation::Missing { .. } | Observation::File(_))
                    && observed.id() != Some(id)
            })
        };
        self.known.previous_places(file, here).find(|key| declares(key) && left(key)).cloned()
    }

    /// Whether the file of this place has moved to another.
    fn is_elsewhere(&self, id: Option<FileId>, key: &FileKey) -> bool {
        let is_it = |(other, observed): (&FileKey, &Observation)| {
            observed.id() == id && self.source(observed, other).as_ref() == Some(key)
        };
        id.is_some() && self.observed.iter().any(is_it)
    }

    /// Treats a new file with the content of a missing one as that file, moved across file systems
    /// or copied: it keeps the names that the other owned.
    fn treat_copies_as_moves(&self, verdicts: &mut BTreeMap<FileKey, FileVerdict>) {
        let new: Vec<FileKey> = verdicts
            .iter()
            .filter(|(key, file_verdict)| {
                **file_verdict == FileVerdict::Take { from: None } && !self.known.contains(key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in new {
            let Some(Observation::File(file)) = self.observed.get(&key) else { continue };
            let from = verdicts.iter().find(|(other, file_verdict)| {
                matches!(file_verdict, FileVerdict::Wait | FileVerdict::Remove)
                    && matches!(self.observed.get(*other), Some(Observation::Missing { .. }))
                    && self
                        .known
                        .get(other)
                        .is_some_and(|known| known.declares && known.has(file.version.digest))
            });
            if let Some(from) = from.map(|(key, _)| key.clone()) {
                verdicts.insert(from.clone(), FileVerdict::Unchanged);
                verdicts.insert(key, FileVerdict::Take { from: Some(from) });
            }
        }
    }

    /// Loads places again whose file was moved away and that have another file with the same
    /// content: the earlier declarations went with the moved file.
    fn redeclare_sources(&self, verdicts: &mut BTreeMap<FileKey, FileVerdict>) {
        let sources = verdicts.values().filter_map(|file_verdict| match file_verdict {
            FileVerdict::Take { from } => from.clone(),
            _ => None,
        });
        for key in sources.collect::<Vec<FileKey>>() {
            if let Some(file_verdict) = verdicts.get_mut(&key)
                && *file_verdict == FileVerdict::Unchanged
                && matches!(self.observed.get(&key), Some(Observation::File(_)))
            {
                *file_verdict = FileVerdict::Take { from: None };
            }
        }
    }

    /// Makes the source of a waiting move wait, too, and so on along a chain of moves.
    fn spread_waits(&self, verdicts: &mut BTreeMap<FileKey, FileVerdict>) {
        let mut waiting: Vec<FileKey> = verdicts
            .iter()
            .filter(|(_, file_verdict)| **file_verdict == FileVerdict::Wait)
            .map(|(key, _)| key.clone())
            .collect();
        while let Some(key) = waiting.pop() {
            let source = self.observed.get(&key).and_then(|observed| self.source(observed, &key));
            if let Some(source) = source
                && let Some(file_verdict) = verdicts.get_mut(&source)
                && *file_verdict != FileVerdict::Wait
            {
                *file_verdict = FileVerdict::Wait;
                waiting.push(source);
            }
        }
    }
}

#[cfg(test)]
mod tests;
