//! Deletes files and folders by descriptor, never through a link.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::content::{MAX_DEPTH, c_string, contents, enter};
use super::entry::kind;
use super::guard::Operation;
use super::locks::LockMode;
use super::{Kind, Workspace, WorkspaceError};

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoveReport {
    /// The kind of the deleted entry. A link itself is deleted, not its target.
    pub kind: Kind,
    /// The number of deleted files and folders, including itself.
    pub count: u64,
}

impl Workspace {
    /// Deletes a file, a link, a special file or an empty folder.
    pub fn remove(&self, path: &str) -> Result<RemoveReport, WorkspaceError> {
        self.remove_up_to(path, None)
    }

    /// Deletes any entry, a folder with its content. It deletes nothing if there are more than
    /// `budget` files and folders, or if one of them is protected.
    pub fn remove_all(&self, path: &str, budget: u64) -> Result<RemoveReport, WorkspaceError> {
        self.remove_up_to(path, Some(budget))
    }

    fn remove_up_to(
        &self,
        path: &str,
        budget: Option<u64>,
    ) -> Result<RemoveReport, WorkspaceError> {
        let wanted = self.wanted(path)?;
        if wanted.split().is_none() {
            self.folder(&wanted, Operation::Look)?;
            return Err(if wanted.names().is_empty() {
                WorkspaceError::IsTheRoot
            } else {
                WorkspaceError::Malformed("the path ends with `..`: name the folder itself")
            });
        }
        let spot = self.spot(&wanted)?;
        let _locked = self.lock(&spot.folder, &spot.name, LockMode::Exclusive)?;
        let stat = spot.stat()?.ok_or(WorkspaceError::NotFound)?;
        let kind = kind(&stat);
        self.guard.check_contents(&spot.place)?;
        if kind != Kind::Folder {
            if wanted.is_folder() {
                return Err(WorkspaceError::NotAFolder);
            }
            unlinkat(&spot.folder, &spot.name, AtFlags::empty())?;
            return Ok(RemoveReport { kind, count: 1 });
        }
        let count = match budget {
            None => 0,
            Some(budget) => {
                let name = c_string(spot.name.as_bytes())?;
                let mut sweep = Removal { workspace: self, budget, count: 0 };
                // The first pass checks that everything may be deleted; the second deletes it.
                sweep.folder(&spot.folder, &name, &spot.place, RemovalPass::Look, 0)?;
                sweep.count = 0;
                sweep.folder(&spot.folder, &name, &spot.place, RemovalPass::Delete, 0)?;
                sweep.count
            }
        };
        unlinkat(&spot.folder, &spot.name, AtFlags::REMOVEDIR)?;
        Ok(RemoveReport { kind, count: count + 1 })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RemovalPass {
    Look,
    Delete,
}

struct Removal<'w> {
    workspace: &'w Workspace,
    budget: u64,
    count: u64,
}

impl Removal<'_> {
    /// Processes the content of a folder.
    fn folder(
        &mut self,
        parent: &OwnedFd,
        name: &CString,
        place: &Path,
        deed: RemovalPass,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if depth > MAX_DEPTH {
            return Err(WorkspaceError::Malformed("folders are nested too deep in it"));
        }
        let here = enter(parent, name)?;
        for (name, kind) in contents(&here, self.budget)? {
            let is_folder = kind == Kind::Folder;
            self.count += 1;
            if self.count > self.budget {
                return Err(WorkspaceError::TooMany(self.budget));
            }
            let place: PathBuf = place.join(std::ffi::OsStr::from_bytes(name.as_bytes()));
            self.workspace.guard.check(&place, Operation::Change)?;
            if is_folder {
                self.folder(&here, &name, &place, deed, depth + 1)?;
            }
            if deed == RemovalPass::Delete {
                let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                match unlinkat(&here, &name, flags) {
                    // Somebody else has deleted it already.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
        Ok(())
    }
}
