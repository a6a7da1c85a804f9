//! The private scratch directory, which is a program's HOME and TMPDIR.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::SpawnError;
use super::cookie::Cookie;
use super::emptying::{LONGEST, empty};

/// The prefix of the names of all scratch directories; a cookie follows.
const PREFIX: &str = "toolcrib-";
/// The number of hexadecimal digits of the cookie.
const DIGITS: usize = 32;
/// The maximum time that an answer waits for the removal of a scratch directory's content.
const WAIT: Duration = Duration::from_secs(1);
/// The maximum number of attempts to create a directory that a sweep removes as stale.
const TRIES: usize = 8;

/// A new directory with mode 0700; dropping it removes it with its content.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
    /// Open and locked as long as it is in use. A directory without a lock was left behind.
    directory: OwnedFd,
    removed: bool,
}

impl ScratchDir {
    /// Creates one in the server's directory for temporary files.
    pub(crate) fn new(cookie: &Cookie) -> Result<Self, SpawnError> {
        let temporary = std::env::temp_dir();
        let path = temporary.join(format!("{PREFIX}{}", cookie.as_str()));
        for _ in 0..TRIES {
            // mkdir fails if the name exists, even as a symbolic link, so nobody can have prepared
            // this directory.
            let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| {
                let held =
                    open(&path).and_then(|directory| Ok(lock(&directory)?.then_some(directory)));
                // Nobody knows of it, so nobody else would remove it.
                held.inspect_err(|_| drop(fs::remove_dir(&path)))
            });
            match made {
                Ok(Some(directory)) => return Ok(Self { path, directory, removed: false }),
                // Another server's sweep removed it in between.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && temporary.is_dir() => {}
                Err(source) => return Err(SpawnError::Scratch { path, source }),
            }
        }
        let source = io::Error::from(io::ErrorKind::ResourceBusy);
        Err(SpawnError::Scratch { path, source })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it if the program left nothing in it, which is the usual case, and cheap.
    pub(crate) fn remove_if_empty(&mut self) -> bool {
        self.removed = self.removed || fs::remove_dir(&self.path).is_ok();
        self.removed
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if self.remove_if_empty() {
            return;
        }
        // A failure here cannot be reported. The next server that starts removes the rest.
        empty(&self.directory, Instant::now() + LONGEST);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes a directory that is not empty, outside of the runtime's threads. The removal of a large one continues after
/// this has returned, so that no answer waits for it.
pub(crate) async fn remove_full(scratch: ScratchDir) {
    // If the runtime is shutting down, the closure is dropped, which removes the directory as well.
    let _ = timeout(WAIT, spawn_blocking(move || drop(scratch))).await;
}

/// Removes the scratch directories that killed servers of this user left behind. Directories of
/// running servers and programs stay, and so does everything that belongs to another user or has
/// another name. Returns how many it removed.
///
/// It may take some time, so call it on its own thread.
pub fn sweep_scratch() -> usize {
    sweep(&std::env::temp_dir())
}

fn sweep(temporary: &Path) -> usize {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_scratch));
    named.filter(|entry| remove_left_behind(&entry.path()).is_ok_and(|removed| removed)).count()
}

fn is_scratch(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|cookie| {
        cookie.len() == DIGITS && cookie.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Removes one directory unless it is in use or somebody else's.
fn remove_left_behind(path: &Path) -> io::Result<bool> {
    let directory = open(path)?;
    if fstat(&directory)?.st_uid != rustix::process::geteuid().as_raw() || !lock(&directory)? {
        return Ok(false);
    }
    empty(&directory, Instant::now() + LONGEST);
    fs::remove_dir(path)?;
    Ok(true)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Locks a directory for this process; `false` if it is in use, or gone meanwhile.
fn lock(directory: &OwnedFd) -> io::Result<bool> {
    match flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(fstat(directory)?.st_nlink > 0),
        Err(Errno::AGAIN) => Ok(false),
        // A file system without locks: its directories are not swept either.
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn scratch_is_private_and_goes_with_all_it_holds_even_write_protected() {
        let scratch = ScratchDir::new(&Cookie::new().unwrap()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(path.join("cache/below")).unwrap();
        fs::write(path.join("cache/below/file"), "x").unwrap();
        for protected in ["cache/below", "cache"] {
            fs::set_permissions(path.join(protected), fs::Permissions::from_mode(0o500)).unwrap();
        }
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_killed_servers_left_behind_is_swept_and_nothing_else() {
        let temporary = tempfile::tempdir().unwrap();
        let place = |name: &str| temporary.path().join(name);
        let name = |digit: char| format!("{PREFIX}{}", digit.to_string().repeat(DIGITS));
        let (left, used, link) = (place(&name('a')), place(&name('b')), place(&name('c')));
        let others =
            [place("toolcrib-notes"), place("elsewhere"), place(&format!("{}0", name('d')))];
        for folder in [&left, &used].into_iter().chain(&others) {
            fs::create_dir_all(folder.join("work")).unwrap();
            fs::write(folder.join("work/file"), "x").unwrap();
        }
        std::os::unix::fs::symlink(&others[1], &link).unwrap();
        let held = open(&used).unwrap();
        assert!(lock(&held).unwrap());
        assert_eq!(sweep(temporary.path()), 1);
        assert!(!left.exists());
        for kept in [&used, &link].into_iter().chain(&others) {
            assert!(kept.join("work/file").exists(), "{kept:?}");
        }
        drop(held);
        assert_eq!(sweep(temporary.path()), 1);
        assert!(!used.exists());
    }
}
