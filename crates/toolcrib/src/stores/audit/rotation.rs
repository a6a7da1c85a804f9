//! Files of the audit log that have grown enough are moved aside.

use std::io;
use std::path::{Path, PathBuf};

use super::OpenLog;

/// When the audit log is moved aside, and how many files of it are kept.
///
/// `audit.jsonl` becomes `audit.jsonl.1`, that one `audit.jsonl.2` and so on; the last of those that
/// are kept is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// A file of so many bytes is moved aside. It is a little longer: records are written whole.
    pub max_bytes: u64,
    /// Files that are kept beside the one that is written to; at least 1.
    pub keep: u32,
}

impl Rotation {
    /// Moves the file aside, if it is long enough. Of several processes that write to one file, one
    /// does it.
    pub(super) fn apply(self, path: &Path, log: &OpenLog) -> io::Result<()> {
        if log.file.metadata()?.len() < self.max_bytes {
            return Ok(());
        }
        log.file.lock()?;
        let moved = if log.is_at(path) { self.shift(path) } else { Ok(()) };
        log.file.unlock()?;
        moved
    }

    fn shift(self, path: &Path) -> io::Result<()> {
        for number in (1..self.keep.max(1)).rev() {
            match std::fs::rename(aside(path, number), aside(path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(path, aside(path, 1))
    }

    /// The files that were moved aside, the newest first, those that are not there included.
    pub(super) fn files(self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let path = path.to_owned();
        (1..=self.keep.max(1)).map(move |number| aside(&path, number))
    }
}

fn aside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}
