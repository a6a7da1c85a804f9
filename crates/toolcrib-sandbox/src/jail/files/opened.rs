//! Opens the granted places in the process that becomes the program: after its mounts are made, and
//! without following a symbolic link that this program, or another one of its workspace, could have
//! replaced.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use super::resolve::{FileId, PathTrace, open_without_links, resolve_path};
use super::withheld::shown;
use crate::jail::helper::plan::{Access, Plan};

/// Why a place was not opened.
#[derive(Debug)]
pub(in crate::jail) enum OpenFailure {
    /// The error of the system.
    Because(Errno),
    /// The path contains an untrusted link, which the message names.
    Link(String),
}

/// Opens the places of a plan.
#[derive(Debug, Default)]
pub(in crate::jail) struct PlanOpener {
    /// The folders in which programs may replace links: the workspace, even where this program has no access to it, and
    /// the places that it may write.
    changeable: HashSet<FileId>,
    /// The places that it may write anyway, so that a link into them gives it no additional access.
    writable: HashSet<FileId>,
}

impl PlanOpener {
    /// Creates an opener for this plan, in the current mount namespace of the calling process.
    pub(in crate::jail) fn new(plan: &Plan) -> Self {
        let way = |path: &Path| Some(resolve_path(path).ok()?.way);
        let last = |way: &PathTrace| way.ids().last().copied();
        let written = plan.grants.iter().filter(|(access, _)| *access == Access::Write);
        let written: Vec<_> = written.filter_map(|(_, path)| way(path)).collect();
        let workspace = plan.workspace.as_deref().and_then(way);
        let changeable: HashSet<_> = written.iter().chain(&workspace).filter_map(last).collect();
        // A place that is reached through such a link is not granted, so it does not make another
        // link harmless.
        let granted =
            written.iter().filter(|way| way.link_in(|id| changeable.contains(id)).is_none());
        Self { writable: granted.filter_map(last).collect(), changeable }
    }

    /// Opens a path with `O_PATH`.
    pub(in crate::jail) fn open(&self, path: &Path) -> Result<OwnedFd, OpenFailure> {
        match open_without_links(path) {
            Err(Errno::LOOP) => {}
            opened => return opened.map_err(OpenFailure::Because),
        }
        let found = resolve_path(path).map_err(|lost| OpenFailure::Because(lost.error))?;
        let Some(link) = found.way.link_in(|id| self.changeable.contains(id)) else {
            return Ok(found.file);
        };
        if found.way.ids().iter().any(|id| self.writable.contains(id)) {
            return Ok(found.file);
        }
        Err(OpenFailure::Link(format!(
            "`{}` is reached through the symbolic link `{}`, which programs of the workspace can \
             replace: name what the link points to",
            shown(path),
            shown(link)
        )))
    }
}
