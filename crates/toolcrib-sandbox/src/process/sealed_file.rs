//! Sealed files: immutable bytes as a file for programs.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

/// A sealed file in memory. Its content cannot change after it was checked, even if the original
/// file does. Cloning it is cheap.
///
/// A [`Command`](super::Command) passes it to the program as an open descriptor, which is named
/// `/proc/self/fd/N` there. The processes that the program starts inherit it.
///
/// ```
/// use toolcrib_sandbox::SealedFile;
///
/// let script = SealedFile::new(b"#!/bin/sh\necho hello\n")?;
/// # let _ = script;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SealedFile(Arc<File>);

impl SealedFile {
    /// Creates a file of these bytes. Fails if the system is short of memory or descriptors, or forbids executing files
    /// in memory (`vm.memfd_noexec` is 2).
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Before Linux 6.3, all such files may be executed, and the flag is unknown.
        let made = match memfd_create("sealed", flags | MemfdFlags::EXEC) {
            Err(Errno::INVAL) => memfd_create("sealed", flags),
            made => made,
        };
        let mut file = File::from(made?);
        file.write_all(bytes)?;
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        Ok(Self(Arc::new(file)))
    }

    /// Its first bytes, at most as many as fit.
    pub(crate) fn beginning(&self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(room, 0)
    }

    /// Duplicates its descriptor with a number above this one.
    pub(crate) fn above(&self, last: i32) -> io::Result<OwnedFd> {
        Ok(fcntl_dupfd_cloexec(self.0.as_fd(), last + 1)?)
    }
}

impl fmt::Debug for SealedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SealedFile").field(&self.0.as_raw_fd()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn nobody_changes_what_is_sealed() {
        let sealed = SealedFile::new(b"#!/bin/sh\n").unwrap();
        let path = format!("/proc/self/fd/{}", sealed.0.as_raw_fd());
        assert_eq!(std::fs::read(&path).unwrap(), b"#!/bin/sh\n");
        let mut again = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(again.write_all(b"x").is_err());
        assert!(again.set_len(0).is_err() && again.set_len(100).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"#!/bin/sh\n");
    }
}
