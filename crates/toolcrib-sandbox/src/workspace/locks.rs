//! Locks of files: shared for readers, exclusive for writers.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// A place in a folder, whatever path leads there: the folder by its device and inode, and the name
/// in it. A file's own inode would not do, since writing puts another in its place; a path would not
/// either, since several lead to one file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    /// The folder's device.
    pub device: u64,
    /// The folder's inode.
    pub folder: u64,
    /// The name in it.
    pub name: String,
}

/// Whether others may hold the lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Other readers may.
    Shared,
    /// Nobody may.
    Exclusive,
}

/// The locks of files in use. Cloning it is cheap and yields the same table.
///
/// A name is in the table only while somebody holds or awaits its lock. Whoever comes first gets it
/// first; readers that stand next to each other, together. Locks hold between users of one table;
/// other programs know nothing of them.
///
/// ```
/// use std::time::{Duration, Instant};
/// use toolcrib_sandbox::{LockKey, LockMode, LockTable};
///
/// let table = LockTable::new();
/// let key = LockKey { device: 1, folder: 2, name: "notes.txt".to_owned() };
/// let soon = Instant::now() + Duration::from_millis(10);
/// let reader = table.lock([(key.clone(), LockMode::Shared)], soon).expect("it is free");
/// assert!(table.lock([(key.clone(), LockMode::Exclusive)], soon).is_none());
/// drop(reader);
/// assert!(table.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct LockTable(Arc<LockState>);

#[derive(Default)]
struct LockState {
    slots: Mutex<HashMap<LockKey, LockEntry>>,
    tickets: AtomicU64,
    /// One for all: whoever waits is rare, and looks again.
    released: Condvar,
}

/// A lock that somebody holds or awaits.
#[derive(Default)]
struct LockEntry {
    readers: usize,
    writer: bool,
    /// Who waits, in the order in which they came.
    queue: VecDeque<(u64, LockMode)>,
}

impl LockEntry {
    /// Takes the lock, if whoever holds it allows, and so do those who came before.
    fn take(&mut self, ticket: u64, mode: LockMode) -> bool {
        let mut before = self.queue.iter().take_while(|(other, _)| *other != ticket);
        match mode {
            LockMode::Shared => {
                if self.writer || before.any(|(_, mode)| *mode == LockMode::Exclusive) {
                    return false;
                }
                self.readers += 1;
            }
            LockMode::Exclusive => {
                if self.writer || self.readers > 0 || before.next().is_some() {
                    return false;
                }
                self.writer = true;
            }
        }
        true
    }

    fn is_unused(&self) -> bool {
        self.readers == 0 && !self.writer && self.queue.is_empty()
    }
}

impl LockTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table that everybody in this process shares who does not say otherwise.
    pub fn of_process() -> Self {
        static TABLE: OnceLock<LockTable> = OnceLock::new();
        TABLE.get_or_init(Self::default).clone()
    }

    /// Takes locks, all or none, one after the other in the order of their keys, so that nobody
    /// waits in a circle; a key that is named twice is locked once, in the stronger mode. Waits
    /// until then at most, blocking the thread; `None`: it was in vain.
    ///
    /// Who holds a lock must not ask for more: that could wait for itself.
    pub fn lock(
        &self,
        keys: impl IntoIterator<Item = (LockKey, LockMode)>,
        until: Instant,
    ) -> Option<Locked> {
        let mut keys: Vec<_> = keys.into_iter().collect();
        // The stronger of two modes comes first, and stays.
        keys.sort_by(|(a, a_mode), (b, b_mode)| a.cmp(b).then(b_mode.cmp(a_mode)));
        keys.dedup_by(|(later, _), (first, _)| later == first);
        let mut locked = Locked { table: self.clone(), held: Vec::with_capacity(keys.len()) };
        for (key, mode) in keys {
            if !self.take(&key, mode, until) {
                return None;
            }
            locked.held.push((key, mode));
        }
        Some(locked)
    }

    /// How many files somebody holds or awaits.
    pub fn len(&self) -> usize {
        self.slots().len()
    }

    /// Whether somebody holds or awaits the lock of a place.
    pub fn contains(&self, key: &LockKey) -> bool {
        self.slots().contains_key(key)
    }

    /// Whether nobody holds or awaits anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<LockKey, LockEntry>> {
        // Nothing panics while it is held; and if, every state of it is a state between two calls.
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &LockKey, mode: LockMode, until: Instant) -> bool {
        let ticket = self.0.tickets.fetch_add(1, Ordering::Relaxed);
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_default();
        if slot.take(ticket, mode) {
            return true;
        }
        slot.queue.push_back((ticket, mode));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let waited = self.0.released.wait_timeout(slots, left);
            slots = waited.unwrap_or_else(PoisonError::into_inner).0;
            // It is there as long as somebody waits.
            let slot = slots.entry(key.clone()).or_default();
            let taken = slot.take(ticket, mode);
            if !taken && Instant::now() < until {
                continue;
            }
            slot.queue.retain(|(waiting, _)| *waiting != ticket);
            if slot.is_unused() {
                slots.remove(key);
            }
            // Others may have waited for this one only.
            self.0.released.notify_all();
            return taken;
        }
    }

    fn release(&self, key: &LockKey, mode: LockMode) {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(key) else { return };
        match mode {
            LockMode::Shared => slot.readers -= 1,
            LockMode::Exclusive => slot.writer = false,
        }
        if slot.is_unused() {
            slots.remove(key);
        } else {
            self.0.released.notify_all();
        }
    }
}

impl fmt::Debug for LockTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockTable").field("len", &self.len()).finish()
    }
}

/// Locks that are held; dropping it releases them.
#[derive(Debug)]
#[must_use = "the locks are released when this is dropped"]
pub struct Locked {
    table: LockTable,
    held: Vec<(LockKey, LockMode)>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        for (key, mode) in self.held.drain(..) {
            self.table.release(&key, mode);
        }
    }
}
