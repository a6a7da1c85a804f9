//! Empties a directory with arbitrary content: through descriptors, without following links, with a
//! fixed number of descriptors and without recursion, however deep directories are nested, and
//! within a bounded time.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// The maximum time spent on one directory.
pub(super) const LONGEST: Duration = Duration::from_secs(60);
/// The number of names to read at a time.
const BATCH: usize = 1024;

/// Removes the entries of a directory, as far as possible until the deadline.
///
/// Entries of a subdirectory are removed or, if they are directories, moved up into the top one
/// until the subdirectory is empty. So no entry is ever more than one level away.
pub(super) fn empty(top: &OwnedFd, deadline: Instant) {
    let mut emptying = DirectoryEmptier { top, deadline, moved: 0 };
    while emptying.pass() {}
}

struct DirectoryEmptier<'d> {
    top: &'d OwnedFd,
    deadline: Instant,
    /// The number of directories that were moved up; each needs a new name.
    moved: u64,
}

impl DirectoryEmptier<'_> {
    /// Processes the entries of the top directory once; returns whether to continue.
    fn pass(&mut self) -> bool {
        let mut progress = false;
        for name in names(self.top) {
            if Instant::now() >= self.deadline {
                return false;
            }
            progress |= self.remove(&name);
        }
        progress
    }

    /// Removes an entry of the top directory; returns whether there was progress.
    fn remove(&mut self, name: &CStr) -> bool {
        match unlinkat(self.top, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return true,
            // A directory: Linux and POSIX return different errors.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(_) => return false,
        }
        let Some(below) = enter(self.top, name) else { return false };
        let mut progress = false;
        loop {
            let names = names(&below);
            if names.is_empty() {
                return unlinkat(self.top, name, AtFlags::REMOVEDIR).is_ok() || progress;
            }
            let mut became_less = false;
            for inner in &names {
                if Instant::now() >= self.deadline {
                    return progress;
                }
                became_less |= match unlinkat(&below, inner, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => true,
                    Err(Errno::ISDIR | Errno::PERM) => self.move_up(&below, inner),
                    Err(_) => false,
                };
            }
            if !became_less {
                return progress;
            }
            progress = true;
        }
    }

    /// Gives a directory a name in the top one.
    fn move_up(&mut self, below: &OwnedFd, inner: &CStr) -> bool {
        for _ in 0..BATCH {
            self.moved += 1;
            let name = format!(".toolcrib-removed-{}", self.moved);
            match renameat(below, inner, self.top, &name) {
                Ok(()) => return true,
                // The program created an entry with that name.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                // A directory that its owner may not write to cannot be moved.
                Err(Errno::ACCESS) => {
                    return enter(below, inner).is_some()
                        && renameat(below, inner, self.top, &name).is_ok();
                }
                Err(_) => return false,
            }
        }
        false
    }
}

/// Opens a directory and gives its owner all permissions, because some programs, such as Go,
/// write-protect what they cache.
fn enter(parent: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // This needs no permission on the directory itself.
    let handle = openat(parent, name, flags | OFlags::PATH, Mode::empty()).ok()?;
    let known = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let _ = fs::set_permissions(known, fs::Permissions::from_mode(0o700));
    openat(&handle, c".", flags | OFlags::RDONLY, Mode::empty()).ok()
}

/// The first names of a directory.
fn names(directory: &OwnedFd) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).take(BATCH).collect()
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, mkdirat};

    use super::*;

    fn open(path: &std::path::Path) -> OwnedFd {
        openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    /// Nested directories, deeper than any path can name, with a file in every tenth.
    fn nest(top: &OwnedFd, levels: usize) {
        let mut here = top.try_clone().unwrap();
        for level in 0..levels {
            if level % 10 == 0 {
                let flags = OFlags::CREATE | OFlags::WRONLY;
                openat(&here, c"file", flags, Mode::from_raw_mode(0o600)).unwrap();
            }
            mkdirat(&here, c"d", Mode::from_raw_mode(0o700)).unwrap();
            here = openat(&here, c"d", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn sixteen_thousand_nested_directories_go_on_a_small_stack() {
        let folder = tempfile::tempdir().unwrap();
        let top = open(folder.path());
        nest(&top, 16_000);
        let small = std::thread::Builder::new().stack_size(64 * 1024);
        let done = small.spawn(move || empty(&top, Instant::now() + LONGEST));
        done.unwrap().join().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_linked_to_stays_and_names_that_are_taken_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir_all(place("a/b/c")).unwrap();
        std::os::unix::fs::symlink(outside.path(), place("link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), place("a/b/link")).unwrap();
        fs::create_dir_all(place(".toolcrib-removed-1/full")).unwrap();
        fs::write(place(".toolcrib-removed-2"), "x").unwrap();
        for file in 0..3000 {
            fs::write(place(&format!("a/{file}")), "").unwrap();
        }
        empty(&open(folder.path()), Instant::now() + LONGEST);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn a_deadline_ends_the_work() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "x").unwrap();
        empty(&open(folder.path()), Instant::now());
        assert!(folder.path().join("file").exists());
    }
}
