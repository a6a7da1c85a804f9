//! Reads the file of a lock, and replaces it atomically.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::Lock;

/// The maximum size of a lock, in bytes: 256 MiB, some 100,000 tools.
const LOCK_MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Why a lock cannot be used.
#[derive(Debug)]
pub struct LockError {
    path: PathBuf,
    problem: LockProblem,
}

#[derive(Debug)]
pub(super) enum LockProblem {
    Read(io::Error),
    Write(io::Error),
    Text(String),
    /// Its version is not supported.
    Newer {
        found: u64,
        known: u64,
    },
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.problem {
            LockProblem::Read(error) => write!(f, "the lock {path} cannot be read: {error}"),
            LockProblem::Write(error) => write!(f, "the lock {path} cannot be written: {error}"),
            LockProblem::Newer { found, known } => write!(
                f,
                "the lock {path} was written by a newer toolcrib (version {found} of the format, this program knows \
                 up to {known})\nUse that version, or restore the lock that this one wrote"
            ),
            LockProblem::Text(problem) => write!(
                f,
                "the lock {path} cannot be used: {}\nRestore the last good one, or remove it and \
                 accept the tools anew with `toolcrib lock`",
                problem.trim_end()
            ),
        }
    }
}

/// The text contains the cause, so there is no source.
impl std::error::Error for LockError {}

impl Lock {
    /// Reads a lock; `None` if the file does not exist or contains only comments.
    pub fn read(path: &Path) -> Result<Option<Self>, LockError> {
        let fail = |problem| LockError { path: path.to_owned(), problem };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(LockProblem::Read(error))),
        };
        let mut text = String::new();
        file.take(LOCK_MAX_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| fail(LockProblem::Read(error)))?;
        if text.len() as u64 > LOCK_MAX_BYTES {
            return Err(fail(LockProblem::Text("it has more than 256 MiB".to_owned())));
        }
        let says_something = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
        if !text.lines().any(says_something) {
            return Ok(None);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::empty(folder).filled(&text).map(Some).map_err(fail)
    }

    /// Writes the lock atomically: readers see either the old lock or the new one.
    pub fn write(&self, path: &Path) -> Result<(), LockError> {
        replace(path, self.to_text().as_bytes()).map_err(|error| LockError {
            path: path.to_owned(),
            problem: LockProblem::Write(error),
        })
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link is kept, and its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = target.with_file_name(name);
    let written = File::create(&new).and_then(|mut file| {
        if let Ok(old) = fs::metadata(&target) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&new, &target)).inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}
