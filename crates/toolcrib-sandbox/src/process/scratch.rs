//! The private directory that serves a program as HOME and TMPDIR.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::SpawnError;
use super::cookie::Cookie;

/// A fresh directory with mode 0700; dropping it removes it with all it holds.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    removed: bool,
}

impl Scratch {
    /// Makes one in the server's directory for temporary files.
    pub(crate) fn new(cookie: &Cookie) -> Result<Self, SpawnError> {
        let path = std::env::temp_dir().join(format!("toolcrib-{}", cookie.as_str()));
        // mkdir fails on an existing name, symlinks included: nobody can have prepared this one.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self { path, removed: false }),
            Err(source) => Err(SpawnError::Scratch { path, source }),
        }
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

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.remove_if_empty() || fs::remove_dir_all(&self.path).is_ok() {
            return;
        }
        // Some programs write-protect what they cache (Go's module cache does). Nobody can be told
        // of a second failure here; the directory stays behind in the system's temporary files.
        make_directories_writable(&self.path);
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Gives the owner all rights on a directory and those below it, following no symlink.
fn make_directories_writable(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_directories_writable(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_private_and_goes_with_all_it_holds_even_write_protected() {
        let scratch = Scratch::new(&Cookie::new().unwrap()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(path.join("cache")).unwrap();
        fs::write(path.join("cache/file"), "x").unwrap();
        fs::set_permissions(path.join("cache"), fs::Permissions::from_mode(0o500)).unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
