//! Places that programs could have created or changed, and the programs that run.
//!
//! What is withheld from a program is fixed when it starts. A place that comes later is not withheld
//! from it: one that is declared, or one that takes the name of a withheld file. Ending the program
//! would end somebody's call, and waiting for it would hold up the declaration. So such a place is
//! *exposed* instead: it is not used until no program that can change it runs and the operator has
//! reviewed it, in whichever order. A review records the content of a place that a program can still
//! change, so one review is enough.
//!
//! Exposed places are [recorded](super::ExposureRecord), so that they stay exposed when the process has ended.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::ReadRecord;
use super::{
    ControlPlane, ExposureRecord, OwnFolder, Places, ReachablePaths, exists, identity, is_plain,
};
use crate::Confinement;

/// The longest content that is recorded. A longer file is reviewed once more after the programs ended.
const CONTENT_MAX: u64 = 4 << 20;

/// A file that must not be used, because a program could have created or changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExposedFile {
    /// The file.
    pub path: PathBuf,
    /// Whether the operator has reviewed it, but programs that could change it still run.
    pub is_reviewed: bool,
}

impl ExposedFile {
    /// What to do, as an imperative clause.
    pub const fn remedy(&self) -> &'static str {
        if self.is_reviewed {
            "try again when these programs have ended"
        } else {
            "look at the file, then run `toolcrib reload`"
        }
    }
}

/// The reason, as a clause that begins with the path.
impl fmt::Display for ExposedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.path.display();
        if self.is_reviewed {
            write!(f, "`{shown}`, which programs of this server that are running can change")
        } else {
            write!(f, "`{shown}`, which programs of this server could create or change")
        }
    }
}

/// What the operator has said about an exposed place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Review {
    Pending,
    /// It may be used with this content once no program can change it.
    Done(Content),
}

/// The content of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Missing,
    File(Vec<u8>),
}

/// Running programs, and the places that programs could have created or changed.
#[derive(Debug, Default)]
pub(super) struct Exposures {
    exposed: BTreeMap<PathBuf, Review>,
    running: BTreeMap<u64, WriteAccess>,
    last_id: u64,
    record: Option<ReadRecord>,
}

/// What a program can write while it runs.
#[derive(Debug)]
struct WriteAccess {
    written: ReachablePaths,
    own: OwnFolder,
    /// What is withheld from it, each with the file that was there when it started.
    withheld: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl WriteAccess {
    fn of(confinement: &Confinement) -> Self {
        let written = ReachablePaths::written(confinement);
        let withheld = confinement.hidden.iter().chain(&confinement.read_only);
        let withheld = withheld.filter(|place| written.meets(place));
        let withheld = withheld.map(|place| (place.clone(), identity(place))).collect();
        Self { written, own: OwnFolder::of(confinement), withheld }
    }

    /// The places that the program could create or change.
    fn open<'p>(&self, places: &'p Places) -> impl Iterator<Item = &'p PathBuf> {
        let all = places.hidden.iter().chain(&places.read_only);
        let in_own = all.filter(|place| self.own.is_around(place));
        places.withheld().chain(in_own).filter(|place| self.reaches(place))
    }

    /// Whether the program could create or change the place. In a folder that is withheld as a whole it
    /// can do neither, unless it is in the program's own folder there. What is there under another path is
    /// judged by that path.
    fn reaches(&self, place: &Path) -> bool {
        let is_in_own = self.own.is_around(place);
        let is_withheld = |(known, then): &(PathBuf, _)| {
            place.starts_with(known)
                && !(is_in_own && self.own.is_in(known))
                && identity(known) == *then
        };
        self.written.meets(place)
            && !self.withheld.iter().any(is_withheld)
            && (!exists(place) || is_plain(place))
    }
}

impl Exposures {
    pub(super) fn has_running(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exposed.is_empty()
    }

    /// Keeps the exposed places in a record, too.
    pub(super) fn keep_in(&mut self, record: Arc<dyn ExposureRecord>) {
        self.record = Some(ReadRecord::new(record));
    }

    /// Adds the recorded places, if one of these files has changed since the record was read.
    pub(super) fn read_record(&mut self, files: &[PathBuf]) {
        let recorded = self.record.as_mut().map(|record| record.places_for(files));
        self.expose(recorded.unwrap_or_default());
    }

    fn expose(&mut self, places: Vec<PathBuf>) {
        for place in places {
            self.exposed.entry(place).or_insert(Review::Pending);
        }
    }

    /// Adds the places that running programs can change.
    pub(super) fn add(&mut self, places: &Places) {
        let open = self.running.values().flat_map(|program| program.open(places));
        let open: Vec<_> = open.cloned().collect();
        // The record reports its failures. What it does not have is exposed as long as this process runs.
        let _ = self.record_new(open.clone());
        self.expose(open);
    }

    /// Records places that are not exposed yet, and returns them.
    fn record_new(&mut self, places: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
        self.read_record(&[]);
        let is_new = |place: &PathBuf| !self.exposed.contains_key(place);
        let new: Vec<_> = places.into_iter().filter(is_new).collect();
        if let Some(own) = self.record.as_ref().filter(|_| !new.is_empty()) {
            own.record.add(&new)?;
        }
        Ok(new)
    }

    /// Removes places that are not exposed any more from the record.
    fn forget(&self, places: &[PathBuf]) {
        if let Some(own) = self.record.as_ref().filter(|_| !places.is_empty()) {
            own.record.remove(places);
        }
    }

    /// Whether one of these spellings of a file lies in an exposed place; if so, whether the operator has
    /// reviewed it.
    pub(super) fn find(&mut self, spellings: &[PathBuf]) -> Option<bool> {
        let Self { exposed, running, .. } = self;
        let mut settled = Vec::new();
        let is_in = |place: &Path| spellings.iter().any(|spelling| spelling.starts_with(place));
        let places: Vec<_> = exposed.keys().filter(|place| is_in(place)).cloned().collect();
        let mut is_reviewed = None;
        for place in places {
            match exposed.get(&place) {
                None | Some(Review::Pending) => {
                    is_reviewed = Some(false);
                    break;
                }
                Some(Review::Done(_)) if is_open(running, &place) => is_reviewed = Some(true),
                Some(Review::Done(then)) if content(&place).as_ref() == Some(then) => {
                    exposed.remove(&place);
                    settled.push(place);
                }
                Some(Review::Done(_)) => {
                    exposed.insert(place, Review::Pending);
                    is_reviewed = Some(false);
                    break;
                }
            }
        }
        self.forget(&settled);
        is_reviewed
    }

    /// Whether a running program could create or change the place.
    pub(super) fn is_open(&self, place: &Path) -> bool {
        is_open(&self.running, place)
    }

    /// Records that the operator has reviewed all exposed places. Returns those that exist and that nobody had
    /// reviewed as they are.
    pub(super) fn review(&mut self) -> Vec<PathBuf> {
        let recorded = self.record.as_mut().map(ReadRecord::places);
        self.expose(recorded.unwrap_or_default());
        let Self { exposed, running, .. } = self;
        let is_new = |place: &Path, review: &Review| {
            let is_known = match review {
                Review::Pending => false,
                Review::Done(then) => content(place).as_ref() == Some(then),
            };
            !is_known && exists(place)
        };
        let new = exposed.iter().filter(|(place, review)| is_new(place, review));
        let new = new.map(|(place, _)| place.clone()).collect();
        let mut settled = Vec::new();
        exposed.retain(|place, review| {
            let is_open = is_open(running, place);
            if is_open {
                *review = content(place).map_or(Review::Pending, Review::Done);
            } else {
                settled.push(place.clone());
            }
            is_open
        });
        self.forget(&settled);
        new
    }
}

fn is_open(running: &BTreeMap<u64, WriteAccess>, place: &Path) -> bool {
    running.values().any(|program| program.reaches(place))
}

/// The content of a place; `None` if it cannot be recorded, because it is too long or no regular file.
fn content(place: &Path) -> Option<Content> {
    let Ok(found) = place.symlink_metadata() else { return Some(Content::Missing) };
    // Opening a FIFO would block.
    if !found.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(place).ok()?.take(CONTENT_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= CONTENT_MAX).then_some(Content::File(bytes))
}

/// A program that can write files and runs, or is about to start, as long as this value exists.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    plane: ControlPlane,
    id: u64,
}

impl RunningProgram {
    /// Records that the program runs, and exposes what it could create or change. `None` if it can
    /// write nothing. Fails if it could create or change a guarded place.
    pub(super) fn start(
        plane: &ControlPlane,
        confinement: &Confinement,
    ) -> Result<Option<Self>, String> {
        let program = WriteAccess::of(confinement);
        if program.written.0.is_empty() {
            return Ok(None);
        }
        // While the lock is held no places can be exposed: those that are set from now on are exposed
        // with this program.
        let mut exposures = plane.exposures();
        let places = plane.places();
        let open: Vec<_> = program.open(&places).collect();
        let is_made = |place: &&PathBuf| {
            program.written.meets(place) && (!exists(place) || open.contains(place))
        };
        if let Some(place) = places.guarded.iter().find(is_made) {
            let remedy = if places.linked.contains(place) {
                "create it, or remove the symbolic link to it in the folder of the manifests"
            } else {
                "create it first"
            };
            return Err(format!(
                "`{}` does not exist, and the program could create it, which would decide what this \
                 server runs: {remedy}",
                place.display()
            ));
        }
        let open = open.into_iter().cloned().collect();
        let new = exposures.record_new(open).map_err(|error| {
            format!("files that the program could create cannot be recorded in the state folder: {error}")
        })?;
        exposures.expose(new);
        exposures.last_id += 1;
        let id = exposures.last_id;
        exposures.running.insert(id, program);
        Ok(Some(Self { plane: plane.clone(), id }))
    }
}

impl Drop for RunningProgram {
    /// Looks for the last time for files and links that came while the program ran.
    fn drop(&mut self) {
        self.plane.refresh();
        let places = self.plane.places();
        let mut exposures = self.plane.exposures();
        exposures.add(&places);
        exposures.running.remove(&self.id);
    }
}
