//! Locks of files: shared for readers, exclusive for writers.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Identifies a file by its folder's device and inode and by its name. The file's own inode is not
/// suitable, because writing replaces it; a path is not either, because several paths lead to one
/// file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    /// The folder's device.
    pub device: u64,
    /// The folder's inode.
    pub folder: u64,
    /// The name in the folder.
    pub name: String,
}

/// Whether others may hold the lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// Other readers may hold it too.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

/// The locks of files in use. Clones share the same table.
///
/// The table contains a name only while somebody holds or awaits its lock. Locks are granted in
/// order of arrival; adjacent readers get the lock together. Locks apply only between users of one
/// table, not to other programs.
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
    /// One condition variable for all locks: waiting is rare, and a woken thread checks again.
    released: Condvar,
}

/// A lock that somebody holds or awaits.
#[derive(Default)]
struct LockEntry {
    readers: usize,
    writer: bool,
    /// The waiting requests, in order of arrival.
    queue: VecDeque<(u64, LockMode)>,
}

impl LockEntry {
    /// Grants the lock if its holders, and the requests that came before, allow it.
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

    /// The table of this process, which is the default.
    pub fn of_process() -> Self {
        static TABLE: OnceLock<LockTable> = OnceLock::new();
        TABLE.get_or_init(Self::default).clone()
    }

    /// Takes all locks or none, in the order of their keys, which prevents deadlocks. A key that
    /// occurs twice is locked once, in the stronger mode. Blocks the thread until the deadline at
    /// most; `None` if it was not successful.
    ///
    /// The holder of a lock must not ask for more locks: it could wait for itself.
    pub fn lock(
        &self,
        keys: impl IntoIterator<Item = (LockKey, LockMode)>,
        until: Instant,
    ) -> Option<Locked> {
        let mut keys: Vec<_> = keys.into_iter().collect();
        // The stronger of two equal keys comes first and is kept.
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

    /// The number of files whose lock somebody holds or awaits.
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
        // No code panics while it holds the mutex, and every state is consistent between two calls.
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
            // The entry exists as long as somebody waits.
            let slot = slots.entry(key.clone()).or_default();
            let taken = slot.take(ticket, mode);
            if !taken && Instant::now() < until {
                continue;
            }
            slot.queue.retain(|(waiting, _)| *waiting != ticket);
            if slot.is_unused() {
                slots.remove(key);
            }
            // Other requests may have waited only for this one.
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
