//! The private folders that hold the scratch directories of all programs of one user.
//!
//! All servers of a user keep the scratch directories of their programs in one folder of the temporary
//! folder, `toolcrib-UID`. Its name is known before any program starts, so it is hidden from every
//! confined program as a whole, except for the program's own scratch directory, and from file tools.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::control_plane::ReachablePaths;
use crate::{Confinement, SpawnError};

/// Temporary folders that servers use by default. A server of the same user may use another one than
/// this server.
const USUAL: [&str; 2] = ["/tmp", "/var/tmp"];

/// The maximum number of attempts to create a folder that somebody else removes.
const TRIES: usize = 8;

/// A parent, held open.
#[derive(Debug)]
pub(super) struct ScratchParent {
    pub(super) path: PathBuf,
    pub(super) directory: OwnedFd,
}

/// The parents that servers of this user may use: the one of this server first. They may be missing.
///
/// Links are resolved once. A program that may replace a link on the way to the temporary folder must
/// not be able to lead later programs elsewhere.
pub(crate) fn paths() -> &'static [PathBuf] {
    static PATHS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PATHS.get_or_init(|| {
        let own = std::env::temp_dir();
        let own = own.canonicalize().or_else(|_| std::path::absolute(&own)).unwrap_or(own);
        let usual = USUAL.iter().filter_map(|folder| Path::new(folder).canonicalize().ok());
        let name = format!("toolcrib-{}", geteuid().as_raw());
        let mut paths: Vec<PathBuf> = vec![own.join(&name)];
        for path in usual.map(|folder| folder.join(&name)) {
            // A server that is itself a program of another server has its files in such a folder.
            if !own.starts_with(&path) && !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    })
}

/// The parent of this server, which is created if it is missing.
pub(super) fn own() -> io::Result<Arc<ScratchParent>> {
    static HELD: Mutex<Option<Arc<ScratchParent>>> = Mutex::new(None);
    let path = &paths()[0];
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(parent) = &*held
        && let (Ok(named), Ok(open)) = (path.symlink_metadata(), fstat(&parent.directory))
        && (named.dev(), named.ino()) == (open.st_dev, open.st_ino)
        && is_private(open.st_uid, open.st_mode)
    {
        return Ok(Arc::clone(parent));
    }
    let directory = prepare(path)?;
    // Programs that remove old files from temporary folders leave locked ones alone.
    let _ = flock(&directory, FlockOperation::NonBlockingLockShared);
    let parent = Arc::new(ScratchParent { path: path.clone(), directory });
    *held = Some(Arc::clone(&parent));
    Ok(parent)
}

/// The parent of this server if it exists and belongs to its user.
pub(super) fn existing() -> Option<ScratchParent> {
    let path = paths()[0].clone();
    let directory = open(&path).ok()?;
    let found = fstat(&directory).ok()?;
    is_private(found.st_uid, found.st_mode).then_some(ScratchParent { path, directory })
}

/// The parents to hide from a program that is about to start. Those that its grants reach are created,
/// so that it cannot create them and other servers cannot create them while it runs.
pub(crate) fn hidden_at_start(confinement: &Confinement) -> Result<Vec<PathBuf>, SpawnError> {
    let path = &paths()[0];
    own().map_err(|source| SpawnError::Scratch { path: path.clone(), source })?;
    let mut hidden = vec![path.clone()];
    hidden.extend(reached(confinement, &paths()[1..])?);
    Ok(hidden)
}

/// The parents that are hidden from a program with these grants, for a check without a start. Fails if
/// no program could be started, because the parent of this server is not private.
pub(crate) fn hidden_from(confinement: &Confinement) -> Result<Vec<PathBuf>, String> {
    let path = &paths()[0];
    let failed = |error: SpawnError| error.to_string();
    let mut hidden = reached(confinement, paths()).map_err(failed)?;
    if !hidden.contains(path) {
        match open(path).and_then(checked) {
            Ok(_) => hidden.push(path.clone()),
            // The first program that is started creates it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(failed(SpawnError::Scratch { path: path.clone(), source })),
        }
    }
    Ok(hidden)
}

fn reached(confinement: &Confinement, parents: &[PathBuf]) -> Result<Vec<PathBuf>, SpawnError> {
    if parents.is_empty() {
        return Ok(Vec::new());
    }
    let granted = ReachablePaths::granted(confinement);
    let reached = parents.iter().filter(|path| granted.meets(path));
    let hidden = reached.map(|path| match prepare(path) {
        Ok(_) => Ok(Some(path.clone())),
        Err(error) if cannot_be_used(&error) => Ok(None),
        Err(source) => Err(SpawnError::Scratch { path: path.clone(), source }),
    });
    hidden.filter_map(Result::transpose).collect()
}

/// Whether no server of this user can have programs there: the folder is not the user's, or cannot be
/// created.
fn cannot_be_used(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem)
}

/// Opens a parent, and creates it if it is missing.
fn prepare(path: &Path) -> io::Result<OwnedFd> {
    for _ in 0..TRIES {
        match open(path) {
            Ok(directory) => return checked(directory),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            // Another server may have created it, or somebody else.
            _ => {}
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is no folder: remove it, or set TMPDIR to another folder",
        ),
        error => error.into(),
    })
}

fn checked(directory: OwnedFd) -> io::Result<OwnedFd> {
    let found = fstat(&directory)?;
    if is_private(found.st_uid, found.st_mode) {
        return Ok(directory);
    }
    let text = if found.st_uid == geteuid().as_raw() {
        "other users may enter it: remove it, or run `chmod 700` on it"
    } else {
        "it belongs to another user: remove it, or set TMPDIR to another folder"
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Whether the folder belongs to this user and nobody else may enter it.
fn is_private(owner: u32, mode: u32) -> bool {
    let others = Mode::from_raw_mode(mode).intersects(Mode::RWXG | Mode::RWXO);
    owner == geteuid().as_raw() && !others
}

/// Creates a directory with mode 0700 in a parent.
pub(super) fn create_in(parent: &ScratchParent, name: &str) -> io::Result<()> {
    Ok(mkdirat(&parent.directory, name, Mode::RWXU)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_parent_is_created_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolcrib-0");
        prepare(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        prepare(&path).unwrap();
    }

    #[test]
    fn a_parent_that_others_may_enter_or_that_is_a_link_or_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolcrib-0");
        let refused = || prepare(&path).unwrap_err().to_string();
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(refused().contains("chmod 700"), "{}", refused());
        fs::remove_dir(&path).unwrap();
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(refused().contains("no folder"), "{}", refused());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert!(refused().contains("no folder"), "{}", refused());
    }

    #[test]
    fn a_parent_of_another_user_is_refused() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can create a folder for another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolcrib-0");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let refused = prepare(&path).unwrap_err();
        assert!(refused.to_string().contains("another user"), "{refused}");
        assert!(cannot_be_used(&refused));
    }
}
