//! Errors of workspaces.

use std::io;

use rustix::io::Errno;

/// Why an operation of a [`Workspace`](super::Workspace) failed.
///
/// The texts are clauses about the path, for the caller that named it:
/// `notes.txt: there is no such file`. None of them reveals anything outside the root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The path leads out of the root. The text is the same whether anything exists there.
    #[error("it is outside the project: only what is inside the project's folder can be reached")]
    Outside,
    /// The place holds keys or credentials.
    #[error("it is one of the places that are never touched: keys, credentials and the like")]
    Sensitive,
    /// The file controls other programs.
    #[error("it is protected against changes, because it decides what other programs do")]
    Protected,
    /// The text cannot be a path.
    #[error("{0}")]
    Malformed(&'static str),
    /// There is no such file or folder.
    #[error("there is no such file or folder")]
    NotFound,
    /// A component of the path is not a folder.
    #[error("a part of the path that would have to be a folder is not one")]
    NotAFolder,
    /// The entry is not a file.
    #[error("it is a folder, not a file")]
    IsAFolder,
    /// The entry is a FIFO, a socket or a device.
    #[error("it is a {0}, not a regular file")]
    Special(&'static str),
    /// The path is a link, and writing does not follow links.
    #[error("it is a symbolic link, and links are not written through: name the file itself")]
    IsALink,
    /// Links form a loop, or lead into the kernel's own files.
    #[error("the symbolic links on the way form a loop")]
    Loop,
    /// The folder is not empty.
    #[error("the folder is not empty")]
    NotEmpty,
    /// The operation cannot be applied to the root.
    #[error("it is the project's own folder, which cannot be deleted")]
    IsTheRoot,
    /// The content is larger than the caller accepts.
    #[error("it has {size} bytes, more than the {limit} that can be taken at once")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// There are more entries than one operation may visit.
    #[error("there are more than {0} files and folders in it, too many for one call")]
    TooMany(u64),
    /// The file was changed by another program since it was read.
    #[error("it was changed on disk while it was being edited: nothing was written")]
    Changed,
    /// Other programs keep renaming or locking it.
    #[error("it is busy: others are changing it; try again")]
    Busy,
    /// The system denied access.
    #[error("the server has no permission for it")]
    NoPermission,
    /// The disk is full, or a quota is exhausted.
    #[error("there is no space left on the disk")]
    NoSpace,
    /// Any other error of the system.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl WorkspaceError {
    /// Whether a rule refused the operation, not the file system.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Outside | Self::Sensitive | Self::Protected)
    }
}

impl From<Errno> for WorkspaceError {
    fn from(errno: Errno) -> Self {
        match errno {
            // The error that `RESOLVE_BENEATH` returns.
            Errno::XDEV => Self::Outside,
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::ISDIR => Self::IsAFolder,
            // The error for opening sockets, and devices without a driver.
            Errno::NXIO | Errno::NODEV => Self::Special("socket or device"),
            Errno::LOOP => Self::Loop,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::AGAIN | Errno::BUSY | Errno::TXTBSY => Self::Busy,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::NoPermission,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoSpace,
            Errno::NAMETOOLONG => Self::Malformed("a name in it is longer than 255 bytes"),
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for WorkspaceError {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).map_or(Self::Io(error), Self::from)
    }
}
