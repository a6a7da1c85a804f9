//! When to look at manifests: as soon as something has happened to them.
//!
//! Files are looked at when a writer closes them and when they are renamed, linked or deleted, never
//! because they were merely written to: half a manifest is often a valid one. Where the system does
//! not tell when a file is closed, a file is looked at once it has been quiet for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::manifests::{LiveManifests, SETTLE, Scope};
use crate::live::state::Key;

/// The safety net under events: everything whose stamp has changed is looked at this often.
const RESCAN: Duration = Duration::from_secs(30);
/// The same, where nothing tells of events.
const POLL: Duration = Duration::from_secs(2);
/// How long a file has been quiet when it is looked at, where nobody tells of its closing.
const QUIET: Duration = Duration::from_millis(50);
/// Whether the system tells when a writer closes a file.
const TELLS_CLOSING: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// A thread that looks at manifests whenever they change. Dropping it ends the thread.
#[derive(Debug)]
pub struct Watch {
    messages: Sender<Message>,
}

#[derive(Debug)]
enum Message {
    Event(notify::Result<Event>),
    Stop,
}

impl Watch {
    /// Looks at everything once more, then whenever something changes. The manifests are not kept
    /// alive by it.
    ///
    /// Where the system offers no events, or not for all directories, everything is looked at every
    /// two seconds instead, and `warn` hears of it. Fails only if there can be no thread.
    pub fn start(
        manifests: &Arc<LiveManifests>,
        warn: impl Fn(String) + Send + 'static,
    ) -> io::Result<Self> {
        let (messages, inbox) = channel();
        let to_inbox = messages.clone();
        let tell = move |event| drop(to_inbox.send(Message::Event(event)));
        let notifier = notify::recommended_watcher(tell)
            .map_err(|error| warn(format!("the system tells of no file events: {error}")))
            .ok();
        let mut watcher = Watcher {
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

impl Drop for Watch {
    fn drop(&mut self) {
        // A thread that has ended by itself needs no telling.
        let _ = self.messages.send(Message::Stop);
    }
}

struct Watcher {
    manifests: Weak<LiveManifests>,
    inbox: Receiver<Message>,
    notifier: Option<RecommendedWatcher>,
    /// Directories that are watched, by their real paths.
    watched: BTreeSet<PathBuf>,
    /// Files that were written to, and when they will have been quiet for long enough.
    quiet: BTreeMap<Key, Instant>,
    is_polling: bool,
    warn: Box<dyn Fn(String) + Send>,
}

/// The thread's work is over.
struct Stopped;

impl Watcher {
    /// Ends with the manifests, or when it is told to.
    fn run(&mut self) -> Result<std::convert::Infallible, Stopped> {
        while self.follow()? {}
        let mut again = self.look(&self.rescan()?)?;
        let mut rescan = Instant::now() + self.interval();
        loop {
            let quiet = self.quiet.values().min().copied();
            let beside = self.manifests()?.surroundings().due();
            let wakes = [Some(rescan), again, quiet, beside];
            let until = wakes.into_iter().flatten().min().unwrap_or(rescan);
            let mut heard = self.wait(until)?;
            let now = Instant::now();
            heard.places.extend(self.quieted(now));
            let scope = if self.surroundings_have_changed(now)? {
                Scope::Anew
            } else if heard.everything {
                Scope::All
            } else if rescan <= now {
                self.rescan()?
            } else if heard.places.is_empty() && again.is_none_or(|again| again > now) {
                continue;
            } else {
                Scope::Places(heard.places)
            };
            again = self.look(&scope)?;
            if !matches!(scope, Scope::Rescan | Scope::Anew) && !heard.moved {
                continue;
            }
            // What a new watch had missed before it began is found by looking after it.
            while self.follow()? {
                again = self.look(&Scope::All)?;
            }
            rescan = Instant::now() + self.interval();
        }
    }

    fn interval(&self) -> Duration {
        if self.is_polling { POLL } else { RESCAN }
    }

    fn manifests(&self) -> Result<Arc<LiveManifests>, Stopped> {
        self.manifests.upgrade().ok_or(Stopped)
    }

    fn look(&self, scope: &Scope) -> Result<Option<Instant>, Stopped> {
        Ok(self.manifests()?.look(scope).next)
    }

    /// The look of the safety net.
    fn rescan(&self) -> Result<Scope, Stopped> {
        let have_changed = self.manifests()?.surroundings().have_changed();
        Ok(if have_changed { Scope::Anew } else { Scope::Rescan })
    }

    /// Whether it is time to look at what is beside the manifests, and it is another.
    fn surroundings_have_changed(&self, now: Instant) -> Result<bool, Stopped> {
        let manifests = self.manifests()?;
        let mut surroundings = manifests.surroundings();
        Ok(surroundings.due().is_some_and(|due| due <= now) && surroundings.have_changed())
    }

    /// Waits for something to happen, and takes all that has.
    fn wait(&mut self, until: Instant) -> Result<Heard, Stopped> {
        let mut heard = Heard::default();
        let timeout = until.saturating_duration_since(Instant::now());
        match self.inbox.recv_timeout(timeout) {
            Ok(message) => self.hear(message, &mut heard)?,
            Err(RecvTimeoutError::Timeout) => return Ok(heard),
            Err(RecvTimeoutError::Disconnected) => return Err(Stopped),
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.hear(message, &mut heard)?;
        }
        Ok(heard)
    }

    fn hear(&mut self, message: Message, heard: &mut Heard) -> Result<(), Stopped> {
        let event = match message {
            Message::Stop => return Err(Stopped),
            // Something was lost: nobody knows what.
            Message::Event(Err(_)) => return self.hear_of_loss(heard),
            Message::Event(Ok(event)) if event.need_rescan() => return self.hear_of_loss(heard),
            Message::Event(Ok(event)) => event,
        };
        let Some(meaning) = meaning(event.kind) else { return Ok(()) };
        let manifests = self.manifests()?;
        for path in &event.paths {
            hear_of_surroundings(&manifests, path, meaning);
            if meaning == Meaning::Gone && self.watched.remove(path) {
                // The watch is of a directory that has another place now, or none.
                if let Some(notifier) = &mut self.notifier {
                    let _ = notifier.unwatch(path);
                }
                heard.all();
            }
            match manifests.with_places(|roots, files| roots.concerned(files, path)) {
                Some(keys) => self.hear_of(keys, path, meaning, heard),
                None if matches!(meaning, Meaning::Written | Meaning::Closed) => {}
                // Rights to a directory come and go rarely; only where something could not be read does
                // it matter that they have come.
                None if meaning == Meaning::Permitted
                    && !manifests.with_places(|roots, files| {
                        !roots.unreadable().is_empty() || files.has_unread()
                    }) => {}
                None => heard.all(),
            }
        }
        Ok(())
    }

    fn hear_of_loss(&self, heard: &mut Heard) -> Result<(), Stopped> {
        heard.all();
        self.manifests()?.surroundings().look_in(Duration::ZERO);
        Ok(())
    }

    fn hear_of(&mut self, keys: BTreeSet<Key>, path: &Path, meaning: Meaning, heard: &mut Heard) {
        match meaning {
            Meaning::Closed | Meaning::Gone | Meaning::Come => heard.places.extend(keys),
            // A link is whole when it is made; a file is about to be written.
            Meaning::Created if is_link(path) => {
                heard.places.extend(keys);
                heard.moved = true;
            }
            Meaning::Created | Meaning::Written if !TELLS_CLOSING => {
                let at = Instant::now() + QUIET;
                self.quiet.extend(keys.into_iter().map(|key| (key, at)));
            }
            // Somebody is at it again: the end of that is heard, too.
            Meaning::Created | Meaning::Written => heard.places.retain(|key| !keys.contains(key)),
            Meaning::Permitted => {
                let Some(manifests) = self.manifests.upgrade() else { return };
                let unread = |key: &Key| manifests.with_places(|_, files| files.is_unread(key));
                heard.places.extend(keys.into_iter().filter(unread));
            }
        }
    }

    fn quieted(&mut self, now: Instant) -> Vec<Key> {
        let quiet: Vec<Key> =
            self.quiet.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in &quiet {
            self.quiet.remove(key);
        }
        quiet
    }

    /// Watches what has to be watched now, and nothing else. Whether something is new: then there may
    /// be more, since directories came and went unheard until their parent was watched.
    fn follow(&mut self) -> Result<bool, Stopped> {
        let manifests = self.manifests()?;
        let wanted = manifests.wanted();
        let Some(notifier) = &mut self.notifier else { return Ok(false) };
        for path in self.watched.difference(&wanted) {
            let _ = notifier.unwatch(path);
        }
        self.watched.retain(|path| wanted.contains(path));
        let mut is_new = false;
        let mut is_whole = true;
        for path in wanted {
            if self.watched.contains(&path) {
                continue;
            }
            match notifier.watch(&path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path);
                    is_new = true;
                }
                // It has gone since; its parent tells when it comes back.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) => {
                    is_whole = false;
                    if !self.is_polling {
                        (self.warn)(format!(
                            "{} cannot be watched, so all manifests are looked at every {} s: {error}",
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

/// What is gone may be about to come back, and a file that is written is looked at when it is whole.
fn hear_of_surroundings(manifests: &LiveManifests, path: &Path, meaning: Meaning) {
    let mut surroundings = manifests.surroundings();
    if !surroundings.concern(path) {
        return;
    }
    match meaning {
        Meaning::Gone => surroundings.look_in(SETTLE),
        Meaning::Closed | Meaning::Come | Meaning::Permitted => {
            surroundings.look_in(Duration::ZERO);
        }
        Meaning::Created if is_link(path) => surroundings.look_in(Duration::ZERO),
        Meaning::Created | Meaning::Written if !TELLS_CLOSING => surroundings.look_in(QUIET),
        Meaning::Created | Meaning::Written => {}
    }
}

/// What was heard of since the last look.
#[derive(Debug, Default)]
struct Heard {
    places: BTreeSet<Key>,
    everything: bool,
    /// Whether other directories may have to be watched.
    moved: bool,
}

impl Heard {
    fn all(&mut self) {
        self.everything = true;
        self.moved = true;
    }
}

/// What an event says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// A writer has closed it.
    Closed,
    /// It was renamed away, or deleted.
    Gone,
    /// It was renamed to this, or exchanged.
    Come,
    /// There is something new, perhaps unfinished.
    Created,
    /// It was written to, perhaps not for the last time.
    Written,
    /// Who may read it has changed.
    Permitted,
}

/// Reading and opening mean nothing.
fn meaning(kind: EventKind) -> Option<Meaning> {
    use notify::event::RenameMode;

    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Meaning::Closed),
        EventKind::Access(_) => None,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => {
            Some(Meaning::Gone)
        }
        EventKind::Create(CreateKind::Folder) | EventKind::Modify(ModifyKind::Name(_)) => {
            Some(Meaning::Come)
        }
        EventKind::Create(_) => Some(Meaning::Created),
        EventKind::Modify(ModifyKind::Metadata(_)) => Some(Meaning::Permitted),
        EventKind::Modify(_) | EventKind::Any | EventKind::Other => Some(Meaning::Written),
    }
}

/// Whether a new name is another name of something that is there already.
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
