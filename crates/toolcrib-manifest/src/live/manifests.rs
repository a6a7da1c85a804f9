//! The manifests of directories while they are in use: scanned for changes, which are applied as a
//! set.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::decide::{FileVerdict, Scan, UnitChange};
use super::report::{FileEvent, FileStatus, ScanReport};
use crate::directory::{DirectoryLoad, FileLoad};
use crate::live::auxiliary_files::AuxiliaryFiles;
use crate::live::observation::{Observation, observe};
use crate::live::roots::ManifestRoots;
use crate::live::state::{FileKey, FileProblem, FileRecord, FileTable};
use crate::manifest::load_str;

/// How long a missing file may take to come back before its tools are removed: editors and
/// deployments move files aside for a moment.
pub(super) const SETTLE: Duration = Duration::from_millis(100);

/// A file that was written more recently than this, and for which no close event came, is read
/// later: half a manifest is often a valid one.
const FRESH: Duration = Duration::from_secs(1);

/// How often files that move are observed again to get a consistent picture.
const ATTEMPTS: usize = 8;

/// Receives changes of manifests, for example for a registry and a log.
pub trait Subscriber: Send + Sync {
    /// Applies a set of changes atomically, or fails with the reason. Refused changes are offered
    /// again with the next scan; the files are stale until then.
    fn apply(&self, changes: Vec<UnitChange>) -> Result<(), String>;

    /// Receives the results of a scan, after its changes were applied.
    fn report(&self, report: &ScanReport);

    /// Why the file at this path must not be loaded, however it was changed, as a clause. It keeps the
    /// tools of its last valid version and is read again with the next [reload](LiveManifests::reload).
    /// The default `None` means no objection.
    fn objection(&self, _path: &Path) -> Option<String> {
        None
    }
}

/// What to scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScanScope {
    /// These places, for which events came.
    Places(BTreeSet<FileKey>),
    /// Everything. Files are read whatever their stamps are.
    All,
    /// Everything, and all files are reported whether or not they have changed: what they need may
    /// have changed.
    Anew,
    /// Every file whose stamp has changed, unless it is still being written.
    Rescan,
}

/// The manifests of directories while they are in use.
///
/// Files are scanned on request ([`reload`](Self::reload)) and, while a
/// [`ManifestWatcher`](super::ManifestWatcher) runs, whenever they change.
pub struct LiveManifests {
    state: Mutex<LiveState>,
    auxiliary: Mutex<AuxiliaryFiles>,
    subscriber: Box<dyn Subscriber>,
}

struct LiveState {
    roots: ManifestRoots,
    files: FileTable,
    /// Places whose missing file may come back, with the end of the waiting time.
    waiting: BTreeMap<FileKey, Instant>,
    /// Places that were being written, with the time of the next look.
    later: BTreeMap<FileKey, Instant>,
    /// Places whose changes the subscriber refused.
    refused: BTreeSet<FileKey>,
}

impl LiveManifests {
    /// Continues from a load whose tools the subscriber already has. The first scan finds what has
    /// changed since.
    pub fn new(load: &DirectoryLoad, subscriber: impl Subscriber + 'static) -> Self {
        let mut files = FileTable::default();
        for file in &load.files {
            if let Some(name) = file.path.file_name() {
                let key = FileKey { rank: file.rank, name: name.to_owned() };
                files.insert(key, known(file));
            }
        }
        let state = LiveState {
            roots: ManifestRoots::new(load.paths()),
            files,
            waiting: BTreeMap::new(),
            later: BTreeMap::new(),
            refused: BTreeSet::new(),
        };
        Self {
            state: Mutex::new(state),
            auxiliary: Mutex::new(AuxiliaryFiles::new(&[])),
            subscriber: Box::new(subscriber),
        }
    }

    /// Adds files other than manifests on which the tools depend, such as a lock. While a
    /// [`ManifestWatcher`](super::ManifestWatcher) runs, all manifests are reloaded when one of
    /// these files is created, replaced or deleted.
    #[must_use]
    pub fn with_auxiliary_files(mut self, files: &[PathBuf]) -> Self {
        self.auxiliary = Mutex::new(AuxiliaryFiles::new(files));
        self
    }

    /// Reads and reports every file now: programs, secrets and other things that a file needs may
    /// have changed. Missing files are removed only after a short wait. A running
    /// [`ManifestWatcher`](super::ManifestWatcher) does that; without one, call this again after
    /// 100 ms.
    pub fn reload(&self) -> ScanReport {
        self.scan(&ScanScope::Anew)
    }

    /// The status of every file, in the order that decides conflicts of names.
    pub fn files(&self) -> Vec<FileStatus> {
        let state = self.state();
        state
            .files
            .iter()
            .map(|(key, known)| FileStatus::of(state.roots.path(key), known))
            .collect()
    }

    /// Directories that cannot be read, with the reasons.
    pub fn unreadable(&self) -> Vec<(PathBuf, String)> {
        self.state().roots.unreadable()
    }

    pub(super) fn scan(&self, scope: &ScanScope) -> ScanReport {
        // The lock is held while the changes are applied, so that they are applied in the order of
        // the scans.
        let mut state = self.state();
        let report = state.scan(scope, Instant::now(), &*self.subscriber);
        self.subscriber.report(&report);
        report
    }

    /// The directories to watch, by their real paths.
    pub(super) fn dirs_to_watch(&self) -> BTreeSet<PathBuf> {
        let mut dirs_to_watch = self.auxiliary().dirs_to_watch();
        let LiveState { roots, files, .. } = &mut *self.state();
        dirs_to_watch.extend(roots.dirs_to_watch(files));
        dirs_to_watch
    }

    pub(super) fn auxiliary(&self) -> MutexGuard<'_, AuxiliaryFiles> {
        self.auxiliary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `read` with the directories and files, to find which of them an event affects.
    pub(super) fn with_places<T>(&self, read: impl FnOnce(&ManifestRoots, &FileTable) -> T) -> T {
        let state = self.state();
        read(&state.roots, &state.files)
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for LiveManifests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveManifests").field("roots", &self.state().roots).finish_non_exhaustive()
    }
}

/// The record of a file that was loaded.
fn known(file: &FileLoad) -> FileRecord {
    let good = !file.loaded.has_errors();
    FileRecord {
        version: file.version.clone(),
        declares: good,
        tools: file.loaded.declarations.len(),
        problem: (!good).then(|| FileProblem::Load(Box::new(file.clone()))),
        ..FileRecord::default()
    }
}

/// The target of a dangling link, if the target's folder exists.
fn link_target(path: &Path) -> Option<PathBuf> {
    let target = path.parent()?.join(fs::read_link(path).ok()?);
    let folder = fs::canonicalize(target.parent()?).ok()?;
    Some(folder.join(target.file_name()?))
}

/// The new state of a place, once the changes are applied.
struct FileOutcome {
    key: FileKey,
    /// The place from which its file was moved.
    from: Option<FileKey>,
    /// `None` if nothing is there any more.
    known: Option<FileRecord>,
    event: Option<FileEvent>,
}

impl LiveState {
    fn scan(&mut self, scope: &ScanScope, now: Instant, subscriber: &dyn Subscriber) -> ScanReport {
        let report_all = *scope == ScanScope::Anew;
        let mut observed = self.observe(scope, now);
        self.observe_related(&mut observed);
        self.observe_consistently(&mut observed);
        self.extend_waits(scope, now);
        let due = self.due(now);
        let vanished = self.roots.vanished(&observed, &self.files);
        let scan = Scan { known: &self.files, observed: &observed, due: &due, vanished: &vanished };
        let mut verdicts = scan.decide();

        if report_all {
            for (key, file_verdict) in &mut verdicts {
                if *file_verdict == FileVerdict::Unchanged
                    && matches!(observed.get(key), Some(Observation::File(_)))
                {
                    *file_verdict = FileVerdict::Take { from: None };
                }
            }
        }
        for key in observed.keys() {
            if verdicts.get(key) == Some(&FileVerdict::Wait) {
                // A missing file may be the one that is still being written elsewhere.
                let unseen = if self.later.is_empty() { Duration::ZERO } else { FRESH };
                let until = now + SETTLE + unseen;
                let waiting = self.waiting.entry(key.clone()).or_insert(until);
                if *waiting <= now {
                    *waiting = until;
                }
            } else {
                self.waiting.remove(key);
            }
        }
        let mut changes = Vec::new();
        let mut outcomes = Vec::new();
        for (key, file_verdict) in verdicts {
            if let Some(observed) = observed.remove(&key) {
                outcomes.extend(self.outcome(
                    key,
                    file_verdict,
                    observed,
                    (report_all, subscriber),
                    &mut changes,
                ));
            }
        }
        let applied = if changes.is_empty() { Ok(()) } else { subscriber.apply(changes) };
        let mut report = ScanReport::default();
        match applied {
            Ok(()) => self.commit(outcomes, &mut report),
            Err(reason) => self.refuse(outcomes, &reason, &mut report),
        }
        report.next = self.waiting.values().chain(self.later.values()).min().copied();
        report
    }

    fn observe(&mut self, scope: &ScanScope, now: Instant) -> BTreeMap<FileKey, Observation> {
        let mut observed = BTreeMap::new();
        let keys: BTreeSet<FileKey> = match scope {
            ScanScope::Places(keys) => keys.clone(),
            ScanScope::All | ScanScope::Anew | ScanScope::Rescan => self.roots.list(&self.files),
        };
        let is_rescan = *scope == ScanScope::Rescan;
        for key in keys {
            let found =
                if is_rescan { self.observe_if_changed(&key) } else { self.observe_file(&key) };
            if is_rescan
                && let Observation::File(file) = &found
                && file.version.stamp.is_fresh(SystemTime::now(), FRESH)
                // A renamed file is not being written.
                && self.files.previous_places(file, &key).next().is_none()
            {
                self.later.insert(key, now + FRESH);
                continue;
            }
            observed.insert(key, found);
        }
        let late = self.later.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone());
        let again: Vec<FileKey> =
            late.chain(self.waiting.keys().cloned()).chain(self.refused.iter().cloned()).collect();
        for key in again {
            self.later.remove(&key);
            if !observed.contains_key(&key) {
                observed.insert(key.clone(), self.observe_file(&key));
            }
        }
        observed
    }

    /// Also observes the places from which files have moved: a rename has two ends.
    fn observe_related(&self, observed: &mut BTreeMap<FileKey, Observation>) {
        let mut open: Vec<FileKey> = observed.keys().cloned().collect();
        while let Some(key) = open.pop() {
            let Some(id) = observed.get(&key).and_then(Observation::id) else { continue };
            for other in self.files.with_id(id) {
                if !observed.contains_key(other) {
                    observed.insert(other.clone(), self.observe_if_changed(other));
                    open.push(other.clone());
                }
            }
        }
    }

    /// Observes places again while files moved during the observation: if two places had the same
    /// file, or the target of a link changed, the observation is inconsistent. Places that stay
    /// inconsistent are busy and have to wait.
    fn observe_consistently(&self, observed: &mut BTreeMap<FileKey, Observation>) {
        for attempt in 0..ATTEMPTS {
            let inconsistent = self.inconsistent(observed);
            if inconsistent.is_empty() {
                return;
            }
            let is_last = attempt + 1 == ATTEMPTS;
            for key in inconsistent {
                let found = if is_last { Observation::Busy } else { self.observe_file(&key) };
                observed.insert(key, found);
            }
            self.observe_related(observed);
        }
    }

    fn inconsistent(&self, observed: &BTreeMap<FileKey, Observation>) -> BTreeSet<FileKey> {
        let mut inconsistent = BTreeSet::new();
        let mut places = HashMap::new();
        for (key, found) in observed {
            if let Some(id) = found.only_id()
                && !self.is_link(key, found)
                && let Some(other) = places.insert(id, key)
            {
                inconsistent.extend([key.clone(), other.clone()]);
            }
        }
        // Links are usually swapped together, by replacing a directory that they lead through.
        let moved = |(key, found): &(&FileKey, &Observation)| match found {
            Observation::File(file) => file.version.target.as_ref().is_some_and(|target| {
                fs::canonicalize(self.roots.path(key)).ok().as_ref() != Some(target)
            }),
            _ => false,
        };
        if observed.iter().any(|place| moved(&place)) {
            let links = observed.iter().filter(|(key, found)| self.is_link(key, found));
            inconsistent.extend(links.map(|(key, _)| key.clone()));
        }
        inconsistent
    }

    /// Whether the place is a symbolic link. Several links may lead to one file.
    fn is_link(&self, key: &FileKey, found: &Observation) -> bool {
        match found {
            Observation::File(file) => file.version.target.is_some(),
            _ => self.files.get(key).is_some_and(|known| known.target().is_some()),
        }
    }

    fn observe_file(&self, key: &FileKey) -> Observation {
        observe(&self.roots.path(key), None)
    }

    /// Reads the file only if its stamp has changed.
    fn observe_if_changed(&self, key: &FileKey) -> Observation {
        let version = self.files.get(key).and_then(|known| known.version.as_ref());
        observe(&self.roots.path(key), version.map(|version| &version.stamp))
    }

    /// A missing file for which another event came may have existed in between, so it has to be
    /// missing for the whole waiting time again.
    fn extend_waits(&mut self, scope: &ScanScope, now: Instant) {
        let ScanScope::Places(pending) = scope else { return };
        for (_, until) in self.waiting.iter_mut().filter(|(key, _)| pending.contains(key)) {
            *until = (*until).max(now + SETTLE);
        }
    }

    fn due(&self, now: Instant) -> BTreeSet<FileKey> {
        let due = self.waiting.iter().filter(|(_, at)| **at <= now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// If `report_all` is set, known problems are reported again.
    fn outcome(
        &self,
        key: FileKey,
        file_verdict: FileVerdict,
        observed: Observation,
        (report_all, subscriber): (bool, &dyn Subscriber),
        changes: &mut Vec<UnitChange>,
    ) -> Option<FileOutcome> {
        let unit = self.roots.unit(&key);
        let before = self.files.get(&key);
        match file_verdict {
            FileVerdict::Wait => None,
            FileVerdict::Unchanged => {
                let before = before?;
                let known = match observed {
                    Observation::File(file) => Some(FileRecord {
                        version: Some(file.version),
                        lost_target: None,
                        problem: before.problem.clone().filter(|problem| !problem.is_refusal()),
                        ..before.clone()
                    }),
                    Observation::Same(_) | Observation::Busy => return None,
                    // The file has moved, so nothing is left here.
                    Observation::Missing { .. } | Observation::Unread(_) => None,
                };
                Some(FileOutcome { key, from: None, known, event: None })
            }
            FileVerdict::Remove => {
                if before?.declares {
                    changes.push(UnitChange::Remove { unit: unit.clone() });
                }
                let event = Some(FileEvent::Removed { unit });
                Some(FileOutcome { key, from: None, known: None, event })
            }
            FileVerdict::Keep => {
                let problem = match observed {
                    Observation::Unread(load) => FileProblem::Load(load),
                    Observation::Missing { is_link: true } => {
                        FileProblem::Absent("it is a dangling link")
                    }
                    _ => FileProblem::Absent("its directory is gone or cannot be read"),
                };
                // The last or dangling target of the link, where the file may come back.
                let led = before.and_then(|before| before.target().cloned());
                let lost_target = led.or_else(|| link_target(&self.roots.path(&key)));
                let known = FileRecord { lost_target, ..FileRecord::default() };
                Some(self.with_problem(key, None, known, problem, report_all))
            }
            FileVerdict::Take { from } => {
                let Observation::File(file) = observed else { return None };
                let base = from.as_ref().map_or(before, |from| self.files.get(from));
                let declared = base.is_some_and(|base| base.declares);
                if let Some(from) = &from {
                    let from = self.roots.unit(from);
                    changes.push(UnitChange::Rename { from, to: unit.clone() });
                }
                let read =
                    FileRecord { version: Some(file.version.clone()), ..FileRecord::default() };
                if let Some(reason) = subscriber.objection(&self.roots.path(&key)) {
                    // Without a version, it is read again with every scan.
                    let lost_target = file.version.target;
                    let known = FileRecord { lost_target, ..FileRecord::default() };
                    let problem = FileProblem::Refused(reason);
                    return Some(self.with_problem(key, from, known, problem, report_all));
                }
                if file.is_empty() && declared {
                    let problem = FileProblem::Absent("the file is empty");
                    return Some(self.with_problem(key, from, read, problem, report_all));
                }
                let load = file.load(&self.roots.path(&key), key.rank, &load_str);
                if load.loaded.has_errors() {
                    let problem = FileProblem::Load(Box::new(load));
                    return Some(self.with_problem(key, from, read, problem, report_all));
                }
                let known = known(&load);
                let tools = known.tools;
                changes.push(UnitChange::Replace { unit: unit.clone(), loaded: load.loaded });
                let from_unit = from.as_ref().map(|from| self.roots.unit(from));
                let mended = base.is_some_and(|base| base.problem.is_some());
                let event = FileEvent::Loaded { unit, from: from_unit, tools, mended };
                Some(FileOutcome { key, from, known: Some(known), event: Some(event) })
            }
        }
    }

    /// A place with a problem, which keeps the tools of its last valid version, if there was one.
    /// The problem is reported once, not at every scan, unless `report_all` is set.
    fn with_problem(
        &self,
        key: FileKey,
        from: Option<FileKey>,
        known: FileRecord,
        problem: FileProblem,
        report_all: bool,
    ) -> FileOutcome {
        let base = self.files.get(from.as_ref().unwrap_or(&key));
        let (declares, tools) = base.map_or((false, 0), |base| (base.declares, base.tools));
        let known_reason = base.and_then(|base| base.problem.as_ref()).map(FileProblem::reason);
        let is_news = report_all || known_reason != Some(problem.reason());
        let event = is_news.then(|| {
            FileEvent::of_problem(self.roots.unit(&key), &problem, declares.then_some(tools))
        });
        let known = FileRecord { declares, tools, problem: Some(problem), ..known };
        FileOutcome { key, from, known: Some(known), event }
    }

    fn commit(&mut self, outcomes: Vec<FileOutcome>, report: &mut ScanReport) {
        // Remove all sources first, because files may have exchanged their names.
        for from in outcomes.iter().filter_map(|outcome| outcome.from.as_ref()) {
            self.files.remove(from);
        }
        for FileOutcome { key, known, event, .. } in outcomes {
            self.refused.remove(&key);
            match known {
                Some(known) => self.files.insert(key, known),
                None => drop(self.files.remove(&key)),
            }
            report.events.extend(event);
        }
    }

    /// Records that nothing was applied. The changes are tried again with the next scan.
    fn refuse(&mut self, outcomes: Vec<FileOutcome>, reason: &str, report: &mut ScanReport) {
        for FileOutcome { key, event, .. } in outcomes {
            let problem = FileProblem::Refused(reason.to_owned());
            let unit = self.roots.unit(&key);
            let is_known = self
                .files
                .get(&key)
                .and_then(|known| known.problem.as_ref())
                .map(FileProblem::reason)
                == Some(problem.reason());
            let mut known = self.files.remove(&key).unwrap_or_default();
            if event.is_some() && !is_known {
                let tools = known.declares.then_some(known.tools);
                report.events.push(FileEvent::of_problem(unit, &problem, tools));
            }
            known.problem = Some(problem);
            self.files.insert(key.clone(), known);
            self.refused.insert(key);
        }
        report.refused = Some(reason.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::directory::load_dirs;

    struct Nobody;

    impl Subscriber for Nobody {
        fn apply(&self, _: Vec<UnitChange>) -> Result<(), String> {
            Ok(())
        }

        fn report(&self, _: &ScanReport) {}
    }

    #[test]
    fn a_new_event_restarts_the_wait_for_a_missing_file() {
        let home = tempfile::tempdir().unwrap();
        let (file, aside) = (home.path().join("a.yaml"), home.path().join("aside"));
        fs::write(&file, "toolcrib: 1\ntools: []\n").unwrap();
        let live = LiveManifests::new(&load_dirs(&[home.path().to_owned()]), Nobody);
        let key = FileKey { rank: 0, name: "a.yaml".into() };
        let pending = ScanScope::Places(BTreeSet::from([key.clone()]));
        let nothing = ScanScope::Places(BTreeSet::new());
        let scan = |scope: &ScanScope, at: Instant| {
            live.state().scan(scope, at, &Nobody);
            live.state().files.get(&key).is_some()
        };

        fs::rename(&file, &aside).unwrap();
        let start = Instant::now();
        assert!(scan(&pending, start));
        // The file came back and vanished again before the scan: only events show that.
        assert!(scan(&pending, start + SETTLE), "an event restarted the wait");
        assert!(scan(&nothing, start + SETTLE + SETTLE / 2));
        assert!(!scan(&nothing, start + 2 * SETTLE), "the wait ended without another event");
    }
}
