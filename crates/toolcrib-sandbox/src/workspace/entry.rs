//! Entries of the file system.

use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Stat};

use super::WorkspaceError;

/// The kind of a file system entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl Kind {
    /// The name for listings and data: `file`, `folder`, `link`, `special`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::Special => "special",
        }
    }
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

/// The entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// Its size in bytes; for a folder, the size that the file system reports.
    pub size: u64,
    /// When its content was last changed.
    pub modified: SystemTime,
}

impl From<&Stat> for Entry {
    fn from(stat: &Stat) -> Self {
        let kind = kind(stat);
        Self { kind, size: u64::try_from(stat.st_size).unwrap_or(0), modified: modified(stat) }
    }
}

pub(super) fn kind(stat: &Stat) -> Kind {
    FileType::from_raw_mode(stat.st_mode).into()
}

fn modified(stat: &Stat) -> SystemTime {
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    match u64::try_from(stat.st_mtime) {
        Ok(seconds) => SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos),
        Err(_) => SystemTime::UNIX_EPOCH,
    }
}

/// Its device and inode.
#[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "their types are the system's")]
pub(super) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Fails unless it is a regular file.
pub(super) fn regular(stat: &Stat) -> Result<(), WorkspaceError> {
    Err(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => WorkspaceError::IsAFolder,
        FileType::Symlink => WorkspaceError::IsALink,
        FileType::Fifo => WorkspaceError::Special("FIFO"),
        FileType::Socket => WorkspaceError::Special("socket"),
        _ => WorkspaceError::Special("device"),
    })
}

/// Distinguishes states of a file: its identity, its size, and when it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState([i128; 7]);

impl From<&Stat> for FileState {
    fn from(stat: &Stat) -> Self {
        Self([
            stat.st_dev.into(),
            stat.st_ino.into(),
            stat.st_size.into(),
            stat.st_mtime.into(),
            stat.st_mtime_nsec.into(),
            stat.st_ctime.into(),
            stat.st_ctime_nsec.into(),
        ])
    }
}
