//! Withholding a control plane from one program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ControlPlane, Places, ReachablePaths, exists, is_plain, uncovered};
use crate::Confinement;

/// How long a guarded place that is missing is waited for, and the time between two looks. A file that is
/// written anew after it was removed is away for a few milliseconds.
const WAIT: Duration = Duration::from_millis(500);
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The places as they were when they were taken out of what a program is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithheldFromGrants {
    plane: ControlPlane,
    places: Arc<Places>,
}

impl Confinement {
    /// Takes the places out of what the program is granted: those that exist, since nothing can be
    /// mounted over others, by their paths without links, and of the read-only ones those it could
    /// change.
    pub(crate) fn take_out(&mut self, plane: &ControlPlane) {
        plane.refresh();
        let places = plane.places();
        let written = ReachablePaths::written(self);
        let hidden = places.hidden.iter().filter(|place| is_plain(place));
        let changed = uncovered(&places.read_only).into_iter();
        let changed = changed.filter(|place| written.meets(place) && is_plain(place));
        self.hidden.extend(hidden.cloned());
        self.read_only.extend(changed.cloned());
        self.objection = places.objection(self);
        self.taken = Some(WithheldFromGrants { plane: plane.clone(), places });
    }

    /// Records which places the program could create or change when it starts. Fails if one of them
    /// is guarded, or if a link has come since the places were [taken out](Self::take_out).
    pub(crate) fn expose(&self) -> Result<(), String> {
        let Some(WithheldFromGrants { plane, places }) = &self.taken else { return Ok(()) };
        if places.has_new_links() {
            return Err(
                "a symbolic link was put on the way to a protected file while the program \
                        started: call again"
                    .to_owned(),
            );
        }
        let written = ReachablePaths::written(self);
        // In a folder that is withheld as a whole, nothing can be created. What is there under another
        // path is withheld by that.
        let is_open = |place: &&PathBuf| {
            let mut withheld = self.hidden.iter().chain(&self.read_only);
            written.meets(place)
                && !withheld.any(|known| place.starts_with(known))
                && (!exists(place) || is_plain(place))
        };
        let all = uncovered(&places.hidden).into_iter().chain(uncovered(&places.read_only));
        let open: Vec<_> = all.filter(is_open).collect();
        let is_made =
            |place: &&PathBuf| written.meets(place) && (!exists(place) || open.contains(place));
        if let Some(place) = places.guarded.iter().find(is_made) {
            return Err(format!(
                "`{}` does not exist, and the program could create it, which would decide what this \
                 server runs: create it first",
                place.display()
            ));
        }
        if !open.is_empty() {
            plane.exposures().extend(open.into_iter().cloned());
        }
        Ok(())
    }

    /// [Exposes](Self::expose) the places. A guarded place that is missing may be one that an editor saves:
    /// it is waited for, on this thread.
    pub(crate) fn expose_when_guarded_places_are_there(&mut self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            match self.expose() {
                Err(_) if began.elapsed() < WAIT => {}
                done => return self.objection.clone().map_or(done, Err),
            }
            std::thread::sleep(BETWEEN_LOOKS);
            self.take_out_again();
        }
    }

    /// Takes the places out again, as they are now.
    pub(crate) fn take_out_again(&mut self) {
        let Some(WithheldFromGrants { plane, places }) = self.taken.take() else { return };
        let is_own = |listed: &[PathBuf], place: &PathBuf| listed.binary_search(place).is_ok();
        self.hidden.retain(|place| !is_own(&places.hidden, place));
        self.read_only.retain(|place| !is_own(&places.read_only, place));
        self.take_out(&plane);
    }

    /// Takes places of the control plane that have gone since they were [taken out](Self::take_out) from
    /// what is withheld. Before it starts, the program has to be [asked](Self::expose) about them.
    pub(crate) fn leave_out_missing(&mut self) {
        let Some(WithheldFromGrants { places, .. }) = &self.taken else { return };
        let is_gone = |listed: &[PathBuf], place: &PathBuf| {
            listed.binary_search(place).is_ok() && !exists(place)
        };
        self.hidden.retain(|place| !is_gone(&places.hidden, place));
        self.read_only.retain(|place| !is_gone(&places.read_only, place));
    }
}
