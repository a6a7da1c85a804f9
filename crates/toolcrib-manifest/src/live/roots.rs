//! The configured directories of manifests, and which files an event affects.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::directory::{counts, manifests};
use crate::live::observation::{FileId, Observation};
use crate::live::state::{FileKey, FileRecord, FileTable, ManifestUnit};

/// The directories and files of the configuration, in order.
#[derive(Debug)]
pub(super) struct ManifestRoots(Vec<ManifestRoot>);

/// A directory of manifests, or the directory of a single one.
#[derive(Debug)]
struct ManifestRoot {
    dir: PathBuf,
    /// The only file that is loaded, if a single file is configured.
    only: Option<std::ffi::OsString>,
    /// The identity of the directory when it last contained manifests.
    id: Option<FileId>,
    /// Why the directory cannot be read.
    problem: Option<String>,
    /// Its real path and that of its nearest existing parent, as events contain them.
    real: Option<PathBuf>,
    real_parent: Option<PathBuf>,
    /// The next component on the path from that parent to the directory; usually the directory
    /// itself.
    next_on_path: Option<PathBuf>,
}

impl ManifestRoots {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        Self(paths.iter().map(|path| ManifestRoot::new(path)).collect())
    }

    pub(super) fn path(&self, key: &FileKey) -> PathBuf {
        match self.root(key.rank) {
            Some(root) => root.dir.join(&key.name),
            None => PathBuf::from(&key.name),
        }
    }

    pub(super) fn unit(&self, key: &FileKey) -> ManifestUnit {
        ManifestUnit { name: self.path(key).to_string_lossy().into_owned(), rank: key.rank }
    }

    /// Directories that cannot be read, with the reason.
    pub(super) fn unreadable(&self) -> Vec<(PathBuf, String)> {
        let problem = |root: &ManifestRoot| Some((root.dir.clone(), root.problem.clone()?));
        self.0.iter().filter_map(problem).collect()
    }

    /// Every place where a manifest is or was.
    pub(super) fn list(&mut self, files: &FileTable) -> BTreeSet<FileKey> {
        let mut keys = BTreeSet::new();
        for (rank, root) in (0..).zip(&mut self.0) {
            keys.extend(files.of_rank(rank).map(|(key, _)| key.clone()));
            if let Some(name) = &root.only {
                keys.insert(FileKey { rank, name: name.clone() });
                continue;
            }
            match manifests(&root.dir) {
                Ok(paths) => {
                    root.problem = None;
                    let names = paths.iter().filter_map(|path| path.file_name());
                    keys.extend(names.map(|name| FileKey { rank, name: name.to_owned() }));
                }
                Err(error) => root.problem = Some(error.to_string()),
            }
        }
        keys
    }

    /// The ranks of directories that do not exist or were replaced by an empty one, as after an
    /// unmount. Only directories with missing files are checked.
    pub(super) fn vanished(
        &mut self,
        observed: &BTreeMap<FileKey, Observation>,
        files: &FileTable,
    ) -> BTreeSet<u32> {
        let misses = |key: &FileKey, observed: &Observation| {
            matches!(observed, Observation::Missing { .. }) && files.contains(key)
        };
        let missing: BTreeSet<u32> = observed
            .iter()
            .filter(|(key, observed)| misses(key, observed))
            .map(|(key, _)| key.rank)
            .collect();
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

    /// The directories to watch, by their real paths: the directories of manifests, their parents,
    /// and the directories of link targets.
    pub(super) fn dirs_to_watch(&mut self, files: &FileTable) -> BTreeSet<PathBuf> {
        let mut dirs_to_watch = BTreeSet::new();
        for root in &mut self.0 {
            root.find();
            dirs_to_watch.extend(root.real.clone());
            dirs_to_watch.extend(root.real_parent.clone());
        }
        let targets = files.iter().filter_map(|(_, known)| known.target()?.parent());
        dirs_to_watch.extend(targets.map(Path::to_owned));
        dirs_to_watch
    }

    /// The places that an event at this path affects; `None` if it may affect all of them, because
    /// the path is a directory, or a link through which manifests are reached.
    pub(super) fn affected(&self, files: &FileTable, path: &Path) -> Option<BTreeSet<FileKey>> {
        let (dir, name) = (path.parent()?, path.file_name()?);
        if self.0.iter().any(|root| root.is_on_path(path)) {
            return None;
        }
        let mut keys = BTreeSet::new();
        for (rank, root) in (0..).zip(&self.0) {
            if root.real.as_deref() == Some(dir) && root.has(name) {
                keys.insert(FileKey { rank, name: name.to_owned() });
            }
        }
        // Without links this search is not needed.
        if files.links() > 0 {
            let leads_here =
                |known: &FileRecord| known.target().is_some_and(|target| target == path);
            let linked = files.iter().filter(|(_, known)| leads_here(known));
            keys.extend(linked.map(|(key, _)| key.clone()));
            let is_file = || fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
            if keys.is_empty() && !is_file() {
                return None;
            }
        }
        Some(keys)
    }

    fn root(&self, rank: u32) -> Option<&ManifestRoot> {
        self.0.get(rank as usize)
    }
}

impl ManifestRoot {
    fn new(path: &Path) -> Self {
        let (dir, only) = match (path.is_file(), path.parent(), path.file_name()) {
            (true, Some(dir), Some(name)) => (dir.to_owned(), Some(name.to_owned())),
            _ => (path.to_owned(), None),
        };
        let id = fs::metadata(nonempty(&dir)).ok().as_ref().and_then(FileId::of);
        let mut root = Self {
            dir,
            only,
            id,
            problem: None,
            real: None,
            real_parent: None,
            next_on_path: None,
        };
        root.find();
        root
    }

    fn find(&mut self) {
        let mut below = nonempty(&self.dir);
        self.real = fs::canonicalize(below).ok();
        (self.real_parent, self.next_on_path) = (None, None);
        // Find the nearest existing parent: watching it shows when the directory comes back.
        while let Some(dir) = below.parent().map(nonempty).filter(|dir| *dir != below) {
            if let Ok(real) = fs::canonicalize(dir) {
                self.next_on_path = below.file_name().map(|name| real.join(name));
                self.real_parent = Some(real);
                return;
            }
            below = dir;
        }
    }

    fn has(&self, name: &OsStr) -> bool {
        self.only.as_deref().map_or_else(|| counts(name), |only| only == name)
    }

    /// Whether the path is this directory or the next component on the path to it.
    fn is_on_path(&self, path: &Path) -> bool {
        self.real.as_deref() == Some(path) || self.next_on_path.as_deref() == Some(path)
    }
}

/// The directory, with `.` for an empty path.
fn nonempty(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missed_in_the_current_directory_does_not_make_it_gone() {
        // A file name that exists in the folder in which this crate is tested.
        let mut roots = ManifestRoots::new(&["Cargo.toml".into()]);
        let key = FileKey { rank: 0, name: "Cargo.toml".into() };
        let mut files = FileTable::default();
        files.insert(key.clone(), FileRecord::default());
        let observed = BTreeMap::from([(key, Observation::Missing { is_link: false })]);
        assert_eq!(roots.vanished(&observed, &files), BTreeSet::new());
    }
}
