//! Opening what is below one folder, and nothing else: the kernel is told to refuse every way out.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::WorkspaceError;
use super::steps;
use super::wanted::Wanted;

/// How often a lookup is tried that the kernel gave up because something was renamed meanwhile.
const TRIES: u32 = 64;

/// How paths are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// By the kernel, in one call that cannot leave the root.
    Kernel,
    /// A component at a time, following links ourselves: for kernels and sandboxes without
    /// `openat2`, and where `/proc` is missing, which tells where an open descriptor is.
    Steps,
}

/// A folder that is held open, and everything below it.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
    lookup: Lookup,
}

/// Something that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) fd: OwnedFd,
    /// Where it is, if the lookup has found out.
    place: Option<PathBuf>,
}

impl Tree {
    /// Opens the root, by its path: the only time that a path from outside is followed.
    pub(super) fn open(root: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, root, flags, Mode::empty())?;
        let asked = beneath(root.as_fd(), ".", flags);
        let lookup = match asked.and_then(|_| path_of(root.as_fd())) {
            Ok(_) => Lookup::Kernel,
            Err(_) => Lookup::Steps,
        };
        Ok(Self { root, lookup })
    }

    pub(super) fn with_lookup(mut self, lookup: Lookup) -> Self {
        self.lookup = lookup;
        self
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens something below the root; `flags` as for `openat`.
    pub(super) fn find(&self, wanted: &Wanted, flags: OFlags) -> Result<Opened, WorkspaceError> {
        let flags = flags | OFlags::CLOEXEC;
        match self.lookup {
            Lookup::Kernel => match beneath(self.root(), &wanted.text(), flags) {
                // Anything that is renamed anywhere on the machine makes the kernel give up a path
                // that goes up; where that never stops, the walk is as safe and gets there.
                Err(Errno::AGAIN) => self.find_in_steps(wanted, flags),
                outcome => Ok(Opened { fd: outcome?, place: None }),
            },
            Lookup::Steps => self.find_in_steps(wanted, flags),
        }
    }

    fn find_in_steps(&self, wanted: &Wanted, flags: OFlags) -> Result<Opened, WorkspaceError> {
        let (fd, place) = again(|| steps::walk(self.root(), wanted, flags));
        Ok(Opened { fd: fd?, place: Some(place) })
    }

    /// Opens a folder, to go on from.
    pub(super) fn folder(&self, wanted: &Wanted) -> Result<Opened, WorkspaceError> {
        self.find(wanted, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// Where something that was opened is, from the root, with no link in it.
    pub(super) fn place(&self, opened: &Opened) -> Result<PathBuf, WorkspaceError> {
        if let Some(place) = &opened.place {
            return Ok(place.clone());
        }
        let (root, path) = (path_of(self.root())?, path_of(opened.fd.as_fd())?);
        // It was moved out since it was opened.
        let place = path.strip_prefix(root).map_err(|_| WorkspaceError::Outside)?;
        Ok(place.to_owned())
    }

    /// Where a path would be, as far as it exists, that could not be opened.
    pub(super) fn place_of_missing(&self, wanted: &Wanted) -> PathBuf {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        again(|| steps::walk(self.root(), wanted, flags)).1
    }
}

/// A walk, as often as it takes while somebody renames what it goes over.
fn again(
    walk: impl Fn() -> (Result<OwnedFd, WorkspaceError>, PathBuf),
) -> (Result<OwnedFd, WorkspaceError>, PathBuf) {
    let mut found = walk();
    for _ in 1..TRIES {
        if !matches!(found.0, Err(WorkspaceError::Busy)) {
            break;
        }
        found = walk();
    }
    found
}

/// `openat2`, as often as it takes; never by name alone.
fn beneath(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        tries += 1;
        match openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => {}
            outcome => return outcome,
        }
    }
}

/// Where an open descriptor is now, as the kernel says it.
fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = readlinkat(CWD, link, Vec::with_capacity(256))?;
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    // In another mount namespace or root it is "(unreachable)/…".
    if path.is_absolute() { Ok(path.to_owned()) } else { Err(Errno::NOENT) }
}
