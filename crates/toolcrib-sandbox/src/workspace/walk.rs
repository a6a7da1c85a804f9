//! Walks a folder by descriptor, in name order, with a budget.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};

use super::content::{MAX_DEPTH, c_string, contents, enter};
use super::folder::{READ, shown};
use super::guard::Operation;
use super::read::open_file;
use super::{Entry, Kind, OpenFile, Workspace, WorkspaceError};

/// What to do after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkControl {
    /// Continue; if it is a folder, enter it.
    Enter,
    /// Continue without entering it.
    Pass,
    /// Stop.
    Stop,
}

/// The result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalkReport {
    /// The number of files, folders and links that were visited.
    pub seen: u64,
    /// The number of folders that could not be entered, because of permissions or because they were
    /// deleted meanwhile.
    pub closed: u64,
    /// Whether there are more entries than the budget.
    pub cut: bool,
}

/// An entry that is visited on a walk.
#[derive(Debug)]
pub struct Visit<'v> {
    folder: &'v OwnedFd,
    name: &'v CString,
    place: &'v Path,
    kind: Kind,
    depth: usize,
}

impl Visit<'_> {
    /// Its path relative to the start of the walk, as bytes that need not be UTF-8.
    pub fn path(&self) -> &Path {
        self.place
    }

    /// The same as text, with control characters escaped.
    pub fn shown(&self) -> String {
        shown(self.place.as_os_str())
    }

    /// Its kind; links are not followed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of folders between it and the start: 0 for the content of the start itself.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Its details; `None` if it was deleted.
    pub fn entry(&self) -> Option<Entry> {
        let stat = statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Entry::from(&stat))
    }

    /// Opens it if it is a regular file.
    pub fn open(&self) -> Result<OpenFile, WorkspaceError> {
        open_in(self.folder, self.name)
    }

    /// Opens a regular file in it if it is a folder, for files that say how the folder is to be
    /// read.
    pub fn open_inside(&self, name: &str) -> Result<OpenFile, WorkspaceError> {
        let name = c_string(name.as_bytes())?;
        open_in(&enter(self.folder, self.name)?, &name)
    }
}

impl Workspace {
    /// Visits everything below a folder, each folder before its content, in the byte order of
    /// names; at most `budget` files, folders and links. Links are visited but not followed;
    /// sensitive places are left out.
    pub fn walk(
        &self,
        path: &str,
        budget: u64,
        visit: &mut dyn FnMut(&Visit<'_>) -> WalkControl,
    ) -> Result<WalkReport, WorkspaceError> {
        let wanted = self.wanted(path)?;
        self.check_text(&wanted)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened =
            self.tree.find(&wanted, flags).map_err(|error| self.telling(error, &wanted))?;
        let start = self.tree.place(&opened)?;
        self.guard.check(&start, Operation::Look)?;
        let walked = WalkReport { seen: 0, closed: 0, cut: false };
        let mut walk = FolderWalk { workspace: self, start, budget, walked, visit };
        walk.folder(&opened.fd, Path::new(""), 0)?;
        Ok(walk.walked)
    }
}

struct FolderWalk<'w> {
    workspace: &'w Workspace,
    /// The path of the start, from the root.
    start: PathBuf,
    budget: u64,
    walked: WalkReport,
    visit: &'w mut dyn FnMut(&Visit<'_>) -> WalkControl,
}

impl FolderWalk<'_> {
    /// Returns `false` to stop the walk.
    fn folder(
        &mut self,
        here: &OwnedFd,
        place: &Path,
        depth: usize,
    ) -> Result<bool, WorkspaceError> {
        let left = self.budget - self.walked.seen;
        let mut names = contents(here, left)?;
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in names {
            let place = place.join(OsStr::from_bytes(name.as_bytes()));
            let guard = &self.workspace.guard;
            if guard.check(&self.start.join(&place), Operation::Look).is_err() {
                continue;
            }
            if self.walked.seen == self.budget {
                self.walked.cut = true;
                return Ok(false);
            }
            self.walked.seen += 1;
            let visit = Visit { folder: here, name: &name, place: &place, kind, depth };
            match (self.visit)(&visit) {
                WalkControl::Stop => return Ok(false),
                WalkControl::Enter if kind == Kind::Folder && depth < MAX_DEPTH => {
                    let Ok(inside) = enter(here, &name) else {
                        self.walked.closed += 1;
                        continue;
                    };
                    if !self.folder(&inside, &place, depth + 1)? {
                        return Ok(false);
                    }
                }
                WalkControl::Enter | WalkControl::Pass => {}
            }
        }
        Ok(true)
    }
}

fn open_in(folder: &OwnedFd, name: &CString) -> Result<OpenFile, WorkspaceError> {
    let fd = openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty())?;
    open_file(fd.into(), None)
}
