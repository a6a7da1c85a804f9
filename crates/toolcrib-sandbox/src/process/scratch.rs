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

/// What the name of every one begins with; a cookie follows.
const PREFIX: &str = "toolcrib-";
/// How many hexadecimal digits the cookie has.
const DIGITS: usize = 32;
/// How long an answer waits at most for the removal of what a program left in one.
const WAIT: Duration = Duration::from_secs(1);
/// How often a directory is made again that a sweep took for one that was left behind.
const TRIES: usize = 8;

/// A fresh directory with mode 0700; dropping it removes it with all it holds.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
    /// Held open and locked as long as it is in use: what is not locked was left behind.
    directory: OwnedFd,
    removed: bool,
}

impl ScratchDir {
    /// Makes one in the server's directory for temporary files.
    pub(crate) fn new(cookie: &Cookie) -> Result<Self, SpawnError> {
        let temporary = std::env::temp_dir();
        let path = temporary.join(format!("{PREFIX}{}", cookie.as_str()));
        for _ in 0..TRIES {
            // mkdir fails on an existing name, symlinks included: nobody can have prepared this one.
            let made = DirBuilder::new().mode(0o700).create(&path).and_then(|()| {
                let held =
                    open(&path).and_then(|directory| Ok(lock(&directory)?.then_some(directory)));
                // Nobody has seen it, and nobody would remove it.
                held.inspect_err(|_| drop(fs::remove_dir(&path)))
            });
            match made {
                Ok(Some(directory)) => return Ok(Self { path, directory, removed: false }),
                // Another server's sweep came between.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && temporary.is_dir() => {}
                Err(source) => return Err(SpawnError::Scratch { path, source }),
            }
        }
        let source = io::Error::from(io::ErrorKind::ResourceBusy);
        Err(SpawnError::Scratch { path, source })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it if the program left nothing in it: the usual case, and cheap.
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
        // Nobody can be told of a failure here. What is left is swept when a server starts.
        empty(&self.directory, Instant::now() + LONGEST);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes one that is not empty, off the runtime's threads. A large one is removed on after this has
/// returned, so that nobody's answer waits for it.
pub(crate) async fn remove_full(scratch: ScratchDir) {
    // If the runtime is going away, the closure is dropped, which removes it as well.
    let _ = timeout(WAIT, spawn_blocking(move || drop(scratch))).await;
}

/// Removes the scratch directories that servers of this user left behind because they were killed.
/// Those of servers and programs that are alive stay, and so does everything that is of another user
/// or has another name. Gives how many it removed.
///
/// It may take some time: call it on a thread of its own.
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
        // A file system without locks: then nothing is swept either.
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
