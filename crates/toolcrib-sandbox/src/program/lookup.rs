//! Finds a program before anything is started, so that "not found" is a clear error.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::SpawnError;
use crate::STARTS_PROGRAMS;
use crate::program::environment::server_path;

/// Finds `program` on the server's `PATH`, as [`run`](crate::run) does for a command without its
/// own `PATH`. A name with a `/` is a path and is looked up as it is.
///
/// Fails with [`SpawnError::NotFound`] or [`SpawnError::NotExecutable`], and on systems that start no programs with
/// [`SpawnError::Unsupported`].
pub fn find_program(program: impl AsRef<OsStr>) -> Result<PathBuf, SpawnError> {
    if !STARTS_PROGRAMS {
        let program = program.as_ref().to_string_lossy().into_owned();
        return Err(SpawnError::Unsupported { program });
    }
    find(program.as_ref(), &server_path(), None)
}

/// Finds `program` on `path`; a name with a `/` is taken relative to `directory`.
pub(crate) fn find(
    program: &OsStr,
    path: &OsStr,
    directory: Option<&Path>,
) -> Result<PathBuf, SpawnError> {
    let not_found = || SpawnError::NotFound {
        program: program.to_string_lossy().into_owned(),
        path: path.to_string_lossy().into_owned(),
    };
    if program.is_empty() {
        return Err(not_found());
    }
    if program.as_bytes().contains(&b'/') {
        let file = match directory {
            Some(directory) => directory.join(program),
            None => PathBuf::from(program),
        };
        // This must be absolute, because the child changes its directory first.
        let file = std::path::absolute(&file).unwrap_or(file);
        return match executable(&file) {
            Ok(()) => Ok(file),
            Err(reason) => {
                Err(SpawnError::NotExecutable { path: file, reason: reason.to_string() })
            }
        };
    }
    let mut refused = None;
    for directory in path.as_bytes().split(|byte| *byte == b':') {
        // A relative or empty entry would search the working directory.
        if !directory.starts_with(b"/") {
            continue;
        }
        let file = Path::new(OsStr::from_bytes(directory)).join(program);
        // A file that cannot be examined, for example in a folder without permissions, counts as
        // missing.
        if file.metadata().is_err() {
            continue;
        }
        match executable(&file) {
            Ok(()) => return Ok(file),
            Err(error) => refused = refused.or(Some((file, error))),
        }
    }
    match refused {
        Some((path, error)) => Err(SpawnError::NotExecutable { path, reason: error.to_string() }),
        None => Err(not_found()),
    }
}

/// Whether this process may execute the file.
fn executable(file: &Path) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    access(file, Access::EXEC_OK)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_the_path_searched() {
        let error = find(OsStr::new("no-such-tool"), OsStr::new("/usr/bin:/bin"), None);
        assert_eq!(
            error.unwrap_err().to_string(),
            "the program `no-such-tool` was not found; PATH searched: /usr/bin:/bin"
        );
    }

    #[test]
    fn a_path_entry_that_cannot_be_searched_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        std::fs::set_permissions(&closed, mode).unwrap();
        let path = format!("{}:{}:/usr/bin:/bin", file.display(), closed.display());
        assert!(find(OsStr::new("true"), OsStr::new(&path), None).is_ok());
        let missing = find(OsStr::new("no-such-tool"), OsStr::new(&path), None);
        assert!(matches!(missing, Err(SpawnError::NotFound { .. })), "{missing:?}");
    }

    #[test]
    fn relative_path_entries_are_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/true", folder.path().join("tool")).unwrap();
        let relative = pathdiff_to_root(folder.path());
        assert!(find(OsStr::new("tool"), OsStr::new(&relative), None).is_err());
        assert!(find(OsStr::new("tool"), folder.path().as_os_str(), None).is_ok());
    }

    /// The folder as seen from the working directory, for example `../../tmp/x`.
    fn pathdiff_to_root(folder: &Path) -> String {
        let depth = std::env::current_dir().unwrap().components().count() - 1;
        format!("{}{}", "../".repeat(depth), folder.strip_prefix("/").unwrap().display())
    }

    #[test]
    fn a_file_without_execute_permission_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool"), "text").unwrap();
        let by_name = find(OsStr::new("tool"), folder.path().as_os_str(), None);
        assert!(matches!(by_name, Err(SpawnError::NotExecutable { .. })), "{by_name:?}");
        let by_path = find(OsStr::new("./tool"), OsStr::new(""), Some(folder.path()));
        assert!(matches!(by_path, Err(SpawnError::NotExecutable { .. })), "{by_path:?}");
    }
}
