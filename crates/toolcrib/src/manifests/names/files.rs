//! The owners of names that files declare: the first file to declare a name keeps it. This module
//! does no I/O and uses no clock.
//!
//! The rules are those of tool names (`toolcrib-core`, `registry/rules.rs`) in a single layer and
//! without reservations: a released name goes to another file that declares it.

use std::collections::{BTreeMap, BTreeSet};

use toolcrib_manifest::lock::Kind;
use toolcrib_tool::{Layer, Origin, Source};

use super::{DeclaredName, NotOffered};

/// A manifest: the rank of its directory, and its name. Sorted in the order that resolves names.
pub(crate) type ManifestKey = (u32, String);

/// A kind and a name of that kind.
type NameKey = (Kind, String);

/// A file's declaration of a name; no file declares one twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeclaredEntry<T> {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) origin: Origin,
    /// Why the lock blocks it, or that it needs trust.
    pub(crate) blocked: Option<NotOffered>,
    /// Any other remark of the lock.
    pub(crate) remark: Option<String>,
    /// The object that the name stands for.
    pub(crate) what: T,
}

/// A change of a file's declarations.
#[derive(Debug)]
pub(crate) enum FileChange<T> {
    /// The file's complete declarations.
    Replace(ManifestKey, Vec<DeclaredEntry<T>>),
    /// The file was removed.
    Remove(ManifestKey),
    /// The file was renamed and keeps the names that it owns. Declarations under its new name are
    /// lost.
    Rename(ManifestKey, ManifestKey),
}

/// The names that files declare, with their owners.
///
/// A file owns a name as long as it declares it, regardless of other files. Then the name goes to the first other file
/// that declares it; a blocked declaration gets it only if there is no other. The host's own names never go to a file.
#[derive(Debug)]
pub(crate) struct FileNames<T> {
    host: BTreeSet<NameKey>,
    files: BTreeMap<ManifestKey, FileContent<T>>,
}

/// A file's declarations, and which names it owns.
#[derive(Debug)]
struct FileContent<T> {
    declared: Vec<DeclaredEntry<T>>,
    owns: BTreeSet<NameKey>,
}

impl<T> DeclaredEntry<T> {
    fn key(&self) -> NameKey {
        (self.kind, self.name.clone())
    }

    /// The position of the declaration, in a file that may have been renamed since it was read.
    fn source(&self, (_, file): &ManifestKey) -> Source {
        let origin = Origin { file: file.clone(), ..self.origin.clone() };
        Source::new(Layer::Manifest, file.as_str()).at(origin)
    }
}

impl<T> FileNames<T> {
    /// Without files. `host` are the names that belong to the host.
    pub(crate) fn new(host: impl IntoIterator<Item = NameKey>) -> Self {
        Self { host: host.into_iter().collect(), files: BTreeMap::new() }
    }

    /// Whether changes concern any name: most files declare only tools.
    pub(crate) fn concern(&self, changes: &[FileChange<T>]) -> bool {
        changes.iter().any(|change| match change {
            FileChange::Replace(file, declared) => {
                !declared.is_empty() || self.files.contains_key(file)
            }
            FileChange::Remove(file) => self.files.contains_key(file),
            FileChange::Rename(from, to) => {
                self.files.contains_key(from) || self.files.contains_key(to)
            }
        })
    }

    /// Applies a set of changes; their order does not matter.
    pub(crate) fn apply(&mut self, changes: impl IntoIterator<Item = FileChange<T>>) {
        let (mut moved, mut gone, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes {
            match change {
                // All removals come first, because files may have exchanged their names.
                FileChange::Rename(from, to) => moved.push((self.files.remove(&from), to)),
                FileChange::Remove(file) => gone.push(file),
                FileChange::Replace(file, declared) => replaced.push((file, declared)),
            }
        }
        for (content, to) in moved {
            match content {
                Some(content) => drop(self.files.insert(to, content)),
                None => drop(self.files.remove(&to)),
            }
        }
        for file in gone {
            self.files.remove(&file);
        }
        for (file, declared) in replaced {
            let before = self.files.remove(&file);
            if !declared.is_empty() {
                let mut owns = before.map(|before| before.owns).unwrap_or_default();
                owns.retain(|key| declared.iter().any(|one| one.key() == *key));
                self.files.insert(file, FileContent { declared, owns });
            }
        }
        self.decide();
    }

    /// Gives every name without an owner to the first file that declares it.
    fn decide(&mut self) {
        let owned: BTreeSet<NameKey> =
            self.files.values().flat_map(|content| content.owns.iter().cloned()).collect();
        for (key, file) in self.first_of(&owned) {
            if let Some(content) = self.files.get_mut(&file) {
                content.owns.insert(key);
            }
        }
    }

    /// The owner that each name would get if only the names in `owned`, and the host's, had owners.
    fn first_of(&self, owned: &BTreeSet<NameKey>) -> BTreeMap<NameKey, ManifestKey> {
        let mut first: BTreeMap<NameKey, (bool, ManifestKey)> = BTreeMap::new();
        for (file, content) in &self.files {
            for one in &content.declared {
                let (key, blocked) = (one.key(), one.blocked.is_some());
                let is_free = !self.host.contains(&key) && !owned.contains(&key);
                if is_free && first.get(&key).is_none_or(|(before, _)| *before && !blocked) {
                    first.insert(key, (blocked, file.clone()));
                }
            }
        }
        first.into_iter().map(|(key, (_, file))| (key, file)).collect()
    }

    /// The declarations of owners, in the order that resolves names: directory, file, kind,
    /// position.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &DeclaredEntry<T>> {
        self.owned_of_files().map(|(_, one)| one)
    }

    fn owned_of_files(&self) -> impl Iterator<Item = (&ManifestKey, &DeclaredEntry<T>)> {
        self.files.iter().flat_map(|(file, content)| {
            let own = content.declared.iter().filter(|one| content.owns.contains(&one.key()));
            own.map(move |one| (file, one))
        })
    }

    /// All declarations of files, in the same order, with their states.
    pub(crate) fn names(&self) -> Vec<DeclaredName> {
        let owners: BTreeMap<NameKey, Source> =
            self.owned_of_files().map(|(file, one)| (one.key(), one.source(file))).collect();
        let fresh = self.first_of(&BTreeSet::new());
        let mut names = Vec::new();
        for (file, content) in &self.files {
            for one in &content.declared {
                let (key, source) = (one.key(), one.source(file));
                let owner = owners.get(&key);
                let owns = owner == Some(&source);
                let winner = || match owner {
                    Some(owner) => owner.clone(),
                    None => Source::new(Layer::Host, one.name.as_str()),
                };
                let withheld = match &one.blocked {
                    Some(withheld) => Some(withheld.clone()),
                    None => (!owns).then(|| NotOffered::Shadowed(winner())),
                };
                let other = fresh.get(&key).filter(|other| owns && *other != file);
                names.push(DeclaredName {
                    kind: one.kind,
                    name: one.name.clone(),
                    description: one.description.clone(),
                    source,
                    withheld,
                    remark: one.remark.clone(),
                    after_restart: other.and_then(|other| self.declares(other, &key)),
                });
            }
        }
        names
    }

    fn declares(&self, file: &ManifestKey, key: &NameKey) -> Option<Source> {
        let declared = &self.files.get(file)?.declared;
        declared.iter().find(|one| one.key() == *key).map(|one| one.source(file))
    }
}
