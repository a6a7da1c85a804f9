//! The manifests of directories as they stand: looked at again, changed as a set.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::decide::{Look, UnitChange, Verdict};
use super::report::{FileEvent, FileStatus, LookReport};
use crate::directory::{DirectoryLoad, FileLoad};
use crate::live::lock_files::Surroundings;
use crate::live::observation::{Seen, observe};
use crate::live::roots::Roots;
use crate::live::state::{Files, Key, Known, Trouble};
use crate::manifest::load_str;

/// How long a file that is gone may take to come back before its tools are taken away: editors and
/// deployments move files aside for a moment.
pub(super) const SETTLE: Duration = Duration::from_millis(100);

/// A file written more lately than this, of which no end of writing was heard, is looked at later:
/// half a manifest is often a valid one.
const FRESH: Duration = Duration::from_secs(1);

/// How often moving files are looked at for one picture of them.
const ATTEMPTS: usize = 8;

/// Who is told of changes: a registry, and a log.
pub trait Subscriber: Send + Sync {
    /// Applies a set of changes at once, or says why not. What is refused is offered again with the
    /// next look, and the files are stale until then.
    fn apply(&self, changes: Vec<UnitChange>) -> Result<(), String>;

    /// Hears what a look has found, after it was applied.
    fn report(&self, report: &LookReport);
}

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    /// These places, of which something was heard.
    Places(BTreeSet<Key>),
    /// Everything, read again whatever its stamp says.
    All,
    /// Everything, told again whether it has changed or not: what a file needs may have.
    Anew,
    /// Everything whose stamp has changed, unless it is still being written.
    Rescan,
}

/// The manifests of directories while they are in use.
///
/// Files are looked at when somebody asks ([`reload`](Self::reload)) and, once
/// [`Watch::start`](super::Watch::start) runs, whenever they change.
pub struct LiveManifests {
    state: Mutex<State>,
    surroundings: Mutex<Surroundings>,
    subscriber: Box<dyn Subscriber>,
}

struct State {
    roots: Roots,
    files: Files,
    /// Places where something may be about to come back, and how long they have.
    waiting: BTreeMap<Key, Instant>,
    /// Places that were being written, and when to look again.
    later: BTreeMap<Key, Instant>,
    /// Places whose changes were refused.
    refused: BTreeSet<Key>,
}

impl LiveManifests {
    /// Takes over from a load, whose tools the subscriber already has. What has changed since is
    /// found by the first look.
    pub fn new(load: &DirectoryLoad, subscriber: impl Subscriber + 'static) -> Self {
        let mut files = Files::default();
        for file in &load.files {
            if let Some(name) = file.path.file_name() {
                let key = Key { rank: file.rank, name: name.to_owned() };
                files.insert(key, known(file));
            }
        }
        let state = State {
            roots: Roots::new(load.paths()),
            files,
            waiting: BTreeMap::new(),
            later: BTreeMap::new(),
            refused: BTreeSet::new(),
        };
        Self {
            state: Mutex::new(state),
            surroundings: Mutex::new(Surroundings::new(&[])),
            subscriber: Box::new(subscriber),
        }
    }

    /// Names files that are no manifests, but on which it depends what the subscriber makes of them,
    /// such as a lock: while a [`Watch`](super::Watch) runs, all manifests are read anew when one of
    /// them comes, goes or is replaced.
    #[must_use]
    pub fn with_surroundings(mut self, files: &[PathBuf]) -> Self {
        self.surroundings = Mutex::new(Surroundings::new(files));
        self
    }

    /// Reads every file again, now, and tells of all of them: programs, secrets and whatever else a
    /// file needs may have come or gone. Files that are gone are waited for a moment if a
    /// [`Watch`](super::Watch) runs; without one call it again after a tenth of a second.
    pub fn reload(&self) -> LookReport {
        self.look(&Scope::Anew)
    }

    /// Every file, in the order that decides names, and what became of it.
    pub fn files(&self) -> Vec<FileStatus> {
        let state = self.state();
        state
            .files
            .iter()
            .map(|(key, known)| FileStatus::of(state.roots.path(key), known))
            .collect()
    }

    /// Directories that cannot be read, with the reason.
    pub fn unreadable(&self) -> Vec<(PathBuf, String)> {
        self.state().roots.unreadable()
    }

    pub(super) fn look(&self, scope: &Scope) -> LookReport {
        // Held while the changes are applied, so that they are applied in the order of the looks.
        let mut state = self.state();
        let report = state.look(scope, Instant::now(), &|changes| self.subscriber.apply(changes));
        self.subscriber.report(&report);
        report
    }

    /// The directories to watch, by their real paths.
    pub(super) fn wanted(&self) -> BTreeSet<PathBuf> {
        let mut wanted = self.surroundings().wanted();
        let State { roots, files, .. } = &mut *self.state();
        wanted.extend(roots.wanted(files));
        wanted
    }

    pub(super) fn surroundings(&self) -> MutexGuard<'_, Surroundings> {
        self.surroundings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For where an event's path leads.
    pub(super) fn with_places<T>(&self, read: impl FnOnce(&Roots, &Files) -> T) -> T {
        let state = self.state();
        read(&state.roots, &state.files)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for LiveManifests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveManifests").field("roots", &self.state().roots).finish_non_exhaustive()
    }
}

/// What a load says of a file.
fn known(file: &FileLoad) -> Known {
    let good = !file.loaded.has_errors();
    Known {
        version: file.version.clone(),
        declares: good,
        tools: file.loaded.declarations.len(),
        trouble: (!good).then(|| Trouble::Load(Box::new(file.clone()))),
        ..Known::default()
    }
}

/// Where a link leads that leads to nothing, as far as there are folders on the way.
fn link_target(path: &Path) -> Option<PathBuf> {
    let target = path.parent()?.join(fs::read_link(path).ok()?);
    let folder = fs::canonicalize(target.parent()?).ok()?;
    Some(folder.join(target.file_name()?))
}

/// What a place will be if the changes are applied.
struct Outcome {
    key: Key,
    /// The place its file comes from.
    from: Option<Key>,
    /// None: nothing is there any more.
    known: Option<Known>,
    event: Option<FileEvent>,
}

impl State {
    fn look(
        &mut self,
        scope: &Scope,
        now: Instant,
        apply: &dyn Fn(Vec<UnitChange>) -> Result<(), String>,
    ) -> LookReport {
        let tells_all = *scope == Scope::Anew;
        let mut seen = self.observe(scope, now);
        self.observe_related(&mut seen);
        self.observe_whole(&mut seen);
        self.wait_anew(scope, now);
        let due = self.due(now);
        let gone = self.roots.gone(&seen, &self.files);
        let look = Look { known: &self.files, seen: &seen, due: &due, gone: &gone };
        let mut verdicts = look.decide();

        if tells_all {
            for (key, verdict) in &mut verdicts {
                if *verdict == Verdict::Unchanged && matches!(seen.get(key), Some(Seen::File(_))) {
                    *verdict = Verdict::Take { from: None };
                }
            }
        }
        for key in seen.keys() {
            if verdicts.get(key) == Some(&Verdict::Wait) {
                // What is gone may be what is still being written elsewhere.
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
        for (key, verdict) in verdicts {
            if let Some(seen) = seen.remove(&key) {
                outcomes.extend(self.outcome(key, verdict, seen, tells_all, &mut changes));
            }
        }
        let applied = if changes.is_empty() { Ok(()) } else { apply(changes) };
        let mut report = LookReport::default();
        match applied {
            Ok(()) => self.commit(outcomes, &mut report),
            Err(reason) => self.refuse(outcomes, &reason, &mut report),
        }
        report.next = self.waiting.values().chain(self.later.values()).min().copied();
        report
    }

    fn observe(&mut self, scope: &Scope, now: Instant) -> BTreeMap<Key, Seen> {
        let mut seen = BTreeMap::new();
        let keys: BTreeSet<Key> = match scope {
            Scope::Places(keys) => keys.clone(),
            Scope::All | Scope::Anew | Scope::Rescan => self.roots.list(&self.files),
        };
        let is_rescan = *scope == Scope::Rescan;
        for key in keys {
            let found = if is_rescan { self.see_changed(&key) } else { self.see(&key) };
            if is_rescan
                && let Seen::File(file) = &found
                && file.version.stamp.is_fresh(SystemTime::now(), FRESH)
                // One that was renamed is not being written.
                && self.files.that_had(file, &key).next().is_none()
            {
                self.later.insert(key, now + FRESH);
                continue;
            }
            seen.insert(key, found);
        }
        let late = self.later.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone());
        let again: Vec<Key> =
            late.chain(self.waiting.keys().cloned()).chain(self.refused.iter().cloned()).collect();
        for key in again {
            self.later.remove(&key);
            if !seen.contains_key(&key) {
                seen.insert(key.clone(), self.see(&key));
            }
        }
        seen
    }

    /// Looks at the places that files have come from, too: a rename has two ends.
    fn observe_related(&self, seen: &mut BTreeMap<Key, Seen>) {
        let mut open: Vec<Key> = seen.keys().cloned().collect();
        while let Some(key) = open.pop() {
            let Some(id) = seen.get(&key).and_then(Seen::id) else { continue };
            for other in self.files.with_id(id) {
                if !seen.contains_key(other) {
                    seen.insert(other.clone(), self.see_changed(other));
                    open.push(other.clone());
                }
            }
        }
    }

    /// Looks again as long as files moved while they were looked at: two places that had one file, or a
    /// link that leads elsewhere now, are no picture of any moment. What does not come to rest has to
    /// wait.
    fn observe_whole(&self, seen: &mut BTreeMap<Key, Seen>) {
        for attempt in 0..ATTEMPTS {
            let torn = self.torn(seen);
            if torn.is_empty() {
                return;
            }
            let is_last = attempt + 1 == ATTEMPTS;
            for key in torn {
                let found = if is_last { Seen::Busy } else { self.see(&key) };
                seen.insert(key, found);
            }
            self.observe_related(seen);
        }
    }

    fn torn(&self, seen: &BTreeMap<Key, Seen>) -> BTreeSet<Key> {
        let mut torn = BTreeSet::new();
        let mut places = HashMap::new();
        for (key, found) in seen {
            if let Some(id) = found.only_id()
                && !self.is_link(key, found)
                && let Some(other) = places.insert(id, key)
            {
                torn.extend([key.clone(), other.clone()]);
            }
        }
        // Links are usually swapped all at once, by the directory they lead through.
        let moved = |(key, found): &(&Key, &Seen)| match found {
            Seen::File(file) => file.version.target.as_ref().is_some_and(|target| {
                fs::canonicalize(self.roots.path(key)).ok().as_ref() != Some(target)
            }),
            _ => false,
        };
        if seen.iter().any(|place| moved(&place)) {
            let links = seen.iter().filter(|(key, found)| self.is_link(key, found));
            torn.extend(links.map(|(key, _)| key.clone()));
        }
        torn
    }

    /// Whether the place is a symbolic link: several of them may lead to one file.
    fn is_link(&self, key: &Key, found: &Seen) -> bool {
        match found {
            Seen::File(file) => file.version.target.is_some(),
            _ => self.files.get(key).is_some_and(|known| known.target().is_some()),
        }
    }

    fn see(&self, key: &Key) -> Seen {
        observe(&self.roots.path(key), None)
    }

    /// Reads the file only if its stamp is another one.
    fn see_changed(&self, key: &Key) -> Seen {
        let version = self.files.get(key).and_then(|known| known.version.as_ref());
        observe(&self.roots.path(key), version.map(|version| &version.stamp))
    }

    /// What is heard of again may have been there in between, however late this is looked at: two
    /// looks that miss it do not make it gone.
    fn wait_anew(&mut self, scope: &Scope, now: Instant) {
        let Scope::Places(heard) = scope else { return };
        for (_, until) in self.waiting.iter_mut().filter(|(key, _)| heard.contains(key)) {
            *until = (*until).max(now + SETTLE);
        }
    }

    fn due(&self, now: Instant) -> BTreeSet<Key> {
        let due = self.waiting.iter().filter(|(_, at)| **at <= now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// `tells_all` asks for troubles that were told of, too.
    fn outcome(
        &self,
        key: Key,
        verdict: Verdict,
        seen: Seen,
        tells_all: bool,
        changes: &mut Vec<UnitChange>,
    ) -> Option<Outcome> {
        let unit = self.roots.unit(&key);
        let before = self.files.get(&key);
        match verdict {
            Verdict::Wait => None,
            Verdict::Unchanged => {
                let before = before?;
                let known = match seen {
                    Seen::File(file) => Some(Known {
                        version: Some(file.version),
                        lost_target: None,
                        trouble: before.trouble.clone().filter(|trouble| !trouble.is_refusal()),
                        ..before.clone()
                    }),
                    Seen::Same(_) | Seen::Busy => return None,
                    // A missing file that has moved leaves nothing behind.
                    Seen::Missing { .. } | Seen::Unread(_) => None,
                };
                Some(Outcome { key, from: None, known, event: None })
            }
            Verdict::Remove => {
                if before?.declares {
                    changes.push(UnitChange::Remove { unit: unit.clone() });
                }
                let event = Some(FileEvent::Removed { unit });
                Some(Outcome { key, from: None, known: None, event })
            }
            Verdict::Keep => {
                let trouble = match seen {
                    Seen::Unread(load) => Trouble::Load(load),
                    Seen::Missing { is_link: true } => {
                        Trouble::Absent("it is a link that leads to nothing")
                    }
                    _ => Trouble::Absent("its directory is gone or cannot be read"),
                };
                // Where it led, or leads to nothing: that is where it may come back.
                let led = before.and_then(|before| before.target().cloned());
                let lost_target = led.or_else(|| link_target(&self.roots.path(&key)));
                let known = Known { lost_target, ..Known::default() };
                Some(self.kept(key, None, known, trouble, tells_all))
            }
            Verdict::Take { from } => {
                let Seen::File(file) = seen else { return None };
                let base = from.as_ref().map_or(before, |from| self.files.get(from));
                let declared = base.is_some_and(|base| base.declares);
                if let Some(from) = &from {
                    let from = self.roots.unit(from);
                    changes.push(UnitChange::Rename { from, to: unit.clone() });
                }
                let read = Known { version: Some(file.version.clone()), ..Known::default() };
                if file.is_empty() && declared {
                    let trouble = Trouble::Absent("the file is empty");
                    return Some(self.kept(key, from, read, trouble, tells_all));
                }
                let load = file.load(&self.roots.path(&key), key.rank, &load_str);
                if load.loaded.has_errors() {
                    let trouble = Trouble::Load(Box::new(load));
                    return Some(self.kept(key, from, read, trouble, tells_all));
                }
                let known = known(&load);
                let tools = known.tools;
                changes.push(UnitChange::Replace { unit: unit.clone(), loaded: load.loaded });
                let from_unit = from.as_ref().map(|from| self.roots.unit(from));
                let event = FileEvent::Loaded { unit, from: from_unit, tools };
                Some(Outcome { key, from, known: Some(known), event: Some(event) })
            }
        }
    }

    /// A place in trouble, whose last good tools stay, if it has any. It is reported once, and not at
    /// every look, unless somebody asks.
    fn kept(
        &self,
        key: Key,
        from: Option<Key>,
        known: Known,
        trouble: Trouble,
        tells_all: bool,
    ) -> Outcome {
        let base = self.files.get(from.as_ref().unwrap_or(&key));
        let (declares, tools) = base.map_or((false, 0), |base| (base.declares, base.tools));
        let known_reason = base.and_then(|base| base.trouble.as_ref()).map(Trouble::reason);
        let is_news = tells_all || known_reason != Some(trouble.reason());
        let event = is_news.then(|| {
            FileEvent::of_trouble(self.roots.unit(&key), &trouble, declares.then_some(tools))
        });
        let known = Known { declares, tools, trouble: Some(trouble), ..known };
        Outcome { key, from, known: Some(known), event }
    }

    fn commit(&mut self, outcomes: Vec<Outcome>, report: &mut LookReport) {
        // All sources first: files may have exchanged their names.
        for from in outcomes.iter().filter_map(|outcome| outcome.from.as_ref()) {
            self.files.remove(from);
        }
        for Outcome { key, known, event, .. } in outcomes {
            self.refused.remove(&key);
            match known {
                Some(known) => self.files.insert(key, known),
                None => drop(self.files.remove(&key)),
            }
            report.events.extend(event);
        }
    }

    /// Nothing was applied: all stays as it was, and is tried again with the next look.
    fn refuse(&mut self, outcomes: Vec<Outcome>, reason: &str, report: &mut LookReport) {
        for Outcome { key, event, .. } in outcomes {
            let trouble = Trouble::Refused(reason.to_owned());
            let unit = self.roots.unit(&key);
            let is_known =
                self.files.get(&key).and_then(|known| known.trouble.as_ref()).map(Trouble::reason)
                    == Some(trouble.reason());
            let mut known = self.files.remove(&key).unwrap_or_default();
            if event.is_some() && !is_known {
                let tools = known.declares.then_some(known.tools);
                report.events.push(FileEvent::of_trouble(unit, &trouble, tools));
            }
            known.trouble = Some(trouble);
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

        fn report(&self, _: &LookReport) {}
    }

    #[test]
    fn a_file_that_is_heard_of_again_is_not_gone_because_two_looks_missed_it() {
        let home = tempfile::tempdir().unwrap();
        let (file, aside) = (home.path().join("a.yaml"), home.path().join("aside"));
        fs::write(&file, "toolcrib: 1\ntools: []\n").unwrap();
        let live = LiveManifests::new(&load_dirs(&[home.path().to_owned()]), Nobody);
        let key = Key { rank: 0, name: "a.yaml".into() };
        let heard = Scope::Places(BTreeSet::from([key.clone()]));
        let nothing = Scope::Places(BTreeSet::new());
        let look = |scope: &Scope, at: Instant| {
            live.state().look(scope, at, &|_| Ok(()));
            live.state().files.get(&key).is_some()
        };

        fs::rename(&file, &aside).unwrap();
        let start = Instant::now();
        assert!(look(&heard, start));
        // Back, and away again, before anybody looks: of that, events tell.
        assert!(look(&heard, start + SETTLE), "it has been there since");
        assert!(look(&nothing, start + SETTLE + SETTLE / 2));
        assert!(!look(&nothing, start + 2 * SETTLE), "it stays away, and nothing is heard of it");
    }
}
