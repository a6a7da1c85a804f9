//! A resolved folder and one name in it: the target of every change.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, mkdirat, statat};
use rustix::io::Errno;

use super::entry::identity;
use super::guard::Operation;
use super::locks::{LockKey, LockMode, Locked};
use super::names::folded;
use super::wanted::RequestedPath;
use super::{Workspace, WorkspaceError};

/// How long an operation waits for other operations on the same file.
const PATIENCE: Duration = Duration::from_secs(10);

/// A name in an open folder.
pub(super) struct FolderEntry {
    pub(super) folder: OwnedFd,
    pub(super) name: String,
    /// Its path from the root, without links on the way; the name itself may be a link.
    pub(super) place: PathBuf,
}

impl FolderEntry {
    /// The current entry of the name, not following links; `None` if it does not exist.
    pub(super) fn stat(&self) -> Result<Option<Stat>, WorkspaceError> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Workspace {
    /// Resolves the folder of a path that will be changed, and checks that the change is allowed.
    pub(super) fn spot(&self, wanted: &RequestedPath) -> Result<FolderEntry, WorkspaceError> {
        let Some((folder, name)) = wanted.split() else {
            // For a path that ends in the root or contains `..`, an error may be specific only if
            // the path stays inside.
            self.folder(wanted, Operation::Look)?;
            return Err(WorkspaceError::IsAFolder);
        };
        if let Some(place) = wanted.plain() {
            self.guard.check(&place, Operation::Change)?;
        }
        let (folder, place) = self.folder(&folder, Operation::Look)?;
        let place = place.join(name);
        self.guard.check(&place, Operation::Change)?;
        Ok(FolderEntry { folder, name: name.to_owned(), place })
    }

    /// Like [`spot`](Self::spot), but creates missing folders on the way.
    pub(super) fn spot_to_make(
        &self,
        wanted: &RequestedPath,
    ) -> Result<FolderEntry, WorkspaceError> {
        match self.spot(wanted) {
            Err(WorkspaceError::NotFound) if !wanted.climbs() => {
                if let Some((folder, _)) = wanted.split() {
                    self.make_folders(&folder)?;
                }
                self.spot(wanted)
            }
            outcome => outcome,
        }
    }

    /// Opens a folder on the way, and returns its path too.
    pub(super) fn folder(
        &self,
        wanted: &RequestedPath,
        access: Operation,
    ) -> Result<(OwnedFd, PathBuf), WorkspaceError> {
        let opened = self.tree.folder(wanted).map_err(|error| self.telling(error, wanted))?;
        let place = self.tree.place(&opened)?;
        self.guard.check(&place, access)?;
        Ok((opened.fd, place))
    }

    /// Creates a folder and its missing parents. Returns whether any had to be created.
    pub(super) fn make_folders(&self, wanted: &RequestedPath) -> Result<bool, WorkspaceError> {
        let mut made = false;
        let (mut here, mut place) = self.folder(&wanted.first(0), Operation::Look)?;
        for (count, name) in wanted.names().iter().enumerate() {
            let next = wanted.first(count + 1);
            let found = match self.folder(&next, Operation::Look) {
                // Folders are not created for a path with `..`.
                Err(WorkspaceError::NotFound) if !next.climbs() => {
                    self.guard.check(&place.join(name), Operation::Change)?;
                    match mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) => made = true,
                        // Another process created it first; or it is a dangling link.
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                    self.folder(&next, Operation::Look)
                }
                found => found,
            };
            (here, place) = found?;
        }
        Ok(made)
    }

    /// The error for a path that cannot be opened, which reveals nothing about refused places.
    pub(super) fn telling(&self, error: WorkspaceError, wanted: &RequestedPath) -> WorkspaceError {
        if error.is_refusal() || !self.guard.concerns(Operation::Look) {
            return error;
        }
        let place = self.tree.place_of_missing(wanted);
        self.guard.check(&place, Operation::Look).err().unwrap_or(error)
    }

    pub(super) fn lock(
        &self,
        folder: &OwnedFd,
        name: &str,
        mode: LockMode,
    ) -> Result<Locked, WorkspaceError> {
        let stat = fstat(folder)?;
        let (device, folder) = identity(&stat);
        // Operations on names that may refer to one file wait for each other.
        let key = LockKey { device, folder, name: folded(name) };
        let locked = self.locks.lock([(key, mode)], Instant::now() + PATIENCE);
        locked.ok_or(WorkspaceError::Busy)
    }
}

/// The displayed form of a name, whatever its bytes; control characters are escaped.
pub(super) fn shown(name: &OsStr) -> String {
    let text = name.to_string_lossy();
    let escape =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(escape) {
        return text.into_owned();
    }
    let mut plain = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if escape(c) { plain.extend(c.escape_unicode()) } else { plain.push(c) }
    }
    plain
}

/// The flags for opening a file to read it: the call does not wait, and a terminal does not become
/// the controlling one.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
