//! The location of a database, and whether the file system there can hold one.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use crate::error::DatabaseError;
use crate::folder::StateFolder;

/// How long to wait while another process has the database locked.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the database file in its folder.
const FILE: &str = "toolcrib.db";
/// Locked while the database is opened, so that two processes do not create it at once.
const OPENING: &str = "toolcrib.db-open";
/// The files that SQLite keeps beside the database file.
const SIDE_FILES: [&str; 3] = ["toolcrib.db-wal", "toolcrib.db-shm", "toolcrib.db-journal"];
/// The folder with the lock files that show which servers are alive.
const SERVERS: &str = "servers";

/// A folder on disk, or memory.
#[derive(Debug, Clone)]
pub(crate) enum DatabaseLocation {
    Folder(PathBuf),
    Memory,
}

impl DatabaseLocation {
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Folder(dir) => Some(dir.join(FILE)),
            Self::Memory => None,
        }
    }

    /// The file of the write-ahead log.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        match self {
            Self::Folder(dir) => Some(dir.join(SIDE_FILES[0])),
            Self::Memory => None,
        }
    }

    /// The folder of the locks that servers hold as long as they live, with its path.
    pub(crate) fn servers(&self) -> Option<(io::Result<StateFolder>, PathBuf)> {
        match self {
            Self::Folder(dir) => {
                let servers = StateFolder::open(dir).and_then(|folder| folder.folder(SERVERS));
                Some((servers, dir.join(SERVERS)))
            }
            Self::Memory => None,
        }
    }

    /// Translates an SQLite error for the operator.
    #[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
    pub(crate) fn failure(&self, error: rusqlite::Error) -> DatabaseError {
        let place = self.to_string();
        let problem = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => DatabaseError::DiskFull { place },
            Some(ErrorCode::SystemIoFailure) => DatabaseError::Disk { place, problem },
            Some(ErrorCode::ReadOnly) => DatabaseError::ReadOnly { place },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                DatabaseError::Locked { place, seconds: LOCK_TIMEOUT.as_secs() }
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                DatabaseError::Corrupt { place, problem }
            }
            _ => DatabaseError::Failed { place, problem },
        }
    }
}

/// Translates a file system error for the operator.
pub(crate) fn file_failure(path: &Path, error: &io::Error) -> DatabaseError {
    let place = path.display().to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            DatabaseError::DiskFull { place }
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            DatabaseError::ReadOnly { place }
        }
        _ => DatabaseError::Failed { place, problem: error.to_string() },
    }
}

impl fmt::Display for DatabaseLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file() {
            Some(file) => write!(f, "the database {}", file.display()),
            None => f.write_str("the database in memory"),
        }
    }
}

/// Creates the folders and the file (modes 0700 and 0600) and takes the lock under which the database is opened. Fails
/// if processes cannot share a database on this file system.
pub(crate) fn prepare(dir: &Path) -> Result<File, DatabaseError> {
    if let Some(kind) = network_file_system(dir) {
        let problem = format!(
            "it is {kind}, a network file system, on which SQLite's write-ahead log does not work"
        );
        return Err(DatabaseError::Unfit { dir: dir.display().to_string(), problem });
    }
    let folder = StateFolder::open(dir)
        .and_then(|folder| StateFolder::refuse_links(dir).map(|()| folder))
        .map_err(|error| file_failure(dir, &error))?;
    let opening = locked(&folder, dir)?;
    folder.folder(SERVERS).map_err(|error| file_failure(&dir.join(SERVERS), &error))?;
    folder.ensure(FILE).map_err(|error| file_failure(&dir.join(FILE), &error))?;
    check_files(&folder, dir)?;
    for name in SIDE_FILES.into_iter().chain([FILE]) {
        let path = dir.join(name);
        let mended = folder.make_file_private(name).map_err(|error| file_failure(&path, &error))?;
        if let Some(mode) = mended {
            tracing::warn!(
                file = %path.display(),
                "a file in the state folder had mode {mode:03o}, which gives other users access: \
                 changed it to 600"
            );
        }
    }
    Ok(opening)
}

/// Whether the folder has a database. Fails if SQLite must not open one of its files.
pub(crate) fn is_there(dir: &Path) -> Result<bool, DatabaseError> {
    match StateFolder::open(dir) {
        Ok(folder) => check_files(&folder, dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_failure(dir, &error)),
    }
}

/// SQLite follows no links, but gives the files beside the database to the database's owner.
fn check_files(folder: &StateFolder, dir: &Path) -> Result<bool, DatabaseError> {
    let is_there =
        |name: &str| folder.is_there(name).map_err(|error| file_failure(&dir.join(name), &error));
    for beside in SIDE_FILES {
        is_there(beside)?;
    }
    is_there(FILE)
}

/// Locks a file, and checks that the lock keeps other processes out.
fn locked(folder: &StateFolder, dir: &Path) -> Result<File, DatabaseError> {
    let unfit = |problem: String| DatabaseError::Unfit { dir: dir.display().to_string(), problem };
    let path = dir.join(OPENING);
    let open = || folder.file(OPENING).map_err(|error| file_failure(&path, &error));
    let file = open()?;
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                let place = path.display().to_string();
                return Err(DatabaseError::Locked { place, seconds: LOCK_TIMEOUT.as_secs() });
            }
            Err(TryLockError::Error(error)) => {
                return Err(unfit(format!("it has no file locks ({error})")));
            }
        }
    }
    match open()?.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(file),
        Ok(()) | Err(TryLockError::Error(_)) => {
            Err(unfit("its file locks have no effect".to_owned()))
        }
    }
}

/// The kind of network file system that holds a folder, if it is one on which a write-ahead log is known to fail.
#[cfg(target_os = "linux")]
fn network_file_system(dir: &Path) -> Option<&'static str> {
    let found = rustix::fs::statfs(dir).ok()?;
    // The magic numbers of `statfs(2)`; the width of the field depends on the machine.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "32 bits of a number"
    )]
    network_kind(found.f_type as u32)
}

#[cfg(target_os = "linux")]
fn network_kind(number: u32) -> Option<&'static str> {
    match number {
        0x6969 => Some("NFS"),
        0x517B => Some("SMB"),
        0xFF53_4D42 => Some("CIFS"),
        0xFE53_4D42 => Some("SMB2"),
        0x5346_414F => Some("AFS"),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognized_and_local_ones_are_not() {
        assert_eq!(network_kind(0x6969), Some("NFS"));
        assert_eq!(network_kind(0xFE53_4D42), Some("SMB2"));
        for local in [0xEF53, 0x0102_1994, 0x9123_683E, 0x794C_7630] {
            assert_eq!(network_kind(local), None, "{local:x}");
        }
        let home = tempfile::tempdir().unwrap();
        assert_eq!(network_file_system(home.path()), None);
    }

    #[test]
    fn a_refused_file_system_names_the_setting_and_an_alternative() {
        let error = DatabaseError::Unfit { dir: "/net/state".to_owned(), problem: "x".to_owned() };
        let text = error.to_string();
        assert!(text.contains("/net/state") && text.contains("`state.dir`"), "{text}");
        assert!(text.contains("local disk") && text.contains("none"), "{text}");
    }
}
