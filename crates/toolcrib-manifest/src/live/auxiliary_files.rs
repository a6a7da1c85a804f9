//! Files other than manifests on which loading depends, such as the lock and the list of trusted
//! manifests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::live::observation::FileStamp;

/// The auxiliary files, and when to check them.
#[derive(Debug)]
pub(super) struct AuxiliaryFiles {
    files: Vec<AuxiliaryFile>,
    /// When to check them, after an event.
    due: Option<Instant>,
}

#[derive(Debug)]
struct AuxiliaryFile {
    path: PathBuf,
    /// Its stamp when the manifests were last loaded; `None` if it did not exist.
    stamp: Option<FileStamp>,
    /// Its directory's real path.
    dir: Option<PathBuf>,
    /// Its target, if it is a link.
    target: Option<PathBuf>,
}

impl AuxiliaryFiles {
    /// Records the current state of these files.
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let mut files =
            Self { files: paths.iter().map(|path| AuxiliaryFile::new(path)).collect(), due: None };
        files.have_changed();
        files
    }

    /// The directories to watch, by their real paths.
    pub(super) fn dirs_to_watch(&mut self) -> BTreeSet<PathBuf> {
        self.files.iter_mut().for_each(AuxiliaryFile::find);
        let dirs = self.files.iter().flat_map(|file| {
            let of_target = file.target.as_deref().and_then(Path::parent).map(Path::to_owned);
            file.dir.clone().into_iter().chain(of_target)
        });
        dirs.collect()
    }

    /// Whether an event at this path may affect one of them.
    pub(super) fn affects(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.is_affected_by(path))
    }

    /// Schedules a check after a pause.
    pub(super) fn schedule_check(&mut self, pause: Duration) {
        self.due = Some(Instant::now() + pause);
    }

    /// When the next check is due, if one is scheduled.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether one of them has changed since the last call.
    pub(super) fn have_changed(&mut self) -> bool {
        self.due = None;
        let mut changed = false;
        for file in &mut self.files {
            let now = fs::metadata(&file.path).ok().as_ref().map(FileStamp::of);
            changed |= now != std::mem::replace(&mut file.stamp, now);
        }
        changed
    }
}

impl AuxiliaryFile {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), stamp: None, dir: None, target: None }
    }

    fn find(&mut self) {
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.dir = fs::canonicalize(dir.unwrap_or(Path::new("."))).ok();
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink());
        self.target = if is_link { fs::canonicalize(&self.path).ok() } else { None };
    }

    fn is_affected_by(&self, path: &Path) -> bool {
        if self.target.as_deref() == Some(path) {
            return true;
        }
        let is_beside = self.dir.is_some() && path.parent() == self.dir.as_deref();
        // Links usually lead through another link beside them, which is swapped.
        is_beside && (self.target.is_some() || path.file_name() == self.path.file_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_deleted_or_replaced_file_is_reported_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let mut auxiliary = AuxiliaryFiles::new(std::slice::from_ref(&path));
        assert!(!auxiliary.have_changed());
        for text in ["one", "two!"] {
            fs::write(&path, text).unwrap();
            assert!(auxiliary.have_changed());
            assert!(!auxiliary.have_changed());
        }
        fs::remove_file(&path).unwrap();
        assert!(auxiliary.have_changed());
    }

    #[cfg(unix)]
    #[test]
    fn events_beside_a_file_affect_it_only_if_it_is_a_link() {
        use std::os::unix::fs::symlink;

        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let path = home.join("lock");
        let mut auxiliary = AuxiliaryFiles::new(std::slice::from_ref(&path));
        assert_eq!(auxiliary.dirs_to_watch(), BTreeSet::from([home.clone()]));
        assert!(auxiliary.affects(&path) && !auxiliary.affects(&home.join("..data")));
        // As Kubernetes mounts it.
        fs::create_dir(home.join("first")).unwrap();
        fs::write(home.join("first/lock"), "").unwrap();
        symlink("first", home.join("..data")).unwrap();
        symlink("..data/lock", &path).unwrap();
        assert_eq!(auxiliary.dirs_to_watch(), BTreeSet::from([home.clone(), home.join("first")]));
        assert!(auxiliary.affects(&home.join("..data")));
        assert!(auxiliary.affects(&home.join("first/lock")));
    }
}
