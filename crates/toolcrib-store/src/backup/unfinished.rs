//! The file of a backup until it is complete. If its process is killed, the next backup into the same folder removes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// How the names of unfinished backups begin and end.
const PREFIX: &str = ".toolcrib-backup-";
const SUFFIX: &str = ".part";

/// How the names of the files end that SQLite makes beside it.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// How many names are tried.
const TRIES: u32 = 64;

/// An unfinished backup, locked as long as its process works on it, and removed on drop.
pub(super) struct UnfinishedBackup {
    path: PathBuf,
    _locked: File,
}

impl UnfinishedBackup {
    /// Creates an empty file (mode 0600) in a folder, and removes those that killed processes have left there.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        remove_abandoned(folder)?;
        let process = std::process::id();
        for number in 0..TRIES {
            let path = folder.join(format!("{PREFIX}{process}-{number}{SUFFIX}"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    // Another backup may have taken it for an abandoned one in this moment.
                    if file.try_lock().is_ok() && file.metadata()?.nlink() == 1 {
                        return Ok(Self { path, _locked: file });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("no name for the unfinished copy is free there"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnfinishedBackup {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes unfinished backups of this user that no process has locked.
fn remove_abandoned(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        let own = COMPANIONS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let path = folder.join(own);
        if own.ends_with(SUFFIX) && (!path.exists() || is_abandoned(&path)) {
            remove(&path);
        }
    }
    Ok(())
}

/// Removes an unfinished backup. If that fails, another one has removed it, or the next one does.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    for end in COMPANIONS {
        let mut companion = path.as_os_str().to_owned();
        companion.push(end);
        let _ = fs::remove_file(companion);
    }
}

/// Opens a file for reading without following a link or waiting for a pipe or a terminal.
pub(super) fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(file) = open_at_once(path) else { return false };
    let own = rustix::process::geteuid().as_raw();
    let is_own = file.metadata().is_ok_and(|found| found.is_file() && found.uid() == own);
    is_own && !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}
