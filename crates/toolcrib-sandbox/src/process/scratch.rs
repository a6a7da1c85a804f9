//! The private scratch directory, which is a program's HOME and TMPDIR.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::Errno;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::SpawnError;
use super::cookie::Cookie;
use super::emptying::{LONGEST, empty};
use super::scratch_parents::{ScratchParent, create_in, existing, own, paths};

/// The number of hexadecimal digits of a cookie, which is the name of a scratch directory.
const DIGITS: usize = 32;
/// The maximum time that an answer waits for the removal of a scratch directory's content.
const WAIT: Duration = Duration::from_secs(1);
/// The maximum number of attempts to create a directory that a sweep removes as stale.
const TRIES: usize = 8;

/// A new directory with mode 0700; dropping it removes it with its content.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
    parent: Arc<ScratchParent>,
    name: String,
    /// Open and locked as long as it is in use. A directory without a lock was left behind.
    directory: OwnedFd,
    removed: bool,
}

impl ScratchDir {
    /// Creates one in the private folder for all programs of this user.
    pub(crate) fn new(cookie: &Cookie) -> Result<Self, SpawnError> {
        let name = cookie.as_str();
        for _ in 0..TRIES {
            let at_parent = |source| SpawnError::Scratch { path: paths()[0].clone(), source };
            let parent = own().map_err(at_parent)?;
            let path = parent.path.join(name);
            // mkdir fails if the name exists, even as a symbolic link, so nobody can have prepared
            // this directory.
            let made = create_in(&parent, name).and_then(|()| {
                let held = open(&parent, name)
                    .and_then(|directory| Ok(lock(&directory)?.then_some(directory)));
                // Nobody knows of it, so nobody else would remove it.
                held.inspect_err(|_| drop(remove(&parent, name)))
            });
            match made {
                Ok(Some(directory)) => {
                    let name = name.to_owned();
                    return Ok(Self { path, parent, name, directory, removed: false });
                }
                // Another server's sweep removed it in between.
                Ok(None) => {}
                // The parent was removed in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(SpawnError::Scratch { path, source }),
            }
        }
        let source = io::Error::from(io::ErrorKind::ResourceBusy);
        Err(SpawnError::Scratch { path: paths()[0].join(name), source })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it if the program left nothing in it, which is the usual case, and cheap.
    pub(crate) fn remove_if_empty(&mut self) -> bool {
        self.removed = self.removed || remove(&self.parent, &self.name).is_ok();
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
        let _ = remove(&self.parent, &self.name);
    }
}

/// Removes a directory that is not empty, outside of the runtime's threads. The removal of a large one continues after
/// this has returned, so that no answer waits for it.
pub(crate) async fn remove_full(scratch: ScratchDir) {
    // If the runtime is shutting down, the closure is dropped, which removes the directory as well.
    let _ = timeout(WAIT, spawn_blocking(move || drop(scratch))).await;
}

/// The folder that holds the scratch directories of all programs of this user, `toolcrib-UID` in the
/// temporary folder. It is created if it is missing, and hidden from confined programs and from
/// [workspaces](crate::Workspace).
///
/// # Errors
///
/// Fails if it cannot be created, or if others may enter it. No program can be started then.
pub fn scratch_folder() -> Result<PathBuf, SpawnError> {
    match own() {
        Ok(parent) => Ok(parent.path.clone()),
        Err(source) => Err(SpawnError::Scratch { path: paths()[0].clone(), source }),
    }
}

/// Removes the scratch directories that killed servers of this user left behind. Directories of
/// running servers and programs stay, and so does everything that belongs to another user or has
/// another name. Returns how many it removed.
///
/// It may take some time, so call it on its own thread.
pub fn sweep_scratch() -> usize {
    existing().map_or(0, |parent| sweep(&parent))
}

fn sweep(parent: &ScratchParent) -> usize {
    let entries = fs::read_dir(&parent.path).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_removed = |name: &String| {
        is_scratch(name) && remove_left_behind(parent, name).is_ok_and(|removed| removed)
    };
    names.filter(is_removed).count()
}

fn is_scratch(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes one directory unless it is in use or somebody else's.
fn remove_left_behind(parent: &ScratchParent, name: &str) -> io::Result<bool> {
    let directory = open(parent, name)?;
    if fstat(&directory)?.st_uid != rustix::process::geteuid().as_raw() || !lock(&directory)? {
        return Ok(false);
    }
    empty(&directory, Instant::now() + LONGEST);
    remove(parent, name)?;
    Ok(true)
}

fn open(parent: &ScratchParent, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&parent.directory, name, flags, Mode::empty())?)
}

fn remove(parent: &ScratchParent, name: &str) -> io::Result<()> {
    Ok(unlinkat(&parent.directory, name, AtFlags::REMOVEDIR)?)
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
        let name = |digit: char| digit.to_string().repeat(DIGITS);
        let (left, used, link) = (place(&name('a')), place(&name('b')), place(&name('c')));
        let others = [place("notes"), place("elsewhere"), place(&format!("{}0", name('d')))];
        for folder in [&left, &used].into_iter().chain(&others) {
            fs::create_dir_all(folder.join("work")).unwrap();
            fs::write(folder.join("work/file"), "x").unwrap();
        }
        std::os::unix::fs::symlink(&others[1], &link).unwrap();
        let parent = ScratchParent {
            path: temporary.path().to_owned(),
            directory: fs::File::open(temporary.path()).unwrap().into(),
        };
        let held = open(&parent, &name('b')).unwrap();
        assert!(lock(&held).unwrap());
        assert_eq!(sweep(&parent), 1);
        assert!(!left.exists());
        for kept in [&used, &link].into_iter().chain(&others) {
            assert!(kept.join("work/file").exists(), "{kept:?}");
        }
        drop(held);
        assert_eq!(sweep(&parent), 1);
        assert!(!used.exists());
    }
}
