//! Resolves a path component by component, where the kernel cannot do it in one call.
//!
//! No component is opened through a link: links are read, and their targets are resolved in the
//! same way. `..` returns to the folder that the walk came from and never asks the file system, so
//! a folder that is moved meanwhile cannot redirect the walk.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::WorkspaceError;
use super::wanted::RequestedPath;

/// As many links as Linux follows.
const MAX_LINKS: u32 = 40;

/// Resolves a path, and returns the resolved path from the root, without links. The unreachable
/// rest is appended as it is.
///
/// `flags` are for opening folders on the way. `end` gets the last folder and the name in it, or
/// `.` for the folder itself; it must not follow a link, and fails with `LOOP` for one.
pub(super) fn walk<T>(
    root: BorrowedFd<'_>,
    wanted: &RequestedPath,
    must_be_folder: bool,
    flags: OFlags,
    end: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
) -> (Result<T, WorkspaceError>, PathBuf) {
    let mut walk = PathWalk {
        root,
        folders: Vec::new(),
        ahead: wanted.names().iter().map(OsString::from).collect(),
        links: 0,
        must_be_folder: must_be_folder || wanted.is_folder(),
        flags: flags | OFlags::NOFOLLOW,
    };
    let found = walk.go(end);
    let place = walk.folders.into_iter().map(|(name, _)| name).chain(walk.ahead).collect();
    (found, place)
}

struct PathWalk<'r> {
    root: BorrowedFd<'r>,
    /// The folders that were entered, by name.
    folders: Vec<(OsString, OwnedFd)>,
    /// The remaining components.
    ahead: VecDeque<OsString>,
    links: u32,
    must_be_folder: bool,
    flags: OFlags,
}

impl PathWalk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.folders.last().map_or(self.root, |(_, fd)| fd.as_fd())
    }

    fn go<T>(
        &mut self,
        end: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
    ) -> Result<T, WorkspaceError> {
        while let Some(name) = self.ahead.front().cloned() {
            if name == ".." {
                self.folders.pop().ok_or(WorkspaceError::Outside)?;
                self.ahead.pop_front();
                continue;
            }
            match openat(self.here(), &*name, self.flags, Mode::empty()) {
                Ok(folder) => {
                    self.ahead.pop_front();
                    self.folders.push((name, folder));
                }
                // A link, or not a folder: systems return different errors for a link.
                Err(refused) if refused == Errno::NOTDIR || is_of_link(refused) => {
                    match readlinkat(self.here(), &*name, Vec::with_capacity(256)) {
                        Ok(target) => self.follow(target.as_bytes())?,
                        Err(Errno::INVAL) if is_of_link(refused) => {
                            return Err(WorkspaceError::Busy);
                        }
                        Err(Errno::INVAL) if self.ahead.len() > 1 || self.must_be_folder => {
                            return Err(WorkspaceError::NotAFolder);
                        }
                        Err(Errno::INVAL) => {
                            return end(self.here(), &name).map_err(|errno| {
                                // It was replaced by a link in the meantime.
                                if is_of_link(errno) { WorkspaceError::Busy } else { errno.into() }
                            });
                        }
                        Err(errno) => return Err(errno.into()),
                    }
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        // The walk enters the folder.
        Ok(end(self.here(), OsStr::new("."))?)
    }

    /// Replaces a link by its target.
    fn follow(&mut self, target: &[u8]) -> Result<(), WorkspaceError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(WorkspaceError::Loop);
        }
        if target.first() == Some(&b'/') {
            return Err(WorkspaceError::Outside);
        }
        self.ahead.pop_front();
        self.must_be_folder |= self.ahead.is_empty()
            && (target.ends_with(b"/") || target.ends_with(b"/.") || target == b".");
        let names = target.split(|byte| *byte == b'/');
        let names = names.filter(|name| !name.is_empty() && *name != b".");
        for name in names.rev() {
            self.ahead.push_front(OsStr::from_bytes(name).to_owned());
        }
        Ok(())
    }
}

/// Whether opening failed because the entry is a link; FreeBSD returns `MLINK`.
pub(super) fn is_of_link(errno: Errno) -> bool {
    matches!(errno, Errno::LOOP | Errno::MLINK)
}
