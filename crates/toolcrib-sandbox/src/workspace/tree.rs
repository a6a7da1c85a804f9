//! Opening files beneath one folder: the kernel refuses every way out, or, where it cannot, paths
//! are walked step by step.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, stat, statat};
use rustix::io::Errno;

use super::WorkspaceError;
use super::entry::identity;
use super::kernel::{HELD, beneath, path_of};
use super::steps;
use super::wanted::RequestedPath;

/// How often a lookup is tried that was given up because something was renamed meanwhile.
pub(super) const TRIES: u32 = 64;

/// How paths are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// By the kernel, in one call that cannot leave the root.
    Kernel,
    /// A component at a time, following links ourselves: for kernels and sandboxes without
    /// `openat2`, and where `/proc` is missing, which tells where an open descriptor is.
    Steps,
    /// The same with nothing that only Linux has.
    Portable,
}

impl Lookup {
    /// The flags that a folder is opened with, to go on from.
    fn folder(self) -> OFlags {
        let held = HELD.filter(|_| self != Self::Portable);
        // Without, it needs the right to read the folder, and must not wait for a FIFO in its place.
        let flags = held.unwrap_or(OFlags::RDONLY | OFlags::NONBLOCK);
        flags | OFlags::DIRECTORY | OFlags::CLOEXEC
    }
}

/// A folder that is held open, and everything below it.
#[derive(Debug)]
pub(super) struct FolderTree {
    root: OwnedFd,
    lookup: Lookup,
}

/// Something that was opened.
#[derive(Debug)]
pub(super) struct OpenedPath {
    pub(super) fd: OwnedFd,
    /// Where it is, if the lookup has found out.
    place: Option<PathBuf>,
}

impl FolderTree {
    /// Opens the root, by its path: the only time that a path from outside is followed. Paths are
    /// looked up in this way, or else in the best that there is.
    pub(super) fn open(root: &Path, lookup: Option<Lookup>) -> Result<Self, Errno> {
        let best = if HELD.is_some() { Lookup::Kernel } else { Lookup::Portable };
        let flags = lookup.unwrap_or(best).folder();
        let root = openat(CWD, root, flags, Mode::empty())?;
        let lookup = lookup.unwrap_or_else(|| {
            let asked = beneath(root.as_fd(), ".", flags).and_then(|_| path_of(root.as_fd()));
            if best == Lookup::Kernel && asked.is_err() { Lookup::Steps } else { best }
        });
        Ok(Self { root, lookup })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Whether the root, which was opened by this path, was deleted.
    pub(super) fn is_gone(&self, root: &Path) -> bool {
        let Ok(held) = fstat(self.root()) else { return true };
        match self.lookup {
            Lookup::Kernel | Lookup::Steps => held.st_nlink == 0,
            // Not every system counts the names of a folder: whether it is still where it was.
            Lookup::Portable => stat(root).map_or(true, |now| identity(&now) != identity(&held)),
        }
    }

    /// Opens something below the root; `flags` as for `openat`.
    pub(super) fn find(
        &self,
        wanted: &RequestedPath,
        flags: OFlags,
    ) -> Result<OpenedPath, WorkspaceError> {
        let flags = flags | OFlags::CLOEXEC;
        if let Some(fd) = self.by_kernel(wanted, flags)? {
            return Ok(OpenedPath { fd, place: None });
        }
        let is_folder = flags.contains(OFlags::DIRECTORY);
        let (fd, place) = self.in_steps(wanted, is_folder, |folder, name| {
            openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())
        });
        Ok(OpenedPath { fd: fd?, place: Some(place) })
    }

    /// Opens a folder, to go on from.
    pub(super) fn folder(&self, wanted: &RequestedPath) -> Result<OpenedPath, WorkspaceError> {
        self.find(wanted, self.lookup.folder())
    }

    /// What is at a path, which need not be readable, and where that is, if it is to be told.
    pub(super) fn look(
        &self,
        wanted: &RequestedPath,
        placed: bool,
    ) -> Result<(Stat, Option<PathBuf>), WorkspaceError> {
        if let Some(flags) = HELD
            && let Some(fd) = self.by_kernel(wanted, flags | OFlags::CLOEXEC)?
        {
            let stat = fstat(&fd)?;
            let opened = OpenedPath { fd, place: None };
            return Ok((stat, if placed { Some(self.place(&opened)?) } else { None }));
        }
        let (stat, place) = self.look_in_steps(wanted);
        Ok((stat?, Some(place)))
    }

    /// Where something that was opened is, from the root, with no link in it.
    pub(super) fn place(&self, opened: &OpenedPath) -> Result<PathBuf, WorkspaceError> {
        if let Some(place) = &opened.place {
            return Ok(place.clone());
        }
        let (root, path) = (path_of(self.root())?, path_of(opened.fd.as_fd())?);
        // It was moved out since it was opened.
        let place = path.strip_prefix(root).map_err(|_| WorkspaceError::Outside)?;
        Ok(place.to_owned())
    }

    /// Where a path would be, as far as it exists, that could not be opened.
    pub(super) fn place_of_missing(&self, wanted: &RequestedPath) -> PathBuf {
        self.look_in_steps(wanted).1
    }

    /// Opens something by the kernel, if that is who looks paths up.
    fn by_kernel(&self, wanted: &RequestedPath, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
        if self.lookup != Lookup::Kernel {
            return Ok(None);
        }
        match beneath(self.root(), &wanted.text(), flags) {
            // Anything that is renamed anywhere on the machine makes the kernel give up a path
            // that goes up; where that never stops, the walk is as safe and gets there.
            Err(Errno::AGAIN) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn look_in_steps(&self, wanted: &RequestedPath) -> (Result<Stat, WorkspaceError>, PathBuf) {
        self.in_steps(wanted, false, |folder, name| {
            let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(Errno::LOOP),
                _ => Ok(stat),
            }
        })
    }

    /// A walk, as often as it takes while somebody renames what it goes over.
    fn in_steps<T>(
        &self,
        wanted: &RequestedPath,
        must_be_folder: bool,
        end: impl Fn(BorrowedFd<'_>, &OsStr) -> Result<T, Errno>,
    ) -> (Result<T, WorkspaceError>, PathBuf) {
        let flags = self.lookup.folder();
        let walk = || steps::walk(self.root(), wanted, must_be_folder, flags, &end);
        let mut found = walk();
        for _ in 1..TRIES {
            if !matches!(found.0, Err(WorkspaceError::Busy)) {
                break;
            }
            found = walk();
        }
        found
    }
}
