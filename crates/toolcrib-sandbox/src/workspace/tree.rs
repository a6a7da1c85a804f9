//! Opens files below one folder: the kernel refuses every way out, or, where it cannot, paths are
//! resolved step by step.

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

/// The maximum number of lookups if others rename files meanwhile.
pub(super) const TRIES: u32 = 64;

/// How paths are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// By the kernel, in one call that cannot leave the root.
    Kernel,
    /// One component at a time, following links in this process: for kernels and sandboxes without
    /// `openat2`, and without `/proc`, which shows the path of a descriptor.
    Steps,
    /// The same, without Linux-only functions.
    Portable,
}

impl Lookup {
    /// The flags for opening a folder on the way.
    fn folder(self) -> OFlags {
        let held = HELD.filter(|_| self != Self::Portable);
        // Without that flag, opening needs read permission and must not wait for a FIFO that took
        // the folder's place.
        let flags = held.unwrap_or(OFlags::RDONLY | OFlags::NONBLOCK);
        flags | OFlags::DIRECTORY | OFlags::CLOEXEC
    }
}

/// An open folder, with everything below it.
#[derive(Debug)]
pub(super) struct FolderTree {
    root: OwnedFd,
    lookup: Lookup,
}

/// An opened file or folder.
#[derive(Debug)]
pub(super) struct OpenedPath {
    pub(super) fd: OwnedFd,
    /// Its path, if the lookup determined it.
    place: Option<PathBuf>,
}

impl FolderTree {
    /// Opens the root by its path, which is the only time that a path from outside is followed.
    /// Paths are resolved in the given way, or otherwise in the best available one.
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
            // Not every system counts the names of a folder, so this checks whether it is still at
            // its path.
            Lookup::Portable => stat(root).map_or(true, |now| identity(&now) != identity(&held)),
        }
    }

    /// Opens an entry below the root; `flags` as for `openat`.
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

    /// Opens a folder on the way.
    pub(super) fn folder(&self, wanted: &RequestedPath) -> Result<OpenedPath, WorkspaceError> {
        self.find(wanted, self.lookup.folder())
    }

    /// The entry at a path, which need not be readable, and its resolved path if requested.
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

    /// The path of an opened entry from the root, without links.
    pub(super) fn place(&self, opened: &OpenedPath) -> Result<PathBuf, WorkspaceError> {
        if let Some(place) = &opened.place {
            return Ok(place.clone());
        }
        let (root, path) = (path_of(self.root())?, path_of(opened.fd.as_fd())?);
        // It was moved out of the root since it was opened.
        let place = path.strip_prefix(root).map_err(|_| WorkspaceError::Outside)?;
        Ok(place.to_owned())
    }

    /// The resolved path, as far as it exists, of an entry that could not be opened.
    pub(super) fn place_of_missing(&self, wanted: &RequestedPath) -> PathBuf {
        self.look_in_steps(wanted).1
    }

    /// Opens an entry with the kernel's resolution, if that is used.
    fn by_kernel(&self, wanted: &RequestedPath, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
        if self.lookup != Lookup::Kernel {
            return Ok(None);
        }
        match beneath(self.root(), &wanted.text(), flags) {
            // Any rename on the machine makes the kernel give up on a path with `..`. If renames
            // never stop, the walk is as safe and succeeds.
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

    /// Walks, repeatedly if somebody renames folders on the way.
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
