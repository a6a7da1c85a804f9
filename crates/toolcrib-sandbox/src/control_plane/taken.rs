//! Withholding a control plane from one program.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    ControlPlane, Places, ReachablePaths, RunningProgram, exists, is_plain, real, uncovered,
};
use crate::{Confinement, Profile};

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

/// The [own folder](Confinement::own_folder) of a program, as given and with links resolved.
#[derive(Debug)]
pub(super) struct OwnFolder(Vec<PathBuf>);

impl OwnFolder {
    pub(super) fn of(confinement: &Confinement) -> Self {
        let own = confinement.own_folder.iter().filter(|_| confinement.profile != Profile::Trusted);
        Self(own.flat_map(|own| [own.clone(), real(own)]).collect())
    }

    /// Whether it lies in this place.
    pub(super) fn is_in(&self, place: &Path) -> bool {
        self.0.iter().any(|own| own.starts_with(place))
    }

    /// Whether the program may change this place although the folder around it is withheld: it is inside
    /// the program's own folder. That folder itself is not a place that others use.
    pub(super) fn is_around(&self, place: &Path) -> bool {
        self.0.iter().any(|own| place != own && place.starts_with(own))
    }
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

    /// Records which places the program could create or change when it starts, and that it runs until
    /// the returned value is dropped. Fails if one of them is guarded, or if a link has come since the
    /// places were [taken out](Self::take_out).
    pub(crate) fn expose(&self) -> Result<Option<RunningProgram>, String> {
        let Some(WithheldFromGrants { plane, places }) = &self.taken else { return Ok(None) };
        if places.has_new_links() {
            return Err(
                "a symbolic link was put on the way to a protected file while the program \
                        started: call again"
                    .to_owned(),
            );
        }
        RunningProgram::start(plane, self)
    }

    /// [Exposes](Self::expose) the places. A guarded place that is missing may be one that an editor saves:
    /// it is waited for, on this thread.
    pub(crate) fn expose_when_guarded_places_are_there(
        &mut self,
    ) -> Result<Option<RunningProgram>, String> {
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

    /// Whether a program that runs could create or change the place, as far as this server knows.
    pub(crate) fn is_open_to_running(&self, place: &Path) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.plane.exposures().is_open(place))
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
