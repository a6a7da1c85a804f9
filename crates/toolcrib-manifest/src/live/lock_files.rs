//! Files that are no manifests, but on which it depends what is made of them: the lock.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::live::observation::Stamp;

/// Files beside the manifests, and when to look at them.
#[derive(Debug)]
pub(super) struct Surroundings {
    files: Vec<Beside>,
    /// Something was heard of one of them.
    due: Option<Instant>,
}

#[derive(Debug)]
struct Beside {
    path: PathBuf,
    /// What it was when manifests were last read; none, where nothing is there.
    stamp: Option<Stamp>,
    /// Its directory's real path.
    dir: Option<PathBuf>,
    /// What it leads to, if it is a link.
    target: Option<PathBuf>,
}

impl Surroundings {
    /// As they are now.
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let mut files =
            Self { files: paths.iter().map(|path| Beside::new(path)).collect(), due: None };
        files.have_changed();
        files
    }

    /// The directories to watch, by their real paths.
    pub(super) fn wanted(&mut self) -> BTreeSet<PathBuf> {
        self.files.iter_mut().for_each(Beside::find);
        let dirs = self.files.iter().flat_map(|file| {
            let of_target = file.target.as_deref().and_then(Path::parent).map(Path::to_owned);
            file.dir.clone().into_iter().chain(of_target)
        });
        dirs.collect()
    }

    /// Whether an event at this path may be about one of them.
    pub(super) fn concern(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.is_concerned(path))
    }

    /// Has them looked at in a while.
    pub(super) fn look_in(&mut self, pause: Duration) {
        self.due = Some(Instant::now() + pause);
    }

    /// When to look at them, if something was heard of them.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether one of them is another than when this was asked last.
    pub(super) fn have_changed(&mut self) -> bool {
        self.due = None;
        let mut changed = false;
        for file in &mut self.files {
            let now = fs::metadata(&file.path).ok().as_ref().map(Stamp::of);
            changed |= now != std::mem::replace(&mut file.stamp, now);
        }
        changed
    }
}

impl Beside {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), stamp: None, dir: None, target: None }
    }

    fn find(&mut self) {
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.dir = fs::canonicalize(dir.unwrap_or(Path::new("."))).ok();
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_symlink());
        self.target = if is_link { fs::canonicalize(&self.path).ok() } else { None };
    }

    fn is_concerned(&self, path: &Path) -> bool {
        if self.target.as_deref() == Some(path) {
            return true;
        }
        let is_beside = self.dir.is_some() && path.parent() == self.dir.as_deref();
        // What a link leads through is usually swapped beside it.
        is_beside && (self.target.is_some() || path.file_name() == self.path.file_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_goes_or_is_replaced_is_another_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let mut surroundings = Surroundings::new(std::slice::from_ref(&path));
        assert!(!surroundings.have_changed());
        for text in ["one", "two!"] {
            fs::write(&path, text).unwrap();
            assert!(surroundings.have_changed());
            assert!(!surroundings.have_changed());
        }
        fs::remove_file(&path).unwrap();
        assert!(surroundings.have_changed());
    }

    #[cfg(unix)]
    #[test]
    fn events_beside_a_file_are_about_it_only_if_it_is_a_link() {
        use std::os::unix::fs::symlink;

        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let path = home.join("lock");
        let mut surroundings = Surroundings::new(std::slice::from_ref(&path));
        assert_eq!(surroundings.wanted(), BTreeSet::from([home.clone()]));
        assert!(surroundings.concern(&path) && !surroundings.concern(&home.join("..data")));
        // As Kubernetes mounts it.
        fs::create_dir(home.join("first")).unwrap();
        fs::write(home.join("first/lock"), "").unwrap();
        symlink("first", home.join("..data")).unwrap();
        symlink("..data/lock", &path).unwrap();
        assert_eq!(surroundings.wanted(), BTreeSet::from([home.clone(), home.join("first")]));
        assert!(surroundings.concern(&home.join("..data")));
        assert!(surroundings.concern(&home.join("first/lock")));
    }
}
