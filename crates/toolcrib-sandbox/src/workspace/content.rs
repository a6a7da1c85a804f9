//! Listing and entering folders by descriptor, never through a link.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::entry::kind;
use super::{Kind, WorkspaceError};

/// The maximum nesting of folders to enter.
pub(super) const MAX_DEPTH: usize = 256;

/// Opens a folder inside another one, to list it.
pub(super) fn enter(folder: &OwnedFd, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// The names in a folder with their entries; at most one more than `limit`.
pub(super) fn contents(
    folder: &OwnedFd,
    limit: u64,
) -> Result<Vec<(CString, Kind)>, WorkspaceError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind(&stat),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            },
            known => known.into(),
        };
        names.push((name.to_owned(), kind));
        if names.len() as u64 > limit {
            break;
        }
    }
    Ok(names)
}

pub(super) fn c_string(name: &[u8]) -> Result<CString, WorkspaceError> {
    CString::new(name).map_err(|_| WorkspaceError::Malformed("the path has a zero byte in it"))
}
