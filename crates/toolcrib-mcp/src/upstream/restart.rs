//! Restarting a program that is an upstream: by hand, or because its files were changed.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::SystemTime;

use super::Upstreams;

/// Why a restarted server is not connected.
pub(crate) const RESTARTING: &str = "its program is being restarted";

/// The files that decide what a program runs, as they were at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProgramFiles(Vec<(PathBuf, Option<FileStamp>)>);

/// Distinguishes versions of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Differs for a file that was replaced.
    inode: u64,
}

impl ProgramFiles {
    /// The current state of these paths. Folders are left out: programs change what is in them.
    pub(crate) fn now(paths: &[PathBuf]) -> Self {
        let files = paths.iter().filter(|path| !path.is_dir());
        Self(files.map(|path| (path.clone(), FileStamp::of(path))).collect())
    }

    fn are_changed(&self) -> bool {
        self.0.iter().any(|(path, stamp)| FileStamp::of(path) != *stamp)
    }
}

impl FileStamp {
    /// `None` if the file does not exist.
    fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Self { length: found.len(), modified: found.modified().ok(), inode })
    }
}

impl Upstreams {
    /// Ends the connection to a server, and its program, and connects again at once. Returns false if
    /// there is no such upstream, or if something is missing that it needs.
    ///
    /// What decides at every start decides again: the check of the program's files, its confinement, the
    /// review and the pins of its tools. Its running calls end with `outcome_unknown`, or with
    /// `unavailable` if they can safely be repeated. Its tools keep their names, and are unavailable until
    /// it is connected.
    pub fn restart(&self, upstream: &str) -> bool {
        self.restart_if(upstream, |_| true)
    }

    /// Restarts the servers whose program or script was changed since they were started, and returns their
    /// names.
    pub fn restart_changed(&self) -> Vec<String> {
        let names = self.status().into_iter().map(|status| status.name);
        names.filter(|name| self.restart_if(name, ProgramFiles::are_changed)).collect()
    }

    fn restart_if(&self, upstream: &str, applies: impl Fn(&ProgramFiles) -> bool) -> bool {
        let table = self.table();
        let Some(kept) = table.kept.get(upstream) else { return false };
        let files = kept.shared.files.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if kept.upstream.missing.is_some() || !applies(&files) {
            return false;
        }
        // New calls are refused from now on; the supervisor ends the others.
        kept.link.down(RESTARTING);
        kept.shared.restart.notify_one();
        true
    }
}
