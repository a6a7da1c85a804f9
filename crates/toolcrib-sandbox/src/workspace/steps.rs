//! Looking a path up component by component, for where the kernel cannot do it in one call.
//!
//! No component is ever opened through a link: links are read, and what they say is walked in the
//! same way. `..` goes back to the folder the walk came from and never asks the file system, so
//! that a folder that is moved meanwhile leads nowhere new.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::WorkspaceError;
use super::wanted::Wanted;

/// As many links as the kernel follows.
const MAX_LINKS: u32 = 40;

/// Opens what a path names, and says where that is: from the root, with no link in it. What could
/// not be opened is said to be where it would be.
pub(super) fn walk(
    root: BorrowedFd<'_>,
    wanted: &Wanted,
    flags: OFlags,
) -> (Result<OwnedFd, WorkspaceError>, PathBuf) {
    let mut walk = Walk {
        root,
        folders: Vec::new(),
        ahead: wanted.names().iter().map(OsString::from).collect(),
        links: 0,
        must_be_folder: wanted.is_folder() || flags.contains(OFlags::DIRECTORY),
    };
    let found = walk.go(flags);
    let place = walk.folders.into_iter().map(|(name, _)| name).chain(walk.ahead).collect();
    (found, place)
}

struct Walk<'r> {
    root: BorrowedFd<'r>,
    /// The folders that were gone into, by name.
    folders: Vec<(OsString, OwnedFd)>,
    /// What is still to be walked.
    ahead: VecDeque<OsString>,
    links: u32,
    must_be_folder: bool,
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.folders.last().map_or(self.root, |(_, fd)| fd.as_fd())
    }

    fn go(&mut self, flags: OFlags) -> Result<OwnedFd, WorkspaceError> {
        let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        while let Some(name) = self.ahead.front().cloned() {
            if name == ".." {
                self.folders.pop().ok_or(WorkspaceError::Outside)?;
                self.ahead.pop_front();
                continue;
            }
            let fd = openat(self.here(), &*name, look, Mode::empty())?;
            let last = self.ahead.len() == 1;
            match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
                FileType::Symlink if last && flags.contains(OFlags::NOFOLLOW) => {
                    return self.open_last(&name, flags);
                }
                FileType::Symlink => self.follow(&fd)?,
                FileType::Directory => {
                    self.ahead.pop_front();
                    self.folders.push((name, fd));
                }
                _ if last && !self.must_be_folder => return self.open_last(&name, flags),
                _ => return Err(WorkspaceError::NotAFolder),
            }
        }
        // A folder: the walk is in it.
        Ok(openat(self.here(), c".", flags, Mode::empty())?)
    }

    fn open_last(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd, WorkspaceError> {
        match openat(self.here(), name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            // It has become a link since it was looked at.
            Err(Errno::LOOP) if !flags.contains(OFlags::NOFOLLOW) => Err(WorkspaceError::Busy),
            outcome => Ok(outcome?),
        }
    }

    /// Puts what a link says in its place.
    fn follow(&mut self, link: &OwnedFd) -> Result<(), WorkspaceError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(WorkspaceError::Loop);
        }
        let target = readlinkat(link, c"", Vec::with_capacity(256))?;
        let target = target.as_bytes();
        if target.first() == Some(&b'/') {
            return Err(WorkspaceError::Outside);
        }
        self.ahead.pop_front();
        self.must_be_folder |= self.ahead.is_empty()
            && (target.ends_with(b"/") || target.ends_with(b"/.") || target == b".");
        let names = target.split(|byte| *byte == b'/');
        let names = names.filter(|name| !name.is_empty() && *name != b".");
        for name in names.rev() {
            self.ahead.push_front(OsString::from_vec(OsStr::from_bytes(name).as_bytes().to_vec()));
        }
        Ok(())
    }
}
