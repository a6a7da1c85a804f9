//! Places inside a root that are refused all the same: credentials always, and what decides how
//! other programs behave where something would be changed.

use std::path::{Component, Path, PathBuf};

use super::WorkspaceError;
use super::names::same;

/// What an operation is about to do with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Look,
    Change,
}

/// What is refused, as paths from the root.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// With everything below them, for every operation.
    sensitive: Vec<PathBuf>,
    /// With everything below them, for changes.
    protected: Vec<PathBuf>,
    /// The same, in whatever folder they are.
    protected_names: Vec<PathBuf>,
}

impl Guard {
    /// Keeps of some places those that are below `root` (a path without links), wherever links
    /// have them. `Err`: the root is itself inside a sensitive place.
    pub(super) fn new(
        root: &Path,
        sensitive: &[PathBuf],
        protected: &[PathBuf],
        protected_names: &[PathBuf],
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
        Ok(Self {
            sensitive: below(sensitive),
            protected: below(protected),
            protected_names: protected_names.to_vec(),
        })
    }

    /// Whether looking can be refused at all.
    pub(super) fn concerns(&self, access: Access) -> bool {
        access == Access::Change || !self.sensitive.is_empty()
    }

    /// Fails if the place, without links in it, is one that is refused.
    pub(super) fn check(&self, place: &Path, access: Access) -> Result<(), WorkspaceError> {
        if self.sensitive.iter().any(|known| starts_with(place, known)) {
            return Err(WorkspaceError::Sensitive);
        }
        if access == Access::Change
            && (self.protected.iter().any(|known| starts_with(place, known))
                || self.protected_names.iter().any(|names| has_within(place, names)))
        {
            return Err(WorkspaceError::Protected);
        }
        Ok(())
    }

    /// Fails if one of the places is in a folder that is to be deleted.
    pub(super) fn check_contents(&self, folder: &Path) -> Result<(), WorkspaceError> {
        if self.sensitive.iter().any(|known| starts_with(known, folder)) {
            return Err(WorkspaceError::Sensitive);
        }
        if self.protected.iter().any(|known| starts_with(known, folder)) {
            return Err(WorkspaceError::Protected);
        }
        Ok(())
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

fn starts_with(place: &Path, beginning: &Path) -> bool {
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
