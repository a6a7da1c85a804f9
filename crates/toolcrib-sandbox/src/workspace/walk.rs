//! Walking a folder by descriptor, in name order, with a budget.

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
pub enum Step {
    /// Go on, into it if it is a folder.
    Enter,
    /// Go on, not into it.
    Pass,
    /// Go no further.
    Stop,
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Walked {
    /// How many files, folders and links were seen.
    pub seen: u64,
    /// Folders that could not be looked into: no permission, or gone meanwhile.
    pub closed: u64,
    /// There is more than the budget allowed to see.
    pub cut: bool,
}

/// Something that is seen on a walk.
#[derive(Debug)]
pub struct Visit<'v> {
    folder: &'v OwnedFd,
    name: &'v CString,
    place: &'v Path,
    kind: Kind,
    depth: usize,
}

impl Visit<'_> {
    /// Where it is, from the folder that the walk began in, as bytes that need not be UTF-8.
    pub fn path(&self) -> &Path {
        self.place
    }

    /// The same as text, with control characters escaped.
    pub fn shown(&self) -> String {
        shown(self.place.as_os_str())
    }

    /// What it is; links are not followed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many folders it is below the first: 0 for what is in the first itself.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// More about it; `None`: it is gone.
    pub fn entry(&self) -> Option<Entry> {
        let stat = statat(self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Entry::from(&stat))
    }

    /// Opens it, if it is a regular file.
    pub fn open(&self) -> Result<OpenFile, WorkspaceError> {
        open_in(self.folder, self.name)
    }

    /// Opens a regular file in it, if it is a folder: for what says how the folder is to be read.
    pub fn open_inside(&self, name: &str) -> Result<OpenFile, WorkspaceError> {
        let name = c_string(name.as_bytes())?;
        open_in(&enter(self.folder, self.name)?, &name)
    }
}

impl Workspace {
    /// Visits what is below a folder, each folder before its content, in the byte order of names; at
    /// most `budget` files, folders and links. Links are visited and not followed; sensitive places
    /// are left out.
    pub fn walk(
        &self,
        path: &str,
        budget: u64,
        visit: &mut dyn FnMut(&Visit<'_>) -> Step,
    ) -> Result<Walked, WorkspaceError> {
        let wanted = self.wanted(path)?;
        self.check_text(&wanted)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened =
            self.tree.find(&wanted, flags).map_err(|error| self.telling(error, &wanted))?;
        let start = self.tree.place(&opened)?;
        self.guard.check(&start, Operation::Look)?;
        let walked = Walked { seen: 0, closed: 0, cut: false };
        let mut walk = FolderWalk { workspace: self, start, budget, walked, visit };
        walk.folder(&opened.fd, Path::new(""), 0)?;
        Ok(walk.walked)
    }
}

struct FolderWalk<'w> {
    workspace: &'w Workspace,
    /// Where the walk began, from the root.
    start: PathBuf,
    budget: u64,
    walked: Walked,
    visit: &'w mut dyn FnMut(&Visit<'_>) -> Step,
}

impl FolderWalk<'_> {
    /// `false`: go no further.
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
                Step::Stop => return Ok(false),
                Step::Enter if kind == Kind::Folder && depth < MAX_DEPTH => {
                    let Ok(inside) = enter(here, &name) else {
                        self.walked.closed += 1;
                        continue;
                    };
                    if !self.folder(&inside, &place, depth + 1)? {
                        return Ok(false);
                    }
                }
                Step::Enter | Step::Pass => {}
            }
        }
        Ok(true)
    }
}

fn open_in(folder: &OwnedFd, name: &CString) -> Result<OpenFile, WorkspaceError> {
    let fd = openat(folder, name, READ | OFlags::NOFOLLOW, Mode::empty())?;
    open_file(fd.into(), None)
}
