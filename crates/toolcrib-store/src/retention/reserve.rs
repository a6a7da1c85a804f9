//! A file that holds some space of the disk, so that old entries can be removed when the disk is full.

use std::io::{self, Write as _};
use std::path::Path;

use crate::folder::StateFolder;
use crate::folder::location::DatabaseLocation;

/// The name of the file in the state folder.
const FILE: &str = "toolcrib.db-reserve";

/// Its size: room in the write-ahead log for a few steps, and in the file for what was only in the log.
const BYTES: u64 = 1024 * 1024;

/// It is created only if this many times as much is free.
const TIMES_FREE: u64 = 16;

/// Creates the file, unless it exists or the disk is nearly full.
pub(crate) fn keep(place: &DatabaseLocation) {
    let DatabaseLocation::Folder(dir) = place else { return };
    let kept = || -> io::Result<()> {
        let folder = StateFolder::open(dir)?;
        if !folder.is_there(FILE)? && free_bytes(dir)? >= BYTES * TIMES_FREE {
            let written = folder.new_file(FILE).and_then(|file| fill(&file));
            if written.is_err() {
                folder.remove(FILE)?;
            }
            return written;
        }
        Ok(())
    };
    if let Err(error) = kept() {
        tracing::debug!(%error, "no space is reserved for a full disk");
    }
}

/// Whether the file is there, so that the disk has some room. A database in memory needs none.
pub(crate) fn is_kept(place: &DatabaseLocation) -> bool {
    let DatabaseLocation::Folder(dir) = place else { return true };
    StateFolder::open(dir).and_then(|folder| folder.is_there(FILE)).unwrap_or(false)
}

/// Removes the file. Says whether that freed something.
pub(crate) fn release(place: &DatabaseLocation) -> bool {
    let DatabaseLocation::Folder(dir) = place else { return false };
    StateFolder::open(dir).and_then(|folder| folder.remove(FILE)).is_ok()
}

/// What this user may still write on a folder's file system.
pub(crate) fn free_bytes(dir: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(dir)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Writes bytes that no file system stores as a hole.
fn fill(mut file: &std::fs::File) -> io::Result<()> {
    let chunk = [0xAA; 4096];
    for _ in 0..BYTES / 4096 {
        file.write_all(&chunk)?;
    }
    file.sync_all()
}
