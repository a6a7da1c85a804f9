//! Answers kept across calls and sessions: bounded, for a time, and only until somebody writes
//! what they were read from.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use toolcrib_tool::{Resources, ToolOutput};

use super::kept::Kept;
use super::key::{Callee, Key};
use super::ledger::{Ledger, Version};
use super::lru::Lru;
use super::size;
use super::spelling::{Names, Question, Sought, Spellings, Spelt};

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
/// One lock over plain maps: a hit shares it for some tens of nanoseconds, which no tool's work
/// comes near, and in return both bounds are exact and a write is never overtaken by the answer
/// of an earlier read. A hit changes nothing but a mark in the answer it finds: whoever makes room
/// passes over answers that are marked, once, and takes the first that nobody has asked for since.
pub(crate) struct AnswerCache {
    limits: CacheLimits,
    clock: Clock,
    hits: AtomicU64,
    misses: AtomicU64,
    names: Names,
    state: RwLock<State>,
}

struct State {
    entries: Lru<Key, Arc<Kept>>,
    ledger: Ledger,
    spellings: Spellings,
    bytes: usize,
}

impl AnswerCache {
    /// An empty cache that reads the clock of the calls.
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self::with_clock(limits, || tokio::time::Instant::now().into_std())
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
        };
        let (hits, misses, names) = Default::default();
        Self { limits, clock: Box::new(clock), hits, misses, names, state: RwLock::new(state) }
    }

    /// Whether anything is ever kept.
    pub(crate) fn is_enabled(&self) -> bool {
        self.limits.max_entries > 0 && self.limits.max_bytes > 0
    }

    /// The state of what a call would read; to be taken before the tool starts.
    pub(crate) fn version(&self, key: &Key) -> Version {
        self.read().ledger.version(key)
    }

    /// The answer kept for a call.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Kept>> {
        let found = self.peek(key);
        self.count(found.is_some());
        found
    }

    /// The answer kept for a call, or else the state of what it would read: [`get`](Self::get)
    /// and [`version`](Self::version) in one.
    pub(super) fn look(&self, key: &Key) -> Result<Arc<Kept>, Version> {
        let now = (self.clock)();
        let (found, version) = {
            let state = self.read();
            let found = state.entries.peek(key).cloned();
            (found, state.ledger.version(key))
        };
        let found = self.unless_over(found, now);
        self.count(found.is_some());
        found.ok_or(version)
    }

    /// Whether an answer is kept for a call; not counted as a look-up.
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.peek(key).is_some()
    }

    /// Like [`get`](Self::get), for the second look of one call: its miss has been counted.
    pub(super) fn get_again(&self, key: &Key) -> Option<Arc<Kept>> {
        let found = self.peek(key);
        if found.is_some() {
            self.misses.fetch_sub(1, Ordering::Relaxed);
            self.count(true);
        }
        found
    }

    /// The names of which texts may be known.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// The answer to a text, by which it is known to the same tool under the same context. Its time
    /// may be over. `callee` says which tool it is.
    ///
    /// It is asked under the lock: a locked operation waits for every read before it, and here the
    /// tool and the answer are to be waited for together.
    #[inline]
    pub(super) fn recall<'c>(
        &self,
        sought: Sought<'_>,
        callee: impl FnOnce() -> Option<&'c Callee>,
    ) -> Option<Arc<Kept>> {
        let state = self.read();
        let kept = state.spellings.find(sought, callee()?)?;
        kept.prefetch();
        Some(Arc::clone(kept))
    }

    /// An answer that was [recalled](Self::recall) serves a call that came in at `now`; counted as a
    /// hit. `false`: its time is over.
    #[inline]
    pub(super) fn take(&self, kept: &Kept, now: Instant) -> bool {
        let is_current = kept.is_current(now);
        if is_current {
            kept.mark_used();
            self.count(true);
        }
        is_current
    }

    /// Keeps the answer to a call that started when `started` was the version of what it reads, as
    /// long as the tool's policy says, and knows it by its text, unless texts would take more than
    /// their share of the bytes. Returns whether it is kept: not if the tool has no such policy, if
    /// key and output alone are over the bound, or if a writer came between.
    pub(crate) fn insert(
        &self,
        question: &Question,
        started: Version,
        output: &ToolOutput,
    ) -> bool {
        let key = question.key();
        let Some(policy) = key.definition().cache() else { return false };
        let ttl = policy.ttl().unwrap_or(self.limits.ttl);
        let size = key.size() + size::of(output);
        if ttl.is_zero() || !self.is_enabled() || size > self.limits.max_bytes {
            return false;
        }
        let expires = (self.clock)().checked_add(ttl);
        // Copied before the lock is taken: outputs may be large.
        let with_text = Kept::new(question, output, expires);
        let mut state = self.write();
        if state.ledger.version(key) != started {
            return false;
        }
        let replaced = state.remove(key);
        let texts = state.spellings.size() + question.spelt().map_or(0, Spelt::size);
        let fits =
            texts <= self.limits.max_bytes / TEXTS && with_text.size() <= self.limits.max_bytes;
        let kept = if fits { with_text } else { with_text.without_text() };
        let dropped = state.make_room(&self.limits, kept.size());
        if kept.spelt().is_some() {
            self.names.add(key.definition().name());
        }
        state.insert(kept);
        drop(state);
        drop((replaced, dropped));
        true
    }

    /// A resource has changed: drops what was read from it, now and from calls under way.
    pub(crate) fn invalidate_resource(&self, name: &str) {
        let mut state = self.write();
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
        let mut state = self.write();
        let dropped = state.entries.drain();
        state.spellings.clear();
        self.names.clear();
        state.bytes = 0;
        state.ledger.write_all();
        drop(state);
        drop(dropped);
    }

    /// What the cache holds and has done.
    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.read();
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: state.entries.len(),
            bytes: state.bytes,
        }
    }

    /// How many texts are known.
    #[cfg(test)]
    pub(super) fn known_texts(&self) -> usize {
        self.read().spellings.len()
    }

    /// How many resources the ledger knows of.
    #[cfg(test)]
    pub(super) fn known_resources(&self) -> usize {
        self.read().ledger.known()
    }

    /// The answer kept for a call, marked as used and not counted.
    fn peek(&self, key: &Key) -> Option<Arc<Kept>> {
        let now = (self.clock)();
        let found = self.read().entries.peek(key).cloned();
        self.unless_over(found, now)
    }

    /// What was found, marked as used; dropped from the cache if its time is over.
    fn unless_over(&self, found: Option<Arc<Kept>>, now: Instant) -> Option<Arc<Kept>> {
        let kept = found?;
        if kept.is_current(now) {
            kept.mark_used();
            return Some(kept);
        }
        self.write().remove_this(&kept);
        None
    }

    fn count(&self, is_hit: bool) {
        let count = if is_hit { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// A panic under the lock can only come from running out of memory; what is kept stays right.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
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
    /// Keeps an answer; there is none of its key, and there is room.
    fn insert(&mut self, kept: Kept) {
        let kept = Arc::new(kept);
        self.bytes += kept.size();
        self.ledger.add_reader(kept.key());
        self.spellings.insert(&kept);
        self.entries.insert(kept.key().clone(), kept);
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Kept>> {
        let (_, kept) = self.entries.remove(key)?;
        self.taken(&kept);
        Some(kept)
    }

    /// Takes this answer out, unless another has come in its place.
    fn remove_this(&mut self, kept: &Arc<Kept>) {
        if self.entries.peek(kept.key()).is_some_and(|known| Arc::ptr_eq(known, kept)) {
            self.remove(kept.key());
        }
    }

    /// Drops what nobody asks for until an answer of that size can come in and the bounds are kept.
    fn make_room(&mut self, limits: &CacheLimits, size: usize) -> Vec<Arc<Kept>> {
        let mut dropped = Vec::new();
        while self.entries.len() >= limits.max_entries || self.bytes + size > limits.max_bytes {
            let Some((_, kept)) = self.entries.pop_oldest_unless(|kept| kept.take_used()) else {
                break;
            };
            self.taken(&kept);
            dropped.push(kept);
        }
        dropped
    }

    /// An entry was taken out.
    fn taken(&mut self, kept: &Arc<Kept>) {
        self.bytes -= kept.size();
        self.ledger.remove_reader(kept.key());
        self.spellings.remove(kept);
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
