//! What is granted, opened where the program is going to run: after its mounts are made, and without
//! following a symbolic link that the program, or another one of its workspace, could have replaced.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use super::resolve::{Id, PathTrace, open_without_links, resolve_path};
use super::withheld::shown;
use crate::jail::helper::plan::{Access, Plan};

/// Why something was not opened.
#[derive(Debug)]
pub(in crate::jail) enum NotOpened {
    /// The system's answer.
    Because(Errno),
    /// It is reached through a link that is not to be trusted; this says so.
    Link(String),
}

/// Opens what a plan names.
#[derive(Debug, Default)]
pub(in crate::jail) struct Opener {
    /// The folders in which programs may replace links: the workspace, also where this program has no
    /// right to it, and what it may write.
    changeable: HashSet<Id>,
    /// What it may write anyway, so that a link to something in there gives it nothing.
    writable: HashSet<Id>,
}

impl Opener {
    /// Of this plan, in the mount namespace that the calling process has now.
    pub(in crate::jail) fn new(plan: &Plan) -> Self {
        let way = |path: &Path| Some(resolve_path(path).ok()?.way);
        let last = |way: &PathTrace| way.ids().last().copied();
        let written = plan.grants.iter().filter(|(access, _)| *access == Access::Write);
        let written: Vec<_> = written.filter_map(|(_, path)| way(path)).collect();
        let workspace = plan.workspace.as_deref().and_then(way);
        let changeable: HashSet<_> = written.iter().chain(&workspace).filter_map(last).collect();
        // What is reached through such a link is not granted, so it makes no other link harmless.
        let granted =
            written.iter().filter(|way| way.link_in(|id| changeable.contains(id)).is_none());
        Self { writable: granted.filter_map(last).collect(), changeable }
    }

    /// Opens a path with `O_PATH`.
    pub(in crate::jail) fn open(&self, path: &Path) -> Result<OwnedFd, NotOpened> {
        match open_without_links(path) {
            Err(Errno::LOOP) => {}
            opened => return opened.map_err(NotOpened::Because),
        }
        let found = resolve_path(path).map_err(|lost| NotOpened::Because(lost.error))?;
        let Some(link) = found.way.link_in(|id| self.changeable.contains(id)) else {
            return Ok(found.file);
        };
        if found.way.ids().iter().any(|id| self.writable.contains(id)) {
            return Ok(found.file);
        }
        Err(NotOpened::Link(format!(
            "`{}` is reached through the symbolic link `{}`, which programs of the workspace can \
             replace: name what the link points to",
            shown(path),
            shown(link)
        )))
    }
}
