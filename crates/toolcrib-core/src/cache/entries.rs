//! Answers kept across calls and sessions: bounded, for a time, and only until somebody writes
//! what they were read from.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_tool::{CachePolicy, Resources, ToolOutput};

use super::key::CacheKey;
use super::lru::Lru;
use super::size;
use super::spill_memo::SpillMemo;
use crate::cache::resource_versions::{ResourceLedger, ResourceVersion};

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

/// Reads the time.
type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// Successful answers of the tools whose definitions allow it, the least recently used evicted first.
///
/// One lock over plain maps, so that both bounds are exact and a write is never overtaken by the
/// answer of an earlier read.
pub(crate) struct AnswerCache {
    limits: CacheLimits,
    clock: Clock,
    state: Mutex<CacheState>,
}

struct CacheState {
    entries: Lru<CacheKey, CacheEntry>,
    ledger: ResourceLedger,
    bytes: usize,
    hits: u64,
    misses: u64,
}

/// An answer that is kept. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct CachedAnswer {
    pub(crate) output: Arc<ToolOutput>,
    /// Where its text was spilled, if it was too long for its callers.
    pub(crate) spilled: Arc<SpillMemo>,
}

#[cfg(test)]
impl CachedAnswer {
    /// An answer that was not spilled so far.
    pub(super) fn new(output: Arc<ToolOutput>) -> Self {
        Self { output, spilled: Arc::default() }
    }
}

/// Until when an answer is used; `None`: later than the clock can say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry(Option<Instant>);

impl Expiry {
    pub(super) fn is_over(self, now: Instant) -> bool {
        self.0.is_some_and(|expires| now >= expires)
    }
}

/// One answer in the cache.
#[derive(Debug)]
struct CacheEntry {
    kept: CachedAnswer,
    expires: Expiry,
    /// The bytes of key and output.
    size: usize,
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
        let state = CacheState {
            entries: Lru::new(),
            ledger: ResourceLedger::default(),
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
    pub(crate) fn version(&self, key: &CacheKey) -> ResourceVersion {
        self.lock().ledger.version(key)
    }

    /// The answer kept for a call.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<CachedAnswer> {
        let mut state = self.lock();
        let found = state.find(key, self.now());
        match &found {
            Some(_) => state.hits += 1,
            None => state.misses += 1,
        }
        found
    }

    /// Whether an answer is kept for a call; not counted as a look-up.
    pub(super) fn holds(&self, key: &CacheKey) -> bool {
        self.lock().find(key, (self.clock)()).is_some()
    }

    /// Like [`get`](Self::get), for the second look of one call: its miss has been counted.
    pub(super) fn get_again(&self, key: &CacheKey) -> Option<CachedAnswer> {
        let mut state = self.lock();
        let found = state.find(key, self.now());
        if found.is_some() {
            state.misses -= 1;
            state.hits += 1;
        }
        found
    }

    /// Keeps the answer to a call that started when `started` was the version of what it reads, as
    /// long as the tool's policy says. Returns whether it is kept: not if the tool has no such
    /// policy, if key and output are over the bound, or if a writer came between.
    pub(crate) fn insert(
        &self,
        key: &CacheKey,
        started: ResourceVersion,
        kept: &CachedAnswer,
    ) -> bool {
        let size = key.size() + size::of(&kept.output);
        if key.definition().cache().is_none() || size > self.limits.max_bytes {
            return false;
        }
        let Some(expires) = self.expiry(key) else { return false };
        let answer = CacheEntry { kept: kept.clone(), expires, size };
        let mut state = self.lock();
        if state.ledger.version(key) != started {
            return false;
        }
        let replaced = state.remove(key);
        let evicted = state.make_room(&self.limits, size);
        state.insert(key, answer);
        // Outputs may be large: freed when others can get on.
        drop(state);
        drop((replaced, evicted));
        true
    }

    /// Until when an answer that is given now may be used again; `None`: not at all.
    pub(super) fn expiry(&self, key: &CacheKey) -> Option<Expiry> {
        let own = key.definition().cache().and_then(CachePolicy::ttl);
        let ttl = own.unwrap_or(self.limits.ttl);
        (self.is_enabled() && !ttl.is_zero()).then(|| Expiry(self.now().checked_add(ttl)))
    }

    /// The time by the cache's clock.
    pub(super) fn now(&self) -> Instant {
        (self.clock)()
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
    pub(crate) fn writing(self: &Arc<Self>, resources: &Resources) -> Option<PendingWrite> {
        let written = resources.written();
        (!written.is_empty())
            .then(|| PendingWrite { cache: Arc::clone(self), resources: written.into() })
    }

    /// Drops everything, the answers of calls under way too.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let dropped = state.entries.drain();
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

    /// How many resources the ledger knows of.
    #[cfg(test)]
    pub(super) fn known_resources(&self) -> usize {
        self.lock().ledger.known()
    }

    /// A panic under the lock can only come from running out of memory; what is kept stays right.
    fn lock(&self) -> MutexGuard<'_, CacheState> {
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

impl CacheState {
    /// The answer of a key, which is the most recently used from now on; removed if it has expired.
    fn find(&mut self, key: &CacheKey, now: Instant) -> Option<CachedAnswer> {
        let answer = self.entries.get(key)?;
        if !answer.expires.is_over(now) {
            return Some(answer.kept.clone());
        }
        self.remove(key);
        None
    }

    /// Keeps an answer; there is none of its key, and there is room.
    fn insert(&mut self, key: &CacheKey, answer: CacheEntry) {
        self.bytes += answer.size;
        self.ledger.add_reader(key);
        self.entries.insert(key.clone(), answer);
    }

    fn remove(&mut self, key: &CacheKey) -> Option<CacheEntry> {
        let (key, answer) = self.entries.remove(key)?;
        self.taken(&key, &answer);
        Some(answer)
    }

    /// Evicts answers until one of that size can come in and the bounds are kept.
    fn make_room(&mut self, limits: &CacheLimits, size: usize) -> Vec<CacheEntry> {
        let mut evicted = Vec::new();
        while self.entries.len() >= limits.max_entries || self.bytes + size > limits.max_bytes {
            let Some((key, answer)) = self.entries.pop_oldest() else { break };
            self.taken(&key, &answer);
            evicted.push(answer);
        }
        evicted
    }

    /// An entry was taken out.
    fn taken(&mut self, key: &CacheKey, answer: &CacheEntry) {
        self.bytes -= answer.size;
        self.ledger.remove_reader(key);
    }
}

/// Says that a writer is at work; see [`AnswerCache::writing`].
///
/// Every clone that is dropped counts as a write: work that outlives its call, such as a blocking
/// tool past its time limit, holds one of its own.
#[derive(Debug, Clone)]
#[must_use = "what was read is dropped when this is"]
pub(crate) struct PendingWrite {
    cache: Arc<AnswerCache>,
    resources: Arc<[String]>,
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        for name in &*self.resources {
            self.cache.invalidate_resource(name);
        }
    }
}
