//! What a look at files means: which units are replaced, renamed or gone, and what has to wait.
//!
//! Nothing here reads a file or a clock, and nothing depends on the order in which changes were
//! heard of: the decision is a function of what was known and what is seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::live::observation::{FileId, Seen};
use crate::live::state::{Files, Key, ManifestUnit};
use crate::manifest::Loaded;

/// A change of what one manifest declares, for a registry.
///
/// Exhaustive on purpose: a change that is passed over would lose tools.
#[derive(Debug)]
pub enum UnitChange {
    /// The file declares exactly this.
    Replace {
        /// The file.
        unit: ManifestUnit,
        /// What it declares; without errors.
        loaded: Loaded,
    },
    /// The file is gone, and what it declared with it.
    Remove {
        /// The file.
        unit: ManifestUnit,
    },
    /// The file has another name and keeps what it owns. What stood under the new name is gone.
    Rename {
        /// As it was called.
        from: ManifestUnit,
        /// As it is called now.
        to: ManifestUnit,
    },
}

/// What becomes of a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it was.
    Unchanged,
    /// Its text is another one; it may have come from another place, which it then leaves.
    Take {
        /// The place the file was at before.
        from: Option<Key>,
    },
    /// Its file is gone, and is not to be seen elsewhere.
    Remove,
    /// It cannot be read, or the directory is gone: what it declared stays.
    Keep,
    /// Something may be about to come back: look again before anything is taken away.
    Wait,
}

/// What is known of the places that a look is about.
pub(super) struct Look<'a> {
    pub(super) known: &'a Files,
    pub(super) seen: &'a BTreeMap<Key, Seen>,
    /// Places that have waited long enough.
    pub(super) due: &'a BTreeSet<Key>,
    /// Ranks whose directory cannot be read, or is another, empty one.
    pub(super) gone: &'a BTreeSet<u32>,
}

impl Look<'_> {
    /// Decides about every place that was looked at.
    pub(super) fn decide(&self) -> BTreeMap<Key, Verdict> {
        let mut verdicts: BTreeMap<Key, Verdict> =
            self.seen.iter().map(|(key, seen)| (key.clone(), self.verdict(key, seen))).collect();
        self.follow_copies(&mut verdicts);
        self.spread_waits(&mut verdicts);
        self.refill(&mut verdicts);
        verdicts
    }

    fn verdict(&self, key: &Key, seen: &Seen) -> Verdict {
        let known = self.known.get(key);
        let file = match seen {
            Seen::Same(_) => return Verdict::Unchanged,
            Seen::Unread(_) => return Verdict::Keep,
            Seen::Busy => return Verdict::Wait,
            Seen::Missing { is_link } => {
                let is_known_to_be_gone = known.is_some_and(|known| known.version.is_none());
                let is_due = self.due.contains(key) || is_known_to_be_gone;
                return match known {
                    // What a link leads to may come back.
                    _ if *is_link && is_due => Verdict::Keep,
                    None if !is_link => Verdict::Unchanged,
                    Some(_) if self.gone.contains(&key.rank) => Verdict::Keep,
                    // Where it is seen, it is taken from here.
                    Some(known) if self.is_elsewhere(known.id(), key) => Verdict::Unchanged,
                    Some(_) if self.due.contains(key) => Verdict::Remove,
                    None | Some(_) => Verdict::Wait,
                };
            }
            Seen::File(file) => file,
        };
        let Some(known) = known else {
            return Verdict::Take { from: self.source(seen, key) };
        };
        let is_new = !known.has(file.version.digest);
        let own = if is_new { Verdict::Take { from: None } } else { Verdict::Unchanged };
        if known.id() == file.id() {
            return own;
        }
        // Without a source it was saved by writing a new file and renaming it over the old one.
        let Some(from) = self.source(seen, key) else { return own };
        // One manifest lies over another. If the other is not to be seen, the two may be about to
        // exchange their names.
        let displaced = known.declares
            && !self.is_elsewhere(known.id(), key)
            && !self.due.contains(key)
            && !self.due.contains(&from);
        if displaced { Verdict::Wait } else { Verdict::Take { from: Some(from) } }
    }

    /// The place a file has come from: one that had it and has it no more.
    fn source(&self, seen: &Seen, here: &Key) -> Option<Key> {
        let Seen::File(file) = seen else { return None };
        let id = file.id()?;
        // A second name that was there before is a hard link and no move.
        if self.known.with_id(id).contains(here) {
            return None;
        }
        let declares = |key: &Key| self.known.get(key).is_some_and(|known| known.declares);
        let left = |key: &Key| {
            self.seen.get(key).is_some_and(|seen| {
                matches!(seen, Seen::Missing { .. } | Seen::File(_)) && seen.id() != Some(id)
            })
        };
        self.known.that_had(file, here).find(|key| declares(key) && left(key)).cloned()
    }

    /// Whether the file of this place is at another one now.
    fn is_elsewhere(&self, id: Option<FileId>, key: &Key) -> bool {
        let is_it = |(other, seen): (&Key, &Seen)| {
            seen.id() == id && self.source(seen, other).as_ref() == Some(key)
        };
        id.is_some() && self.seen.iter().any(is_it)
    }

    /// A new file with the text of one that is gone is that one, moved from another file system or
    /// copied: it keeps what the other owned.
    fn follow_copies(&self, verdicts: &mut BTreeMap<Key, Verdict>) {
        let new: Vec<Key> = verdicts
            .iter()
            .filter(|(key, verdict)| {
                **verdict == Verdict::Take { from: None } && !self.known.contains(key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in new {
            let Some(Seen::File(file)) = self.seen.get(&key) else { continue };
            let from = verdicts.iter().find(|(other, verdict)| {
                matches!(verdict, Verdict::Wait | Verdict::Remove)
                    && matches!(self.seen.get(*other), Some(Seen::Missing { .. }))
                    && self
                        .known
                        .get(other)
                        .is_some_and(|known| known.declares && known.has(file.version.digest))
            });
            if let Some(from) = from.map(|(key, _)| key.clone()) {
                verdicts.insert(from.clone(), Verdict::Unchanged);
                verdicts.insert(key, Verdict::Take { from: Some(from) });
            }
        }
    }

    /// A place whose file has moved away and that has another one with the same text has to say so
    /// again: what it declared went with the file.
    fn refill(&self, verdicts: &mut BTreeMap<Key, Verdict>) {
        let sources = verdicts.values().filter_map(|verdict| match verdict {
            Verdict::Take { from } => from.clone(),
            _ => None,
        });
        for key in sources.collect::<Vec<Key>>() {
            if let Some(verdict) = verdicts.get_mut(&key)
                && *verdict == Verdict::Unchanged
                && matches!(self.seen.get(&key), Some(Seen::File(_)))
            {
                *verdict = Verdict::Take { from: None };
            }
        }
    }

    /// A move into a place that waits waits with it, and so does what is to take the place of the
    /// file that would have moved.
    fn spread_waits(&self, verdicts: &mut BTreeMap<Key, Verdict>) {
        let mut waiting: Vec<Key> = verdicts
            .iter()
            .filter(|(_, verdict)| **verdict == Verdict::Wait)
            .map(|(key, _)| key.clone())
            .collect();
        while let Some(key) = waiting.pop() {
            let source = self.seen.get(&key).and_then(|seen| self.source(seen, &key));
            if let Some(source) = source
                && let Some(verdict) = verdicts.get_mut(&source)
                && *verdict != Verdict::Wait
            {
                *verdict = Verdict::Wait;
                waiting.push(source);
            }
        }
    }
}

#[cfg(test)]
mod tests;
