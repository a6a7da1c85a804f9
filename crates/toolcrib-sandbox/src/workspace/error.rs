//! Errors of workspaces.

use std::io;

use rustix::io::Errno;

/// Why an operation of a [`Workspace`](super::Workspace) did not happen.
///
/// The texts are clauses about the path, for whoever named it: `notes.txt: there is no such file`.
/// None of them says anything about what lies outside the root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The path leads out of the root, or would. The same text whatever is there.
    #[error("it is outside the project: only what is inside the project's folder can be reached")]
    Outside,
    /// Keys and credentials.
    #[error("it is one of the places that are never touched: keys, credentials and the like")]
    Sensitive,
    /// What decides how other programs behave.
    #[error("it is protected against changes, because it decides what other programs do")]
    Protected,
    /// The text is no path that could be meant.
    #[error("{0}")]
    Malformed(&'static str),
    /// Nothing is there.
    #[error("there is no such file or folder")]
    NotFound,
    /// Something on the way is no folder.
    #[error("a part of the path that would have to be a folder is not one")]
    NotAFolder,
    /// A file was needed.
    #[error("it is a folder, not a file")]
    IsAFolder,
    /// A FIFO, a socket or a device.
    #[error("it is a {0}, not a regular file")]
    Special(&'static str),
    /// A link would have to be written through.
    #[error("it is a symbolic link, and links are not written through: name the file itself")]
    IsALink,
    /// Links lead in a circle, or into the kernel's own files.
    #[error("the symbolic links on the way form a loop")]
    Loop,
    /// The folder has content.
    #[error("the folder is not empty")]
    NotEmpty,
    /// The root itself.
    #[error("it is the project's own folder, which cannot be deleted")]
    IsTheRoot,
    /// There is more than the caller takes.
    #[error("it has {size} bytes, more than the {limit} that can be taken at once")]
    TooLarge {
        /// What it has, in bytes.
        size: u64,
        /// What the caller takes, in bytes.
        limit: u64,
    },
    /// There is more to look at than one operation may.
    #[error("there are more than {0} files and folders in it, too many for one call")]
    TooMany(u64),
    /// Somebody else has changed it since it was read.
    #[error("it was changed on disk while it was being edited: nothing was written")]
    Changed,
    /// Others rename or hold it again and again.
    #[error("it is busy: others are changing it; try again")]
    Busy,
    /// The system says no.
    #[error("the server has no permission for it")]
    NoPermission,
    /// The disk is full, or a quota is used up.
    #[error("there is no space left on the disk")]
    NoSpace,
    /// Anything else that the system says.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl WorkspaceError {
    /// Whether it is a rule that refused, not the file system.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Outside | Self::Sensitive | Self::Protected)
    }
}

impl From<Errno> for WorkspaceError {
    fn from(errno: Errno) -> Self {
        match errno {
            // How `RESOLVE_BENEATH` says it.
            Errno::XDEV => Self::Outside,
            Errno::NOENT => Self::NotFound,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::ISDIR => Self::IsAFolder,
            // Sockets, and devices that nobody drives, answer so when they are opened.
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
