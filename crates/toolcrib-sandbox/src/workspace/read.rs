//! Reading regular files of limited size.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use rustix::fs::{Mode, OFlags, fstat, openat};

use super::entry::{FileState, regular};
use super::folder::READ;
use super::guard::Operation;
use super::locks::{LockMode, Locked};
use super::steps::is_of_link;
use super::{Entry, Workspace, WorkspaceError};

/// A regular file, open for reading. While it is held, no user of the same
/// [`LockTable`](super::LockTable) changes it.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    entry: Entry,
    pub(super) stamp: FileState,
    _locked: Option<Locked>,
}

impl OpenFile {
    /// Its entry when it was opened.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Its size in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.entry.size
    }

    /// The file handle.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reads the whole content. Fails if there are more than `limit` bytes, even if the file grew
    /// after it was opened.
    pub fn read_all(&mut self, limit: u64) -> Result<Vec<u8>, WorkspaceError> {
        if self.size() > limit {
            return Err(WorkspaceError::TooLarge { size: self.size(), limit });
        }
        self.file.seek(SeekFrom::Start(0))?;
        // One more than the expected size, to detect the end in the same call.
        let mut bytes = Vec::with_capacity(usize::try_from(self.size()).unwrap_or(0) + 1);
        (&self.file).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 {
            size if size > limit => Err(WorkspaceError::TooLarge { size, limit }),
            _ => Ok(bytes),
        }
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Workspace {
    /// The content of a file of at most `limit` bytes.
    pub fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, WorkspaceError> {
        self.open_file(path)?.read_all(limit)
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &str) -> Result<OpenFile, WorkspaceError> {
        let wanted = self.wanted(path)?;
        self.check_text(&wanted)?;
        let Some((folder, name)) = wanted.split().filter(|_| !wanted.is_folder()) else {
            self.folder(&wanted, Operation::Look)?;
            return Err(WorkspaceError::IsAFolder);
        };
        let telling = |error| self.telling(error, &wanted);
        let parent = self.tree.folder(&folder).map_err(telling)?;
        let locked = self.lock(&parent.fd, name, LockMode::Shared)?;
        let fd = match openat(&parent.fd, name, READ | OFlags::NOFOLLOW, Mode::empty()) {
            // A link: it is followed, starting at the root.
            Err(errno) if is_of_link(errno) => {
                let opened = self.tree.find(&wanted, READ).map_err(telling)?;
                if self.guard.concerns(Operation::Look) {
                    self.guard.check(&self.tree.place(&opened)?, Operation::Look)?;
                }
                opened.fd
            }
            outcome => {
                if self.guard.concerns(Operation::Look) {
                    let place = self.tree.place(&parent)?.join(name);
                    self.guard.check(&place, Operation::Look)?;
                }
                outcome?
            }
        };
        open_file(fd.into(), Some(locked))
    }
}

/// The opened file, if it is a regular one.
pub(super) fn open_file(file: File, locked: Option<Locked>) -> Result<OpenFile, WorkspaceError> {
    let stat = fstat(&file)?;
    regular(&stat)?;
    Ok(OpenFile { file, entry: (&stat).into(), stamp: (&stat).into(), _locked: locked })
}
