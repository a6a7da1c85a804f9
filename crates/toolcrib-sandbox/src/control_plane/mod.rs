//! The control plane: everything that determines what a server runs, as one value.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::{Confinement, Profile};

mod exposures;
mod record;
mod taken;

pub use exposures::ExposedFile;
pub(crate) use exposures::RunningProgram;
pub use record::ExposureRecord;
pub(crate) use taken::WithheldFromGrants;

use exposures::Exposures;
use taken::OwnFolder;

/// How often to check whether a withheld file of a long-running program was replaced.
const REPLACED_PERIOD: Duration = Duration::from_secs(1);

/// How long file operations rely on a look for new links.
const REFRESH_PERIOD: Duration = Duration::from_millis(20);

/// How many links are followed on the way to a place, as in Linux.
const MAX_LINKS: usize = 40;

/// The places of a [`ControlPlane`] at one moment.
///
/// Every place is listed as given and, as far as it exists, with links resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// Files and folders that no tool reads or changes: config, state, audit log, secret files.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that no tool changes: manifests, the lock, scripts, programs.
    pub read_only: Vec<PathBuf>,
    /// Symbolic links on the way to these places. Replacing such a link would replace what the
    /// server reads or runs, so no tool may change them either.
    pub links: Vec<PathBuf>,
    /// Places that no program may create if they are missing: a program that could is not started.
    /// Other missing places are recorded ([`ControlPlane::exposed`]).
    pub guarded: Vec<PathBuf>,
    /// What symbolic links in the folders of [`with_links_in`](Self::with_links_in) lead to.
    linked: Vec<PathBuf>,
    /// The places before links were resolved.
    given: GivenPlaces,
}

/// Places as a server names them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct GivenPlaces {
    hidden: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    guarded: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    endings: &'static [&'static str],
}

impl Places {
    /// Resolves places as they are now. Relative paths are relative to the current directory;
    /// missing places are listed where they would be.
    pub fn resolve<H, R>(
        hidden: impl IntoIterator<Item = H>,
        read_only: impl IntoIterator<Item = R>,
    ) -> Self
    where
        H: AsRef<Path>,
        R: AsRef<Path>,
    {
        let mut places = Self::default();
        let owned = |place: &dyn AsRef<Path>| place.as_ref().to_owned();
        places.given.hidden = hidden.into_iter().map(|place| owned(&place)).collect();
        places.given.read_only = read_only.into_iter().map(|place| owned(&place)).collect();
        let mut links = Vec::new();
        for place in &places.given.hidden {
            follow(place, &mut places.hidden, &mut links);
        }
        for place in &places.given.read_only {
            follow(place, &mut places.read_only, &mut links);
        }
        places.add_links(links);
        for list in [&mut places.hidden, &mut places.read_only] {
            list.sort();
            list.dedup();
        }
        places
    }

    /// Adds symbolic links on the way to places. A link below a place is withheld with it.
    fn add_links(&mut self, mut links: Vec<PathBuf>) {
        links.retain(|link| !self.withholds_folder_of(link));
        self.links.extend(links);
        self.links.sort();
        self.links.dedup();
    }

    /// Adds places that no program may create if they are missing, such as manifest folders.
    #[must_use]
    pub fn guarded<P: AsRef<Path>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        for place in places {
            follow(place.as_ref(), &mut self.guarded, &mut Vec::new());
            self.given.guarded.push(place.as_ref().to_owned());
        }
        self.guarded.sort();
        self.guarded.dedup();
        self
    }

    /// Adds what symbolic links in these folders lead to, if the names of the links have one of these
    /// endings: read-only, and guarded where it is missing. For folders from which a server reads
    /// every file with such a name, so that a link to a missing file is a file to come.
    #[must_use]
    pub fn with_links_in<P: AsRef<Path>>(
        mut self,
        folders: impl IntoIterator<Item = P>,
        endings: &'static [&'static str],
    ) -> Self {
        self.given.folders = folders.into_iter().map(|folder| folder.as_ref().to_owned()).collect();
        self.given.endings = endings;
        let (linked, links) = self.given.linked();
        self.read_only.extend(linked.iter().cloned());
        self.guarded.extend(linked.iter().cloned());
        for list in [&mut self.read_only, &mut self.guarded] {
            list.sort();
            list.dedup();
        }
        self.linked = linked;
        self.add_links(links);
        self
    }

    /// The same places, resolved as they are now.
    fn resolved_again(&self) -> Self {
        let GivenPlaces { hidden, read_only, guarded, folders, endings } = &self.given;
        Self::resolve(hidden, read_only).guarded(guarded).with_links_in(folders, endings)
    }

    /// Whether there is a symbolic link on the way to one of the places that was none when they were
    /// resolved, or that leads elsewhere now.
    fn has_new_links(&self) -> bool {
        if self.given.linked().0 != self.linked {
            return true;
        }
        let withheld = || self.hidden.iter().chain(&self.read_only);
        let mut seen = HashSet::new();
        // Of the places behind one link, the first is enough: it leads elsewhere if the link does.
        let mut through_links = withheld().filter(|place| {
            let mut ways = place.ancestors().take_while(|way| seen.insert(*way));
            ways.any(Path::is_symlink)
        });
        through_links.any(|place| {
            let (mut found, mut links) = (Vec::new(), Vec::new());
            follow(place, &mut found, &mut links);
            let is_known = |link: &PathBuf| {
                self.links.binary_search(link).is_ok() || self.withholds_folder_of(link)
            };
            let is_withheld = |found: &PathBuf| withheld().any(|place| found.starts_with(place));
            !links.iter().all(is_known) || !found.iter().all(is_withheld)
        })
    }

    /// Whether the link is below a withheld place, and is withheld with it.
    fn withholds_folder_of(&self, link: &Path) -> bool {
        let mut all = self.hidden.iter().chain(&self.read_only);
        all.any(|place| link != place && link.starts_with(place))
    }

    /// The hidden and read-only places, without those inside a folder that is listed too.
    fn withheld(&self) -> impl Iterator<Item = &PathBuf> {
        uncovered(&self.hidden).into_iter().chain(uncovered(&self.read_only))
    }

    /// Whether a program that was started under `before` could access a place that was added since.
    /// Such a program has to be restarted.
    pub fn adds_for(&self, before: &Self, confinement: &Confinement) -> bool {
        let new = |now: &[PathBuf], then: &[PathBuf], reach: &ReachablePaths| {
            let is_new = |place: &Path| !then.iter().any(|known| place.starts_with(known));
            now.iter().any(|place| is_new(place) && reach.meets(place))
        };
        let (written, granted) =
            (ReachablePaths::written(confinement), ReachablePaths::granted(confinement));
        new(&self.hidden, &before.hidden, &granted)
            || new(&self.read_only, &before.read_only, &written)
            || new(&self.links, &before.links, &written)
    }

    /// Why a program with these grants cannot be prevented from changing one of the places; `None`
    /// if it can. A symbolic link inside a writable grant can always be replaced, even if its
    /// target is protected.
    pub fn objection(&self, confinement: &Confinement) -> Option<String> {
        let written = ReachablePaths::written(confinement);
        let link =
            self.links.iter().find(|link| written.0.iter().any(|grant| link.starts_with(grant)))?;
        Some(format!(
            "the symbolic link `{}` leads to what decides what this server runs, and a program with \
             these grants could replace the link: name its target in the settings, or move the link \
             out of the workspace",
            link.display()
        ))
    }
}

/// Everything that determines what a server runs, or that only the server may know.
///
/// The server sets it ([`set`](Self::set)) whenever its configuration or its declarations change.
/// What is withheld from a program is fixed when it starts, so a place that comes later can be changed
/// by programs that already run. Nobody has to wait for them, and they are not ended: such a place is
/// [exposed](Self::exposed), and not used before the operator has [reviewed](Self::reviewed) it.
///
/// [Workspaces](crate::WorkspaceBuilder::control_plane) ask it at each operation;
/// [confinements](Confinement::control_plane) take it in when a program starts. Clones share their
/// places.
///
/// ```
/// use toolcrib_sandbox::{Confinement, ControlPlane, Places, Profile, Workspace, WorkspaceError};
///
/// let dir = tempfile::tempdir()?;
/// let plane = ControlPlane::new();
/// let workspace = Workspace::builder(dir.path()).control_plane(&plane).open()?;
/// workspace.write("build.sh", b"true")?;
///
/// plane.set(Places::resolve([dir.path().join("config.yml")], [dir.path().join("build.sh")]));
/// assert!(matches!(workspace.write("build.sh", b"false"), Err(WorkspaceError::Protected)));
/// assert!(matches!(workspace.read("config.yml", 100), Err(WorkspaceError::Sensitive)));
///
/// let confinement = Confinement::new(Profile::Workspace).workspace(dir.path());
/// assert!(confinement.control_plane(&plane).read_only.contains(&dir.path().join("build.sh")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ControlPlane(Arc<SharedPlaces>);

#[derive(Debug, Default)]
struct SharedPlaces {
    places: watch::Sender<Arc<Places>>,
    exposures: Mutex<Exposures>,
    /// When file operations last looked for new links.
    refreshed: Mutex<Option<Instant>>,
}

/// Two are equal if they share their places.
impl PartialEq for ControlPlane {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ControlPlane {}

impl ControlPlane {
    /// An empty control plane.
    pub fn new() -> Self {
        Self::default()
    }

    /// The places as they are now.
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.0.places.borrow())
    }

    /// Replaces all places at once. Returns whether anything changed. A place that is added while a
    /// program runs that could change it is [exposed](Self::exposed).
    pub fn set(&self, places: Places) -> bool {
        let changed = self.0.places.send_if_modified(|now| {
            let changed = **now != places;
            if changed {
                *now = Arc::new(places);
            }
            changed
        });
        if changed {
            self.exposures().add(&self.places());
        }
        changed
    }

    /// Resolves the places again if somebody has put a symbolic link in the place of one of them, or
    /// of a folder on the way. Its target is then withheld too, and whoever could replace the link
    /// is [refused](Places::objection).
    pub fn refresh(&self) {
        let seen = self.places();
        if !seen.has_new_links() {
            return;
        }
        let resolved = seen.resolved_again();
        let changed = self.0.places.send_if_modified(|now| {
            // Places that were set meanwhile are newer.
            let is_current = Arc::ptr_eq(now, &seen);
            if is_current {
                *now = Arc::new(resolved);
            }
            is_current
        });
        if changed {
            self.exposures().add(&self.places());
        }
    }

    /// [Refreshes](Self::refresh) the places unless that was done in the last 20 ms: for file
    /// operations, of which a search does thousands.
    pub(crate) fn refresh_now_and_then(&self) {
        {
            let mut last = self.0.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| last.elapsed() < REFRESH_PERIOD) {
                return;
            }
            *last = Some(Instant::now());
        }
        self.refresh();
    }

    /// Completes once a program with these grants, which was started under `before`, could access a
    /// place: a place was added, or a withheld file was replaced by another one. Such a program has
    /// to be restarted.
    pub async fn outgrown(&self, before: &Places, confinement: &Confinement) {
        let mut places = self.0.places.subscribe();
        let written = ReachablePaths::written(confinement);
        // Files inside a folder that is withheld as a whole may be replaced.
        let files: Vec<_> = before
            .withheld()
            .filter(|place| written.meets(place) && place.is_file())
            .map(|place| (place, identity(place)))
            .collect();
        loop {
            tokio::select! {
                // Fails only without a sender, which `self` holds.
                _ = places.wait_for(|now| now.adds_for(before, confinement)) => return,
                () = tokio::time::sleep(REPLACED_PERIOD) => {}
            }
            if files.iter().any(|(place, then)| identity(place) != *then) {
                return;
            }
        }
    }

    /// The first of these files that a program could have created or changed, and that must therefore
    /// not be used. A place is exposed
    ///
    /// - if it was missing when a program started that could create it,
    /// - if it was added to the places while a program ran that could change it, and
    /// - if it was replaced by another file while a program ran that could change that file.
    ///
    /// It stays exposed until the operator has [reviewed](Self::reviewed) it.
    pub fn exposed<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
    ) -> Option<ExposedFile> {
        // While no program runs nothing is added: the places were looked at when the last one ended.
        if self.exposures().has_running() {
            self.refresh();
            self.exposures().add(&self.places());
        }
        let files: Vec<_> = files.into_iter().map(|file| file.as_ref().to_owned()).collect();
        let mut exposures = self.exposures();
        exposures.read_record(&files);
        if exposures.is_empty() {
            return None;
        }
        files.into_iter().find_map(|path| {
            let mut spellings = Vec::new();
            follow(&path, &mut spellings, &mut Vec::new());
            let is_reviewed = exposures.find(&spellings)?;
            Some(ExposedFile { path, is_reviewed })
        })
    }

    /// Keeps exposed places in a record from now on, and adds those that it has.
    pub fn record_exposures(&self, record: Arc<dyn ExposureRecord>) {
        self.exposures().keep_in(record);
    }

    /// The operator takes responsibility for the [exposed](Self::exposed) files as they are now, for
    /// example with a reload. Those that no running program can change are no longer exposed. Of the
    /// others the content is recorded: they are used if it is the same once those programs have ended.
    ///
    /// Returns the files for which this is new, sorted, so that the operator can be told which they are.
    pub fn reviewed(&self) -> Vec<PathBuf> {
        self.exposures().review()
    }

    fn exposures(&self) -> MutexGuard<'_, Exposures> {
        self.0.exposures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GivenPlaces {
    /// What links in the folders lead to, and all links on the way.
    fn linked(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut targets, mut links) = (Vec::new(), Vec::new());
        let counts = |name: &OsStr| {
            let extension = Path::new(name).extension().and_then(OsStr::to_str);
            extension.is_some_and(|extension| self.endings.contains(&extension))
        };
        for folder in &self.folders {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let is_link = entry.file_type().is_ok_and(|found| found.is_symlink());
                if is_link && counts(&entry.file_name()) {
                    let mut found = Vec::new();
                    follow(&entry.path(), &mut found, &mut links);
                    // The first is the link itself, which is withheld with its folder.
                    targets.extend(found.into_iter().skip(1));
                }
            }
        }
        targets.sort();
        targets.dedup();
        (targets, links)
    }
}

/// The places of a sorted list that are not inside a folder of the list.
fn uncovered(places: &[PathBuf]) -> Vec<&PathBuf> {
    let mut kept: Vec<&PathBuf> = Vec::new();
    for place in places {
        // A folder comes before what is in it.
        let covers = |folder: &&&PathBuf| place.starts_with(folder) && folder.is_dir();
        if kept.iter().rev().find(covers).is_none() {
            kept.push(place);
        }
    }
    kept
}

/// Device and inode of the file at a place, if any.
fn identity(place: &Path) -> Option<(u64, u64)> {
    place.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// The path with links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = path
        .ancestors()
        .find_map(|there| Some(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?)));
    real.unwrap_or(path)
}

/// Whether the path exists and contains no links.
fn is_plain(place: &Path) -> bool {
    place.canonicalize().is_ok_and(|real| real == place)
}

fn exists(place: &Path) -> bool {
    place.symlink_metadata().is_ok()
}

/// The paths that a confined program can reach, as given and with links resolved.
#[derive(Debug)]
pub(crate) struct ReachablePaths(Vec<PathBuf>);

impl ReachablePaths {
    /// What it can write; empty for a trusted program, which is not confined.
    fn written(confinement: &Confinement) -> Self {
        let in_workspace =
            matches!(confinement.profile, Profile::Workspace | Profile::WorkspaceNet);
        let workspace = confinement.workspace.iter().filter(|_| in_workspace);
        Self::of(confinement, workspace.chain(&confinement.write))
    }

    /// What it can read or write.
    pub(crate) fn granted(confinement: &Confinement) -> Self {
        let mut reach = Self::written(confinement);
        reach.0.extend(Self::of(confinement, &confinement.read).0);
        reach
    }

    fn of<'c>(confinement: &Confinement, grants: impl IntoIterator<Item = &'c PathBuf>) -> Self {
        let grants = grants.into_iter().filter(|_| confinement.profile != Profile::Trusted);
        Self(grants.flat_map(|grant| [grant.clone(), real(grant)]).collect())
    }

    /// Whether a place contains a grant or is inside one.
    pub(crate) fn meets(&self, place: &Path) -> bool {
        self.0.iter().any(|grant| place.starts_with(grant) || grant.starts_with(place))
    }
}

/// Lists a place as given and with links resolved, and the links on the way.
fn follow(place: &Path, found: &mut Vec<PathBuf>, links: &mut Vec<PathBuf>) {
    let Ok(place) = std::path::absolute(place) else { return };
    if !place.components().any(|part| part == Component::ParentDir) {
        found.push(place.clone());
    }
    let mut path = place;
    for _ in 0..MAX_LINKS {
        match first_link(&path) {
            Ok(real) => return found.push(real),
            Err((link, target)) => {
                links.push(link);
                path = target;
            }
        }
    }
}

/// The path without links and `..`; or the first link on the way, and the path with the link
/// replaced by its target.
fn first_link(path: &Path) -> Result<PathBuf, (PathBuf, PathBuf)> {
    let mut real = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::ParentDir => drop(real.pop()),
            Component::Normal(name) => {
                let next = real.join(name);
                if let Ok(target) = next.read_link() {
                    return Err((next, real.join(target).join(parts.as_path())));
                }
                real = next;
            }
            other => real.push(other),
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests;
