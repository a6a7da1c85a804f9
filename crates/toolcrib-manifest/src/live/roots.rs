//! Where manifests are looked for, and what an event's path has to do with them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::directory::{counts, manifests};
use crate::live::observation::{FileId, Seen};
use crate::live::state::{Files, Key, Known, ManifestUnit};

/// The directories and files of the configuration, in order.
#[derive(Debug)]
pub(super) struct Roots(Vec<Root>);

/// A directory of manifests, or the directory of a single one.
#[derive(Debug)]
struct Root {
    dir: PathBuf,
    /// The one file that counts.
    only: Option<std::ffi::OsString>,
    /// The directory as it was when manifests were seen in it.
    id: Option<FileId>,
    /// Why it cannot be read.
    problem: Option<String>,
    /// Where it and its parent really are: events come with such paths.
    real: Option<PathBuf>,
    real_parent: Option<PathBuf>,
    /// What is next on the way from there to the directory: usually the directory.
    step: Option<PathBuf>,
}

impl Roots {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        Self(paths.iter().map(|path| Root::new(path)).collect())
    }

    pub(super) fn path(&self, key: &Key) -> PathBuf {
        match self.root(key.rank) {
            Some(root) => root.dir.join(&key.name),
            None => PathBuf::from(&key.name),
        }
    }

    pub(super) fn unit(&self, key: &Key) -> ManifestUnit {
        ManifestUnit { name: self.path(key).to_string_lossy().into_owned(), rank: key.rank }
    }

    /// Directories that cannot be read, with the reason.
    pub(super) fn unreadable(&self) -> Vec<(PathBuf, String)> {
        let problem = |root: &Root| Some((root.dir.clone(), root.problem.clone()?));
        self.0.iter().filter_map(problem).collect()
    }

    /// Every place where a manifest is or was.
    pub(super) fn list(&mut self, files: &Files) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for (rank, root) in (0..).zip(&mut self.0) {
            keys.extend(files.of_rank(rank).map(|(key, _)| key.clone()));
            if let Some(name) = &root.only {
                keys.insert(Key { rank, name: name.clone() });
                continue;
            }
            match manifests(&root.dir) {
                Ok(paths) => {
                    root.problem = None;
                    let names = paths.iter().filter_map(|path| path.file_name());
                    keys.extend(names.map(|name| Key { rank, name: name.to_owned() }));
                }
                Err(error) => root.problem = Some(error.to_string()),
            }
        }
        keys
    }

    /// The directories that are not there, or are others and empty: a mount that is gone shows the
    /// empty directory under it. Only those in which something is missed are looked at.
    pub(super) fn gone(&mut self, seen: &BTreeMap<Key, Seen>, files: &Files) -> BTreeSet<u32> {
        let misses =
            |key: &Key, seen: &Seen| matches!(seen, Seen::Missing { .. }) && files.contains(key);
        let missing: BTreeSet<u32> =
            seen.iter().filter(|(key, seen)| misses(key, seen)).map(|(key, _)| key.rank).collect();
        let is_gone = |rank: &u32| {
            let Some(root) = self.0.get_mut(*rank as usize) else { return true };
            let dir = nonempty(&root.dir);
            let id = match fs::metadata(dir) {
                Ok(metadata) if metadata.is_dir() => FileId::of(&metadata),
                _ => return true,
            };
            if root.id.is_some() && root.id != id && manifests(dir).is_ok_and(|m| m.is_empty()) {
                return true;
            }
            root.id = id;
            false
        };
        missing.into_iter().filter(is_gone).collect()
    }

    /// The directories to watch, by their real paths: those of manifests, their parents, and those
    /// that links lead to.
    pub(super) fn wanted(&mut self, files: &Files) -> BTreeSet<PathBuf> {
        let mut wanted = BTreeSet::new();
        for root in &mut self.0 {
            root.find();
            wanted.extend(root.real.clone());
            wanted.extend(root.real_parent.clone());
        }
        let targets = files.iter().filter_map(|(_, known)| known.target()?.parent());
        wanted.extend(targets.map(Path::to_owned));
        wanted
    }

    /// The places that an event at this path is about; `None` if it may be about all of them, because
    /// it is about a directory, or about a link that manifests are reached through.
    pub(super) fn concerned(&self, files: &Files, path: &Path) -> Option<BTreeSet<Key>> {
        let (dir, name) = (path.parent()?, path.file_name()?);
        if self.0.iter().any(|root| root.is_itself(path)) {
            return None;
        }
        let mut keys = BTreeSet::new();
        for (rank, root) in (0..).zip(&self.0) {
            if root.real.as_deref() == Some(dir) && root.has(name) {
                keys.insert(Key { rank, name: name.to_owned() });
            }
        }
        // Only those who use links pay for looking for them.
        if files.links() > 0 {
            let leads_here = |known: &Known| known.target().is_some_and(|target| target == path);
            let linked = files.iter().filter(|(_, known)| leads_here(known));
            keys.extend(linked.map(|(key, _)| key.clone()));
            let is_file = || fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
            if keys.is_empty() && !is_file() {
                return None;
            }
        }
        Some(keys)
    }

    fn root(&self, rank: u32) -> Option<&Root> {
        self.0.get(rank as usize)
    }
}

impl Root {
    fn new(path: &Path) -> Self {
        let (dir, only) = match (path.is_file(), path.parent(), path.file_name()) {
            (true, Some(dir), Some(name)) => (dir.to_owned(), Some(name.to_owned())),
            _ => (path.to_owned(), None),
        };
        let id = fs::metadata(nonempty(&dir)).ok().as_ref().and_then(FileId::of);
        let mut root =
            Self { dir, only, id, problem: None, real: None, real_parent: None, step: None };
        root.find();
        root
    }

    fn find(&mut self) {
        let mut below = nonempty(&self.dir);
        self.real = fs::canonicalize(below).ok();
        (self.real_parent, self.step) = (None, None);
        // The nearest that exists: from there the way back is seen.
        while let Some(dir) = below.parent().map(nonempty).filter(|dir| *dir != below) {
            if let Ok(real) = fs::canonicalize(dir) {
                self.step = below.file_name().map(|name| real.join(name));
                self.real_parent = Some(real);
                return;
            }
            below = dir;
        }
    }

    fn has(&self, name: &OsStr) -> bool {
        self.only.as_deref().map_or_else(|| counts(name), |only| only == name)
    }

    /// Whether the path is the directory's, or on the way to it.
    fn is_itself(&self, path: &Path) -> bool {
        self.real.as_deref() == Some(path) || self.step.as_deref() == Some(path)
    }
}

/// The current directory has no name of its own.
fn nonempty(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missed_in_the_current_directory_does_not_make_it_gone() {
        // A path of one word that leads to a file wherever this crate is tested.
        let mut roots = Roots::new(&["Cargo.toml".into()]);
        let key = Key { rank: 0, name: "Cargo.toml".into() };
        let mut files = Files::default();
        files.insert(key.clone(), Known::default());
        let seen = BTreeMap::from([(key, Seen::Missing { is_link: false })]);
        assert_eq!(roots.gone(&seen, &files), BTreeSet::new());
    }
}
