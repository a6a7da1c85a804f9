//! Determines which places a confinement withholds from a program, and which mounts that takes.
//!
//! Landlock only adds rights: a rule for a folder applies to everything below it. So a place below a grant that must
//! not be read or changed is covered by a mount: a hidden place by an empty file or folder without permissions, a
//! read-only place by a read-only mount of itself. Every folder between the grant and the place is mounted on itself
//! too, because a mount point can be neither renamed nor removed. Otherwise the program could move the folder away and
//! create another one.
//!
//! Programs have folders of their own in some hidden folders, such as their scratch directories. Such a folder is
//! mounted on its path again, inside the empty folder that covers the others.
//!
//! Paths are as the server uses them, not canonical: symbolic links on the way are followed. If the program could
//! replace such a link, it is not started.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::resolve::{FileId, FoundFile, LookupError, PathTrace, child, resolve_path};
use crate::jail::helper::plan::Access;

/// A mount; they are made in this order.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::jail) struct Mount {
    /// The mount point, without symbolic links.
    pub(in crate::jail) path: PathBuf,
    /// The kind of mount.
    pub(in crate::jail) id: FileId,
    pub(in crate::jail) kind: MountKind,
}

/// Ordered by strength, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::jail) enum MountKind {
    /// The folder itself, so that it cannot be renamed.
    Pin,
    /// The file or folder itself, with all mounts below it, read-only.
    ReadOnly,
    /// An empty file that cannot be opened.
    HiddenFile,
    /// An empty folder that cannot be opened, except for the program's own folders in it.
    HiddenFolder,
    /// The program's own folder in a hidden one.
    Own,
}

impl MountKind {
    pub(in crate::jail) const fn is_hidden(self) -> bool {
        matches!(self, Self::HiddenFile | Self::HiddenFolder)
    }
}

/// Why places could not be withheld.
#[derive(Debug)]
pub(in crate::jail) enum WithholdError {
    /// A place does not exist, and the program could create it.
    Missing(String),
    /// Somebody replaced a place during the start. A new start may succeed.
    Replaced(String),
    Because(String),
}

impl WithholdError {
    pub(in crate::jail) fn into_reason(self) -> String {
        match self {
            Self::Missing(reason) | Self::Replaced(reason) | Self::Because(reason) => reason,
        }
    }
}

impl From<String> for WithholdError {
    fn from(reason: String) -> Self {
        Self::Because(reason)
    }
}

/// The places that a program must not access, even if they are granted.
#[derive(Debug, Clone, Copy)]
pub(in crate::jail) struct WithheldPlaces<'a> {
    pub(in crate::jail) hidden: &'a [PathBuf],
    pub(in crate::jail) read_only: &'a [PathBuf],
    /// The grants that stay visible in a hidden place, because they belong to this program alone.
    pub(in crate::jail) own: &'a [PathBuf],
}

/// A folder on the way to a grant, to check whether the grant lies in a withheld place.
struct GrantedPath<'a> {
    access: Access,
    path: &'a Path,
    is_own: bool,
    /// The folders that contain the grant.
    above: Vec<FileId>,
}

impl WithheldPlaces<'_> {
    const fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.read_only.is_empty()
    }

    /// The mounts that a program with these grants needs; none if no grant contains a place.
    ///
    /// # Errors
    ///
    /// Why the program cannot be started.
    pub(in crate::jail) fn mounts(
        &self,
        grants: &[(Access, PathBuf)],
    ) -> Result<Vec<Mount>, WithholdError> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let mut granted = GrantedAccess::default();
        let mut paths = Vec::new();
        let mut own = Vec::new();
        for (access, path) in grants {
            let (is_own, access) = (self.own.contains(path), *access);
            match resolve_path(path) {
                Ok(FoundFile { way, .. }) => {
                    granted.add(access, &way);
                    let above = way.ids()[..way.ids().len().saturating_sub(1)].to_vec();
                    paths.push(GrantedPath { access, path, is_own, above });
                    if is_own {
                        own.push(way);
                    }
                }
                // A missing grant grants nothing now. Its location is checked nevertheless, because
                // it may be created before the program starts.
                Err(LookupError { error: Errno::NOENT, way }) => {
                    paths.push(GrantedPath { access, path, is_own, above: way.ids().to_vec() });
                }
                Err(_) => {}
            }
        }
        let mut mounts = BTreeMap::new();
        let mut places = PlaceFinder::default();
        for (paths, hides) in [(self.hidden, true), (self.read_only, false)] {
            // Sorting puts the files of a folder next to each other.
            let mut paths: Vec<_> = paths.iter().collect();
            paths.sort_unstable();
            paths.dedup();
            for path in paths {
                granted.withhold(path, hides, &mut places, &mut mounts)?;
            }
        }
        for grant in &paths {
            places.check_grant(grant)?;
        }
        for way in own {
            show(&way, &mut mounts);
        }
        Ok(uncovered(mounts))
    }
}

/// Adds a mount for the program's own folder if a mount hides a folder that contains it.
fn show(way: &PathTrace, mounts: &mut BTreeMap<PathBuf, (FileId, MountKind)>) {
    let Some((id, above)) = way.ids().split_last() else { return };
    let hides = |(known, kind): &(FileId, MountKind)| kind.is_hidden() && above.contains(known);
    if mounts.values().any(hides) {
        let known = mounts.entry(way.path(above.len())).or_insert((*id, MountKind::Own));
        // A mount that cannot be renamed or removed either.
        if known.1 == MountKind::Pin {
            known.1 = MountKind::Own;
        }
    }
}

/// Skips places inside a folder that is mounted as a whole.
fn uncovered(all: BTreeMap<PathBuf, (FileId, MountKind)>) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    // Folders come before their contents, so the last cover of a path is the innermost.
    let mut covers: Vec<(PathBuf, MountKind)> = Vec::new();
    for (path, (id, kind)) in all {
        covers.retain(|(cover, _)| path.starts_with(cover));
        let covered = match covers.last().map(|(_, cover)| cover) {
            None | Some(MountKind::Own) => false,
            Some(cover) if cover.is_hidden() => kind != MountKind::Own,
            // Nothing can be renamed in a read-only folder, but something in it may have to be hidden.
            Some(_) => !kind.is_hidden(),
        };
        if covered {
            continue;
        }
        if kind != MountKind::Pin {
            covers.push((path.clone(), kind));
        }
        mounts.push(Mount { path, id, kind });
    }
    mounts
}

/// The granted files and folders, and whether each is granted for writing.
#[derive(Default)]
struct GrantedAccess(HashMap<FileId, bool>);

impl GrantedAccess {
    fn add(&mut self, access: Access, way: &PathTrace) {
        if let Some(id) = way.ids().last() {
            *self.0.entry(*id).or_default() |= access == Access::Write;
        }
    }

    fn is_granted(&self, id: &FileId) -> bool {
        self.0.contains_key(id)
    }

    fn is_writable(&self, id: &FileId) -> bool {
        self.0.get(id).copied().unwrap_or_default()
    }

    fn withhold(
        &self,
        path: &Path,
        hides: bool,
        places: &mut PlaceFinder,
        mounts: &mut BTreeMap<PathBuf, (FileId, MountKind)>,
    ) -> Result<(), WithholdError> {
        let found = match places.find(path) {
            Ok(found) => found,
            Err(lost) => return self.lost(path, &lost),
        };
        let way = &found.way;
        if let Some(link) = way.link_in(|id| self.is_writable(id)) {
            return Err(format!(
                "`{}` is reached through the symbolic link `{}`, which the program could replace: \
                 use the path that the link points to, or move the link out of the folder that the \
                 program may write",
                shown(path),
                shown(link)
            )
            .into());
        }
        let Some(last) = way.ids().len().checked_sub(1) else { return Ok(()) };
        let id = way.ids()[last];
        places.note(id, path, hides);
        let writable = way.ids().iter().position(|id| self.is_writable(id));
        let granted =
            if hides { way.ids().iter().position(|id| self.is_granted(id)) } else { writable };
        if granted.is_none() {
            return Ok(());
        }
        let kind = match (hides, found.kind) {
            (false, _) => MountKind::ReadOnly,
            (true, FileType::Directory) => MountKind::HiddenFolder,
            (true, _) => MountKind::HiddenFile,
        };
        let pins = writable.map_or(last, |writable| writable + 1)..last;
        let pins = pins.map(|index| (way.path(index), (way.ids()[index], MountKind::Pin)));
        for (path, (id, kind)) in pins.chain([(way.path(last), (id, kind))]) {
            let known = mounts.entry(path).or_insert((id, kind));
            known.1 = known.1.max(kind);
        }
        Ok(())
    }

    /// A withheld place that cannot be examined. The program must not be able to create it.
    fn lost(&self, path: &Path, lost: &LookupError) -> Result<(), WithholdError> {
        let ids = lost.way.ids();
        if matches!(lost.error, Errno::NOENT | Errno::NOTDIR) {
            let link = lost.way.link_in(|id| self.is_writable(id));
            if link.is_none() && !ids.iter().any(|id| self.is_writable(id)) {
                return Ok(());
            }
            return Err(WithholdError::Missing(format!(
                "`{}` does not exist, and the program could create it, because it may write the \
                 folder `{}`: create it first, or grant another folder",
                shown(path),
                shown(&lost.way.path(ids.len().saturating_sub(1)))
            )));
        }
        if !ids.iter().any(|id| self.is_granted(id)) {
            return Ok(());
        }
        let reason =
            format!("`{}` cannot be withheld from the program: {}", shown(path), lost.error);
        Err(reason.into())
    }
}

/// The withheld places that exist.
#[derive(Default)]
struct PlaceFinder {
    hidden: HashMap<FileId, PathBuf>,
    read_only: HashMap<FileId, PathBuf>,
    /// The folder of the previous place, kept open.
    folder: Option<(PathBuf, FoundFile)>,
}

impl PlaceFinder {
    fn find(&mut self, path: &Path) -> Result<FoundFile, LookupError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return resolve_path(path);
        };
        if self.folder.as_ref().is_none_or(|(known, _)| known != parent) {
            self.folder = Some((parent.to_owned(), resolve_path(parent)?));
        }
        if let Some((_, folder)) = &self.folder
            && folder.kind == FileType::Directory
            && let Ok(Some(found)) = child(folder, name)
        {
            return Ok(found);
        }
        // A link, or an error that names the existing part of the path.
        resolve_path(path)
    }

    fn note(&mut self, id: FileId, path: &Path, hides: bool) {
        let places = if hides { &mut self.hidden } else { &mut self.read_only };
        places.entry(id).or_insert_with(|| path.to_owned());
    }

    /// Fails if a grant is inside a withheld place, where it would have no effect.
    fn check_grant(&self, grant: &GrantedPath<'_>) -> Result<(), String> {
        let GrantedPath { access, path, is_own, above } = grant;
        let above: HashSet<_> = above.iter().collect();
        let holds = |places: &HashMap<FileId, PathBuf>| {
            places.iter().find(|(id, _)| above.contains(id)).map(|(_, place)| shown(place))
        };
        if let Some(place) = holds(&self.hidden).filter(|_| !is_own) {
            return Err(format!(
                "`{}` is granted, but lies in `{place}`, which no program may read: grant another \
                 folder",
                shown(path)
            ));
        }
        if *access == Access::Write
            && let Some(place) = holds(&self.read_only)
        {
            let why = if is_searched(&place) {
                "a folder of the server's PATH, and programs may not change what the server starts: \
                 start the server with a PATH without it, or grant another folder"
            } else {
                "which no program may change: grant another folder"
            };
            return Err(format!(
                "`{}` is granted for writing, but lies in `{place}`, {why}",
                shown(path)
            ));
        }
        Ok(())
    }
}

/// Whether a folder is in the server's `PATH`.
fn is_searched(folder: &str) -> bool {
    let Some(search) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&search).any(|own| {
        own.is_absolute()
            && (own == Path::new(folder)
                || own.canonicalize().is_ok_and(|own| own == Path::new(folder)))
    })
}

/// A path on one line.
pub(in crate::jail) fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().flat_map(char::escape_debug).collect()
}
