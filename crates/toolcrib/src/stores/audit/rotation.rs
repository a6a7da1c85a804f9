//! Files of the audit log that are long or old enough are moved aside, and those that are too old removed.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::OpenLog;

/// Files beyond those that are kept that are looked for, from an earlier, larger `keep`.
const BEYOND: u32 = 64;

/// How much of a file is read for the time of its first record.
const FIRST_LINE: u64 = 1024 * 1024;

/// When the audit log is moved aside, and how many files of it are kept for how long.
///
/// `audit.jsonl` becomes `audit.jsonl.1`, that one `audit.jsonl.2` and so on; the last of those that
/// are kept is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// A file of so many bytes is moved aside. It is a little longer: records are written whole.
    pub max_bytes: Option<u64>,
    /// Files that are kept beside the one that is written to; at least 1.
    pub keep: u32,
    /// Files whose last record is older are removed. The file is also moved aside when its first record is
    /// older than this divided by `keep`, so that with little traffic, too, records do not get much older.
    pub max_age: Option<Duration>,
}

impl Rotation {
    /// The file is never moved aside.
    pub(super) const NEVER: Self = Self { max_bytes: None, keep: 1, max_age: None };

    /// Whether the file is never moved aside.
    pub(super) fn is_never(self) -> bool {
        self.max_bytes.is_none() && self.max_age.is_none()
    }

    /// Moves the file aside if it is long or old enough, and returns whether it was. Of several processes that write to
    /// one file, one does it.
    pub(super) fn apply(self, path: &Path, log: &mut OpenLog) -> io::Result<bool> {
        if self.is_never() {
            return Ok(false);
        }
        let length = log.file.metadata()?.len();
        let is_long = self.max_bytes.is_some_and(|max| length >= max);
        if length > 0 && (is_long || self.is_old(length, log)) {
            log.file.lock()?;
            let moved = if log.is_at(path) { self.shift(path) } else { Ok(()) };
            log.file.unlock()?;
            return moved.map(|()| true);
        }
        Ok(false)
    }

    /// Whether the first record of the file is old enough.
    fn is_old(self, length: u64, log: &mut OpenLog) -> bool {
        let Some(max_age) = self.max_age else { return false };
        if log.began_at.is_none() {
            let unknown = || (length >= FIRST_LINE).then(SystemTime::now);
            log.began_at = began_at(&log.file).or_else(unknown);
        }
        let age = log.began_at.and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age >= max_age / self.keep.max(1))
    }

    fn shift(self, path: &Path) -> io::Result<()> {
        for number in (1..self.keep.max(1)).rev() {
            match fs::rename(aside(path, number), aside(path, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(path, aside(path, 1))
    }

    /// Removes files whose last record is too old, and those of an earlier, larger `keep`.
    pub(super) fn clear(self, path: &Path) -> io::Result<()> {
        if self.is_never() {
            return Ok(());
        }
        let keep = self.keep.max(1);
        for number in 1..=keep.saturating_add(BEYOND) {
            let file = aside(path, number);
            let Ok(found) = fs::symlink_metadata(&file) else { continue };
            let age =
                found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            let is_old = self.max_age.is_some_and(|max| age.is_some_and(|age| age >= max));
            if number > keep || is_old {
                match fs::remove_file(&file) {
                    // Another process was faster.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The files that were moved aside, the newest first, those that are not there included.
    pub(super) fn files(self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let path = path.to_owned();
        (1..=self.keep.max(1)).map(move |number| aside(&path, number))
    }
}

/// When the first record of a file was made.
fn began_at(file: &File) -> Option<SystemTime> {
    // The file is open for appending, so that nobody else uses its position.
    let mut file = file.try_clone().ok()?;
    file.rewind().ok()?;
    let file = BufReader::new(file.take(FIRST_LINE));
    let time_of = |line: String| -> Option<SystemTime> {
        let record: Value = serde_json::from_str(&line).ok()?;
        humantime::parse_rfc3339(record["time"].as_str()?).ok()
    };
    file.lines().map_while(Result::ok).find_map(time_of)
}

fn aside(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}
