//! Protected places inside a root: credentials are never accessible, and files that control other
//! programs cannot be changed.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::WorkspaceError;
use super::names::same;
use crate::process::scratch_parents;
use crate::{ControlPlane, Places};

/// The operation on a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Look,
    Change,
}

/// The refused places, as paths from the root.
#[derive(Debug)]
pub(super) struct PathGuard {
    /// The root, without links.
    root: PathBuf,
    /// Places that are refused as long as the workspace is open.
    fixed: RefusedPlaces,
    /// Names that cannot be changed, in any folder.
    protected_names: Vec<PathBuf>,
    /// The control plane, which may change with each reload.
    plane: ControlPlane,
    /// The part of the control plane inside the root, with the places it was computed from.
    known: RwLock<(Arc<Places>, Arc<RefusedPlaces>)>,
}

/// Refused places with everything below them, as paths from the root. An empty path is the root.
#[derive(Debug, Default)]
struct RefusedPlaces {
    /// Refused for every operation.
    sensitive: Vec<PathBuf>,
    /// Refused for changes.
    protected: Vec<PathBuf>,
}

impl PathGuard {
    /// Selects the places below `root` (a path without links), with their links resolved. The error
    /// means that the root is itself inside a sensitive place.
    pub(super) fn new(
        root: &Path,
        sensitive: &[PathBuf],
        protected: &[PathBuf],
        protected_names: &[PathBuf],
        plane: &ControlPlane,
    ) -> Result<Self, PathBuf> {
        let real = |place: &PathBuf| [place.clone(), settled(place)];
        if let Some(place) = sensitive.iter().flat_map(real).find(|place| starts_with(root, place))
        {
            return Err(place);
        }
        let below = |places: &[PathBuf]| {
            let places = places.iter().flat_map(real);
            let mut places: Vec<_> = places.filter_map(|place| below(&place, root)).collect();
            places.sort();
            places.dedup();
            places
        };
        let mut fixed = RefusedPlaces { sensitive: below(sensitive), protected: below(protected) };
        // The scratch directories of running programs, whatever the temporary folder is.
        let scratch = scratch_parents::paths().iter();
        fixed.sensitive.extend(scratch.filter_map(|place| self::below(place, root)));
        let places = plane.places();
        let known = Arc::new(RefusedPlaces::of_plane(&places, root));
        Ok(Self {
            root: root.to_owned(),
            fixed,
            protected_names: protected_names.to_vec(),
            plane: plane.clone(),
            known: RwLock::new((places, known)),
        })
    }

    /// The places that the control plane currently refuses.
    fn planned(&self) -> Arc<RefusedPlaces> {
        self.plane.refresh_now_and_then();
        let places = self.plane.places();
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&known.0, &places) {
                return Arc::clone(&known.1);
            }
        }
        let refused = Arc::new(RefusedPlaces::of_plane(&places, &self.root));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) =
            (places, Arc::clone(&refused));
        refused
    }

    /// Whether reading can be refused at all.
    pub(super) fn concerns(&self, access: Operation) -> bool {
        access == Operation::Change
            || !self.fixed.sensitive.is_empty()
            || !self.planned().sensitive.is_empty()
    }

    /// Fails if the operation on this place, a path without links, is refused.
    pub(super) fn check(&self, place: &Path, access: Operation) -> Result<(), WorkspaceError> {
        let planned = self.planned();
        for refused in [&self.fixed, &*planned] {
            if refused.sensitive.iter().any(|known| starts_with(place, known)) {
                return Err(WorkspaceError::Sensitive);
            }
        }
        if access == Operation::Change {
            let protected = self.fixed.protected.iter().chain(&planned.protected);
            if protected.into_iter().any(|known| starts_with(place, known))
                || self.protected_names.iter().any(|names| has_within(place, names))
            {
                return Err(WorkspaceError::Protected);
            }
        }
        Ok(())
    }

    /// Fails if a refused place is inside a folder to be deleted, or is reached through a link
    /// inside it.
    pub(super) fn check_contents(&self, folder: &Path) -> Result<(), WorkspaceError> {
        let planned = self.planned();
        for refused in [&self.fixed, &*planned] {
            if refused.sensitive.iter().any(|known| starts_with(known, folder)) {
                return Err(WorkspaceError::Sensitive);
            }
        }
        let mut protected = self.fixed.protected.iter().chain(&planned.protected);
        if protected.any(|known| starts_with(known, folder)) {
            return Err(WorkspaceError::Protected);
        }
        Ok(())
    }
}

impl RefusedPlaces {
    /// The part of a control plane inside the root: the whole root if a place contains it.
    fn of_plane(places: &Places, root: &Path) -> Self {
        let within = |list: &[PathBuf]| -> Vec<PathBuf> {
            let inside = |place: &PathBuf| {
                if starts_with(root, place) { Some(PathBuf::new()) } else { below(place, root) }
            };
            list.iter().filter_map(inside).collect()
        };
        let mut protected = within(&places.read_only);
        protected.extend(within(&places.links));
        Self { sensitive: within(&places.hidden), protected }
    }
}

/// The same place without links, as far as it exists.
fn settled(place: &Path) -> PathBuf {
    let mut missing = Vec::new();
    let mut known = place;
    loop {
        if let Ok(real) = known.canonicalize() {
            return real.join(missing.iter().rev().collect::<PathBuf>());
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                known = parent;
            }
            _ => return place.to_owned(),
        }
    }
}

fn below(place: &Path, root: &Path) -> Option<PathBuf> {
    let place = place.strip_prefix(root).ok()?;
    (!place.as_os_str().is_empty()).then(|| place.to_owned())
}

/// Whether a place is another one or below it, as the file system compares names.
pub(crate) fn starts_with(place: &Path, beginning: &Path) -> bool {
    let mut place = place.components();
    beginning.components().all(|known| place.next().is_some_and(|name| same_part(name, known)))
}

fn has_within(place: &Path, names: &Path) -> bool {
    let place: Vec<_> = place.components().collect();
    let names: Vec<_> = names.components().collect();
    let all_same = |part: &[Component<'_>]| part.iter().zip(&names).all(|(a, b)| same_part(*a, *b));
    !names.is_empty() && place.windows(names.len()).any(all_same)
}

fn same_part(a: Component<'_>, b: Component<'_>) -> bool {
    same(a.as_os_str(), b.as_os_str())
}
