//! The control plane: everything that decides what a server runs, as one value.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::{Confinement, Profile};

/// How many links are followed on the way to a place, as Linux does.
const MAX_LINKS: usize = 40;

/// The places of a [`ControlPlane`] at one moment.
///
/// Every place is listed as it was given and as it is without links, as far as it exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// Files and folders that no tool reads or changes: config, state, audit log, secret files.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that no tool changes: manifests, the lock, scripts, programs.
    pub read_only: Vec<PathBuf>,
    /// Symbolic links on the way to one of these places. Whoever replaces such a link replaces what
    /// the server reads or runs, so no tool changes them either.
    pub links: Vec<PathBuf>,
}

impl Places {
    /// Resolves places as they are now. Relative ones are relative to the current directory; places
    /// that do not exist are listed where they would be.
    pub fn resolve<H, R>(
        hidden: impl IntoIterator<Item = H>,
        read_only: impl IntoIterator<Item = R>,
    ) -> Self
    where
        H: AsRef<Path>,
        R: AsRef<Path>,
    {
        let mut places = Self::default();
        let mut links = Vec::new();
        for place in hidden {
            follow(place.as_ref(), &mut places.hidden, &mut links);
        }
        for place in read_only {
            follow(place.as_ref(), &mut places.read_only, &mut links);
        }
        places.links = links;
        for list in [&mut places.hidden, &mut places.read_only, &mut places.links] {
            list.sort();
            list.dedup();
        }
        places
    }

    /// Whether a program that was started under `before` could touch a place that has been added
    /// since. Such a program has to be started again.
    pub fn adds_for(&self, before: &Self, confinement: &Confinement) -> bool {
        let new = |now: &[PathBuf], then: &[PathBuf], reach: &dyn Fn(&Path) -> bool| {
            now.iter().any(|place| !then.contains(place) && reach(place))
        };
        let written = |place: &Path| writable_grant(confinement, place).is_some();
        let granted = |place: &Path| {
            let read = confinement.read.iter().any(|grant| overlap(grant, place));
            confinement.profile != Profile::Trusted && read || written(place)
        };
        new(&self.hidden, &before.hidden, &granted)
            || new(&self.read_only, &before.read_only, &written)
            || new(&self.links, &before.links, &written)
    }

    /// Why a program with these grants cannot be kept from changing one of the places; `None`: it
    /// can be. A symbolic link inside a writable grant can always be replaced, whatever is done about
    /// the file it leads to.
    pub fn objection(&self, confinement: &Confinement) -> Option<String> {
        let link = self.links.iter().find(|link| writable_grant(confinement, link).is_some())?;
        Some(format!(
            "could replace the symbolic link `{}`, which leads to a file or folder that decides what \
             this server runs: name its target in the settings, or move the link out of the workspace",
            link.display()
        ))
    }
}

/// Everything that decides what a server runs, or that only the server may know.
///
/// The server sets it ([`set`](Self::set)) whenever its configuration or its declarations change.
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
/// let confinement = Confinement::new(Profile::Workspace).control_plane(&plane);
/// assert!(confinement.hidden.contains(&dir.path().join("config.yml")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ControlPlane(Arc<RwLock<Arc<Places>>>);

impl ControlPlane {
    /// One without places.
    pub fn new() -> Self {
        Self::default()
    }

    /// The places as they are now.
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces all places at once. Returns whether anything changed.
    pub fn set(&self, places: Places) -> bool {
        let mut now = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = **now != places;
        if changed {
            *now = Arc::new(places);
        }
        changed
    }
}

/// The writable grant of a confined program that contains `place`, or that `place` contains.
fn writable_grant<'c>(confinement: &'c Confinement, place: &Path) -> Option<&'c Path> {
    let workspace = confinement
        .workspace
        .as_ref()
        .filter(|_| matches!(confinement.profile, Profile::Workspace | Profile::WorkspaceNet));
    let confined = confinement.profile != Profile::Trusted;
    let grants = workspace.into_iter().chain(&confinement.write).filter(|_| confined);
    grants.map(PathBuf::as_path).find(|grant| overlap(grant, place))
}

/// Whether one of two places contains the other. `grant` may be written with links.
fn overlap(grant: &Path, place: &Path) -> bool {
    let either = |grant: &Path| place.starts_with(grant) || grant.starts_with(place);
    either(grant) || grant.canonicalize().is_ok_and(|grant| either(&grant))
}

/// Lists a place as it is written and as it is without links, and the links on the way.
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

/// The path without links and `..`; or the first link on the way, and the path with the link's
/// target in its place.
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
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    #[test]
    fn a_place_is_listed_as_written_and_without_links_with_each_link_on_the_way() {
        let (_dir, top) = folder();
        std::fs::create_dir(top.join("real")).unwrap();
        symlink("real", top.join("middle")).unwrap();
        symlink(top.join("middle"), top.join("first")).unwrap();
        let places = Places::resolve([top.join("first/config.yml")], [top.join("real/../x.sh")]);
        assert_eq!(places.hidden, [top.join("first/config.yml"), top.join("real/config.yml")]);
        assert_eq!(places.read_only, [top.join("x.sh")]);
        assert_eq!(places.links, [top.join("first"), top.join("middle")]);
    }

    #[test]
    fn a_loop_of_links_ends_and_the_place_stays_listed() {
        let (_dir, top) = folder();
        symlink("b", top.join("a")).unwrap();
        symlink("a", top.join("b")).unwrap();
        let places = Places::resolve([top.join("a")], [""; 0]);
        assert_eq!((places.hidden, places.links.len()), (vec![top.join("a")], 2));
    }

    #[test]
    fn only_new_places_within_the_grants_have_a_program_started_again() {
        let before = Places::resolve([""; 0], ["/srv/w/a.sh"]);
        let now = Places::resolve(["/srv/state"], ["/srv/w/a.sh", "/srv/elsewhere/b.sh"]);
        let program = Confinement::new(Profile::Workspace).workspace("/srv/w");
        assert!(!now.adds_for(&before, &program));
        assert!(now.adds_for(&before, &program.clone().read("/srv")));
        assert!(now.adds_for(&before, &program.write("/srv/elsewhere")));
        assert!(!now.adds_for(&before, &Confinement::new(Profile::Trusted).workspace("/srv")));
        assert!(!now.adds_for(&before, &Confinement::new(Profile::Pure).workspace("/srv")));
    }

    #[test]
    fn a_link_that_a_program_could_replace_is_an_objection() {
        let (_dir, top) = folder();
        symlink("/srv/tools.d", top.join("tools.d")).unwrap();
        let places = Places::resolve([""; 0], [top.join("tools.d")]);
        let program = Confinement::new(Profile::Workspace).workspace(&top);
        let why = places.objection(&program).unwrap();
        assert!(why.contains("could replace the symbolic link"), "{why}");
        assert_eq!(places.objection(&Confinement::new(Profile::Pure).workspace(&top)), None);
    }
}
