//! Answers kept across calls and sessions: bounded, for a time, and only until somebody writes
//! what they were read from.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_tool::{Resources, ToolOutput};

use super::key::{Callee, Key};
use super::ledger::{Ledger, Version};
use super::lru::Lru;
use super::size;
use super::spelling::{Spellings, Spelt};

/// How much is kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheLimits {
    /// Answers. Default 10,000; 0 keeps none.
    pub(crate) max_entries: usize,
    /// Bytes of keys and outputs. Default 64 MiB; a larger output is not kept.
    pub(crate) max_bytes: usize,
    /// How long, for tools that do not say. Default 300 s.
    pub(crate) ttl: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { max_entries: 10_000, max_bytes: 64 * 1024 * 1024, ttl: Duration::from_secs(300) }
    }
}

/// What the cache holds and has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Look-ups that found an answer.
    pub hits: u64,
    /// Look-ups that found none, or one whose time was over.
    pub misses: u64,
    /// Answers kept now, those among them whose time is over and that nobody asked for since.
    pub entries: usize,
    /// Bytes of their keys and outputs.
    pub bytes: usize,
}

/// The texts of answers take this part of the bytes at most: a text spares a call its reading, an
/// answer its run.
const TEXTS: usize = 4;

/// Reads the time.
type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// Successful answers of the tools whose definitions allow it.
///
/// One lock over plain maps: a hit holds it for some tens of nanoseconds, which no tool's work
/// comes near, and in return both bounds are exact and a write is never overtaken by the answer
/// of an earlier read.
pub(crate) struct AnswerCache {
    limits: CacheLimits,
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    entries: Lru<Key, Entry>,
    ledger: Ledger,
    spellings: Spellings,
    bytes: usize,
    hits: u64,
    misses: u64,
}

struct Entry {
    output: Arc<ToolOutput>,
    /// `None`: later than the clock can say.
    expires: Option<Instant>,
    /// The text that was answered, if it is to be known again.
    spelt: Option<Spelt>,
    size: usize,
}

impl AnswerCache {
    /// An empty cache that reads the system's monotonic clock.
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self::with_clock(limits, Instant::now)
    }

    /// An empty cache with a clock of the caller's.
    pub(crate) fn with_clock(
        limits: CacheLimits,
        clock: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        let state = State {
            entries: Lru::new(),
            ledger: Ledger::default(),
            spellings: Spellings::default(),
            bytes: 0,
            hits: 0,
            misses: 0,
        };
        Self { limits, clock: Box::new(clock), state: Mutex::new(state) }
    }

    /// Whether anything is ever kept.
    pub(crate) fn is_enabled(&self) -> bool {
        self.limits.max_entries > 0 && self.limits.max_bytes > 0
    }

    /// The state of what a call would read; to be taken before the tool starts.
    pub(crate) fn version(&self, key: &Key) -> Version {
        self.lock().ledger.version(key)
    }

    /// The answer kept for a call.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<ToolOutput>> {
        let now = (self.clock)();
        self.lock().get_counted(key, now)
    }

    /// The answer kept for a call, or else the state of what it would read: [`get`](Self::get)
    /// and [`version`](Self::version) in one.
    pub(super) fn look(&self, key: &Key) -> Result<Arc<ToolOutput>, Version> {
        let now = (self.clock)();
        let mut state = self.lock();
        state.get_counted(key, now).ok_or_else(|| state.ledger.version(key))
    }

    /// Whether an answer is kept for a call; not counted as a look-up.
    pub(super) fn holds(&self, key: &Key) -> bool {
        let now = (self.clock)();
        self.lock().get(key, now).is_some()
    }

    /// Like [`get`](Self::get), for the second look of one call: its miss has been counted.
    pub(super) fn get_again(&self, key: &Key) -> Option<Arc<ToolOutput>> {
        let now = (self.clock)();
        let mut state = self.lock();
        let found = state.get(key, now);
        if found.is_some() {
            state.misses -= 1;
            state.hits += 1;
        }
        found
    }

    /// Keeps the answer to a call that started when `started` was the version of what it reads,
    /// as long as the tool's policy says. Returns whether it is kept: not if the tool has no such
    /// policy, if the output alone is over the bound, or if a writer came between.
    pub(crate) fn insert(&self, key: &Key, started: Version, output: Arc<ToolOutput>) -> bool {
        let Some(policy) = key.definition().cache() else { return false };
        let ttl = policy.ttl().unwrap_or(self.limits.ttl);
        let size = key.size() + size::of(&output);
        if ttl.is_zero() || !self.is_enabled() || size > self.limits.max_bytes {
            return false;
        }
        let expires = (self.clock)().checked_add(ttl);
        let mut state = self.lock();
        if state.ledger.version(key) != started {
            return false;
        }
        state.remove(key);
        state.ledger.add_reader(key);
        state.entries.insert(key.clone(), Entry { output, expires, spelt: None, size });
        state.bytes += size;
        state.shrink(&self.limits);
        true
    }

    /// Knows the text again that a kept answer answers, as long as that is kept. Nothing if it has
    /// gone already, or if texts would take more than their share of the bytes.
    pub(super) fn spell(&self, spelt: &Spelt) {
        let mut state = self.lock();
        let State { entries, spellings, bytes, .. } = &mut *state;
        let Some(entry) = entries.get(spelt.key()) else { return };
        let size = spelt.size();
        if entry.spelt.is_some() || spellings.size() + size > self.limits.max_bytes / TEXTS {
            return;
        }
        *bytes += size;
        entry.size += size;
        entry.spelt = Some(spelt.clone());
        spellings.insert(spelt.clone());
        state.shrink(&self.limits);
    }

    /// What a text came to whose answer is kept.
    pub(super) fn recall(&self, callee: &Callee, text: &str, context: &str) -> Option<Spelt> {
        self.lock().spellings.find(callee, text, context).cloned()
    }

    /// A resource has changed: drops what was read from it, now and from calls under way.
    pub(crate) fn invalidate_resource(&self, name: &str) {
        let mut state = self.lock();
        let outdated = state.ledger.write(name);
        let dropped: Vec<_> = outdated.iter().filter_map(|key| state.remove(key)).collect();
        // Outputs may be large: freed when others can get on.
        drop(state);
        drop(dropped);
    }

    /// To be held while a tool that writes these resources runs; what was read from them is
    /// dropped when the hold ends, however that comes about. `None` if it writes none.
    pub(crate) fn writing(self: &Arc<Self>, resources: &Resources) -> Option<Writing> {
        let written = resources.written();
        (!written.is_empty())
            .then(|| Writing { cache: Arc::clone(self), resources: written.into() })
    }

    /// Drops everything, the answers of calls under way too.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let dropped = state.entries.drain();
        state.spellings.clear();
        state.bytes = 0;
        state.ledger.write_all();
        drop(state);
        drop(dropped);
    }

    /// What the cache holds and has done.
    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.lock();
        CacheStats {
            hits: state.hits,
            misses: state.misses,
            entries: state.entries.len(),
            bytes: state.bytes,
        }
    }

    /// How many texts are known.
    #[cfg(test)]
    pub(super) fn known_texts(&self) -> usize {
        self.lock().spellings.len()
    }

    /// How many resources the ledger knows of.
    #[cfg(test)]
    pub(super) fn known_resources(&self) -> usize {
        self.lock().ledger.known()
    }

    /// A panic under the lock can only come from running out of memory; what is kept stays right.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AnswerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerCache")
            .field("limits", &self.limits)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl State {
    /// A look that counts as a hit or a miss.
    fn get_counted(&mut self, key: &Key, now: Instant) -> Option<Arc<ToolOutput>> {
        let found = self.get(key, now);
        if found.is_some() {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        found
    }

    fn get(&mut self, key: &Key, now: Instant) -> Option<Arc<ToolOutput>> {
        let entry = self.entries.get(key)?;
        if entry.expires.is_some_and(|expires| expires <= now) {
            self.remove(key);
            return None;
        }
        Some(Arc::clone(&entry.output))
    }

    fn remove(&mut self, key: &Key) -> Option<(Key, Entry)> {
        let (key, entry) = self.entries.remove(key)?;
        self.taken(&key, &entry);
        Some((key, entry))
    }

    /// Drops what was used least recently until the bounds are kept.
    fn shrink(&mut self, limits: &CacheLimits) {
        while self.entries.len() > limits.max_entries || self.bytes > limits.max_bytes {
            let Some((key, entry)) = self.entries.pop_oldest() else { break };
            self.taken(&key, &entry);
        }
    }

    /// An entry was taken out.
    fn taken(&mut self, key: &Key, entry: &Entry) {
        self.bytes -= entry.size;
        self.ledger.remove_reader(key);
        if let Some(spelt) = &entry.spelt {
            self.spellings.remove(spelt);
        }
    }
}

/// Says that a writer is at work; see [`AnswerCache::writing`].
///
/// Every clone that is dropped counts as a write: work that outlives its call, such as a blocking
/// tool past its time limit, holds one of its own.
#[derive(Debug, Clone)]
#[must_use = "what was read is dropped when this is"]
pub(crate) struct Writing {
    cache: Arc<AnswerCache>,
    resources: Arc<[String]>,
}

impl Drop for Writing {
    fn drop(&mut self) {
        for name in &*self.resources {
            self.cache.invalidate_resource(name);
        }
    }
}
