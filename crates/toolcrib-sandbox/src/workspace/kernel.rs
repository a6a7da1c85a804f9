//! Linux-only functions: looking up a path beneath a folder in one call, holding a folder without
//! reading it, and finding the path of a descriptor. Elsewhere they fail.

pub(crate) use system::path_of;
pub(super) use system::{HELD, beneath};

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::OsStr;
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2, readlinkat};
    use rustix::io::Errno;

    use crate::workspace::tree::TRIES;

    /// The flag for opening a file without access to its content.
    pub(crate) const HELD: Option<OFlags> = Some(OFlags::PATH);

    /// Calls `openat2`, repeatedly if it is interrupted.
    pub(crate) fn beneath(
        root: BorrowedFd<'_>,
        path: &str,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
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

    /// The current path of an open descriptor, from the kernel.
    pub(crate) fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let path = readlinkat(CWD, link, Vec::with_capacity(256))?;
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        // In another mount namespace or root, the path is "(unreachable)/…".
        if path.is_absolute() { Ok(path.to_owned()) } else { Err(Errno::NOENT) }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::path::PathBuf;

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    pub(crate) const HELD: Option<OFlags> = None;

    pub(crate) fn beneath(_: BorrowedFd<'_>, _: &str, _: OFlags) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }

    pub(crate) fn path_of(_: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        Err(Errno::NOSYS)
    }
}
