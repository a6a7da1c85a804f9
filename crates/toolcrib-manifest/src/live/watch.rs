//! Decides when to scan manifests: as soon as they have changed.
//!
//! Files are scanned when a writer closes them and when they are renamed, linked or deleted, but
//! not because they were written to: half a manifest is often a valid one. On systems that do not
//! report closing, a file is scanned once it has been quiet for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::manifests::{LiveManifests, SETTLE, ScanScope};
use crate::live::state::FileKey;

/// The interval of scans that find changes for which no event came.
const RESCAN: Duration = Duration::from_secs(30);
/// The interval on systems or directories without events.
const POLL: Duration = Duration::from_secs(2);
/// How long a file has to be quiet before it is scanned, on systems that do not report closing.
const QUIET: Duration = Duration::from_millis(50);
/// Whether the system reports that a writer has closed a file.
const REPORTS_CLOSE: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// A thread that scans manifests whenever they change. Dropping it ends the thread.
#[derive(Debug)]
pub struct ManifestWatcher {
    messages: Sender<WatchMessage>,
}

#[derive(Debug)]
enum WatchMessage {
    Event(notify::Result<Event>),
    Stop,
}

impl ManifestWatcher {
    /// Scans everything once, then whenever something changes. It does not keep the manifests
    /// alive.
    ///
    /// If the system provides no events, or not for all directories, everything is scanned every
    /// two seconds instead, and `warn` is called with a message. Fails only if the thread cannot be
    /// started.
    pub fn start(
        manifests: &Arc<LiveManifests>,
        warn: impl Fn(String) + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, inbox) = channel();
        let to_inbox = messages.clone();
        let tell = move |event| drop(to_inbox.send(WatchMessage::Event(event)));
        let notifier = notify::recommended_watcher(tell)
            .map_err(|error| warn(format!("file events are not available: {error}")))
            .ok();
        let mut watcher = WatchThread {
            manifests: Arc::downgrade(manifests),
            inbox,
            is_polling: notifier.is_none(),
            notifier,
            watched: BTreeSet::new(),
            quiet: BTreeMap::new(),
            warn: Box::new(warn),
        };
        thread::Builder::new()
            .name("toolcrib-manifests".to_owned())
            .spawn(move || drop(watcher.run()))?;
        Ok(Self { messages })
    }
}

impl Drop for ManifestWatcher {
    fn drop(&mut self) {
        // Sending fails if the thread has already ended.
        let _ = self.messages.send(WatchMessage::Stop);
    }
}

struct WatchThread {
    manifests: Weak<LiveManifests>,
    inbox: Receiver<WatchMessage>,
    notifier: Option<RecommendedWatcher>,
    /// The watched directories, by their real paths.
    watched: BTreeSet<PathBuf>,
    /// Files that were written to, with the time from which they count as quiet.
    quiet: BTreeMap<FileKey, Instant>,
    is_polling: bool,
    warn: Box<dyn Fn(String) + Send>,
}

/// The thread has to end.
struct ThreadStopped;

impl WatchThread {
    /// Runs until the manifests are dropped or the thread is told to stop.
    fn run(&mut self) -> Result<std::convert::Infallible, ThreadStopped> {
        while self.update_watches()? {}
        let mut again = self.scan(&self.rescan()?)?;
        let mut rescan = Instant::now() + self.interval();
        loop {
            let quiet = self.quiet.values().min().copied();
            let beside = self.manifests()?.auxiliary().due();
            let wakes = [Some(rescan), again, quiet, beside];
            let until = wakes.into_iter().flatten().min().unwrap_or(rescan);
            let mut pending = self.wait(until)?;
            let now = Instant::now();
            pending.places.extend(self.take_quiet(now));
            let scope = if self.auxiliary_files_have_changed(now)? {
                ScanScope::Anew
            } else if pending.everything {
                ScanScope::All
            } else if rescan <= now {
                self.rescan()?
            } else if pending.places.is_empty() && again.is_none_or(|again| again > now) {
                continue;
            } else {
                ScanScope::Places(pending.places)
            };
            again = self.scan(&scope)?;
            if !matches!(scope, ScanScope::Rescan | ScanScope::Anew) && !pending.moved {
                continue;
            }
            // Changes before a new watch began are found by a scan afterwards.
            while self.update_watches()? {
                again = self.scan(&ScanScope::All)?;
            }
            rescan = Instant::now() + self.interval();
        }
    }

    fn interval(&self) -> Duration {
        if self.is_polling { POLL } else { RESCAN }
    }

    fn manifests(&self) -> Result<Arc<LiveManifests>, ThreadStopped> {
        self.manifests.upgrade().ok_or(ThreadStopped)
    }

    fn scan(&self, scope: &ScanScope) -> Result<Option<Instant>, ThreadStopped> {
        Ok(self.manifests()?.scan(scope).next)
    }

    /// The periodic scan.
    fn rescan(&self) -> Result<ScanScope, ThreadStopped> {
        let have_changed = self.manifests()?.auxiliary().have_changed();
        Ok(if have_changed { ScanScope::Anew } else { ScanScope::Rescan })
    }

    /// Whether a check of the auxiliary files is due and one of them has changed.
    fn auxiliary_files_have_changed(&self, now: Instant) -> Result<bool, ThreadStopped> {
        let manifests = self.manifests()?;
        let mut auxiliary = manifests.auxiliary();
        Ok(auxiliary.due().is_some_and(|due| due <= now) && auxiliary.have_changed())
    }

    /// Waits for an event, and takes all that have come.
    fn wait(&mut self, until: Instant) -> Result<PendingEvents, ThreadStopped> {
        let mut pending = PendingEvents::default();
        let timeout = until.saturating_duration_since(Instant::now());
        match self.inbox.recv_timeout(timeout) {
            Ok(message) => self.handle(message, &mut pending)?,
            Err(RecvTimeoutError::Timeout) => return Ok(pending),
            Err(RecvTimeoutError::Disconnected) => return Err(ThreadStopped),
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.handle(message, &mut pending)?;
        }
        Ok(pending)
    }

    fn handle(
        &mut self,
        message: WatchMessage,
        pending: &mut PendingEvents,
    ) -> Result<(), ThreadStopped> {
        let event = match message {
            WatchMessage::Stop => return Err(ThreadStopped),
            // Events were lost, so everything may have changed.
            WatchMessage::Event(Err(_)) => return self.record_lost_events(pending),
            WatchMessage::Event(Ok(event)) if event.need_rescan() => {
                return self.record_lost_events(pending);
            }
            WatchMessage::Event(Ok(event)) => event,
        };
        let Some(file_change) = file_change(event.kind) else { return Ok(()) };
        let manifests = self.manifests()?;
        for path in &event.paths {
            record_auxiliary_event(&manifests, path, file_change);
            if file_change == FileChange::Gone && self.watched.remove(path) {
                // The watched directory was moved or deleted.
                if let Some(notifier) = &mut self.notifier {
                    let _ = notifier.unwatch(path);
                }
                pending.all();
            }
            match manifests.with_places(|roots, files| roots.affected(files, path)) {
                Some(keys) => self.add_event(keys, path, file_change, pending),
                None if matches!(file_change, FileChange::Written | FileChange::Closed) => {}
                // Permissions of directories rarely change. A change matters only if something
                // could not be read before.
                None if file_change == FileChange::Permitted
                    && !manifests.with_places(|roots, files| {
                        !roots.unreadable().is_empty() || files.has_unread()
                    }) => {}
                None => pending.all(),
            }
        }
        Ok(())
    }

    fn record_lost_events(&self, pending: &mut PendingEvents) -> Result<(), ThreadStopped> {
        pending.all();
        self.manifests()?.auxiliary().schedule_check(Duration::ZERO);
        Ok(())
    }

    fn add_event(
        &mut self,
        keys: BTreeSet<FileKey>,
        path: &Path,
        file_change: FileChange,
        pending: &mut PendingEvents,
    ) {
        match file_change {
            FileChange::Closed | FileChange::Gone | FileChange::Come => pending.places.extend(keys),
            // A new link is complete; a new file is about to be written.
            FileChange::Created if is_link(path) => {
                pending.places.extend(keys);
                pending.moved = true;
            }
            FileChange::Created | FileChange::Written if !REPORTS_CLOSE => {
                let at = Instant::now() + QUIET;
                self.quiet.extend(keys.into_iter().map(|key| (key, at)));
            }
            // The file is being written again; an event will follow when it is closed.
            FileChange::Created | FileChange::Written => {
                pending.places.retain(|key| !keys.contains(key));
            }
            FileChange::Permitted => {
                let Some(manifests) = self.manifests.upgrade() else { return };
                let unread = |key: &FileKey| manifests.with_places(|_, files| files.is_unread(key));
                pending.places.extend(keys.into_iter().filter(unread));
            }
        }
    }

    fn take_quiet(&mut self, now: Instant) -> Vec<FileKey> {
        let quiet: Vec<FileKey> =
            self.quiet.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in &quiet {
            self.quiet.remove(key);
        }
        quiet
    }

    /// Updates the set of watched directories. Returns whether a watch was added: there may then be
    /// more to watch, because changes below a directory cause no events until it is watched.
    fn update_watches(&mut self) -> Result<bool, ThreadStopped> {
        let manifests = self.manifests()?;
        let dirs_to_watch = manifests.dirs_to_watch();
        let Some(notifier) = &mut self.notifier else { return Ok(false) };
        for path in self.watched.difference(&dirs_to_watch) {
            let _ = notifier.unwatch(path);
        }
        self.watched.retain(|path| dirs_to_watch.contains(path));
        let mut is_new = false;
        let mut is_whole = true;
        for path in dirs_to_watch {
            if self.watched.contains(&path) {
                continue;
            }
            match notifier.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path);
                    is_new = true;
                }
                // The directory has vanished; the watch of its parent reports when it comes back.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) => {
                    is_whole = false;
                    if !self.is_polling {
                        (self.warn)(format!(
                            "{} cannot be watched, so all manifests are scanned every {} s: \
                            {error}",
                            path.display(),
                            POLL.as_secs()
                        ));
                    }
                }
            }
        }
        self.is_polling = !is_whole;
        Ok(is_new)
    }
}

/// Schedules a check of the auxiliary files: later for a deleted file, which may come back, and for
/// one that is being written.
fn record_auxiliary_event(manifests: &LiveManifests, path: &Path, file_change: FileChange) {
    let mut auxiliary = manifests.auxiliary();
    if !auxiliary.affects(path) {
        return;
    }
    match file_change {
        FileChange::Gone => auxiliary.schedule_check(SETTLE),
        FileChange::Closed | FileChange::Come | FileChange::Permitted => {
            auxiliary.schedule_check(Duration::ZERO);
        }
        FileChange::Created if is_link(path) => auxiliary.schedule_check(Duration::ZERO),
        FileChange::Created | FileChange::Written if !REPORTS_CLOSE => {
            auxiliary.schedule_check(QUIET);
        }
        FileChange::Created | FileChange::Written => {}
    }
}

/// The events since the last scan.
#[derive(Debug, Default)]
struct PendingEvents {
    places: BTreeSet<FileKey>,
    everything: bool,
    /// Whether the directories to watch may have changed.
    moved: bool,
}

impl PendingEvents {
    fn all(&mut self) {
        self.everything = true;
        self.moved = true;
    }
}

/// What an event reports about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileChange {
    /// A writer closed it.
    Closed,
    /// It was renamed away, or deleted.
    Gone,
    /// It was renamed to this name, or exchanged.
    Come,
    /// It was created and may be incomplete.
    Created,
    /// It was written to and may be incomplete.
    Written,
    /// Its permissions changed.
    Permitted,
}

/// The change that an event reports; `None` for reading and opening.
fn file_change(kind: EventKind) -> Option<FileChange> {
    use notify::event::RenameMode;

    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(FileChange::Closed),
        EventKind::Access(_) => None,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
            Some(FileChange::Gone)
        }
        EventKind::Create(CreateKind::Folder) | EventKind::Modify(ModifyKind::Name(_)) => {
            Some(FileChange::Come)
        }
        EventKind::Create(_) => Some(FileChange::Created),
        EventKind::Modify(ModifyKind::Metadata(_)) => Some(FileChange::Permitted),
        EventKind::Modify(_) | EventKind::Any | EventKind::Other => Some(FileChange::Written),
    }
}

/// Whether a new name is a symbolic or hard link to an existing file.
fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink() || has_other_names(&found))
}

#[cfg(unix)]
fn has_other_names(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    found.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &std::fs::Metadata) -> bool {
    false
}
