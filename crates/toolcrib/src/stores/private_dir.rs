//! Private directories.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Makes the directory (mode 0700) if it is not there. Fails, naming it, if others may look into it.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    let named = |error: io::Error| {
        let what_to_do = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "; name one that this user may write to"
            }
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                "; there is a file of that name: name a folder"
            }
            _ => "",
        };
        let message = format!("the directory {}: {error}{what_to_do}", dir.display());
        io::Error::new(error.kind(), message)
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(named)?;
    let mode = fs::metadata(dir).map_err(named)?.permissions().mode();
    if mode & 0o077 != 0 {
        let message = format!(
            "the directory {} has mode {:03o}, so others may look into it: use a directory of its \
             own, or run `chmod 700` on it",
            dir.display(),
            mode & 0o777
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}
