//! The answer cache across calls and sessions: bounded, with a time to live, and invalidated when a
//! resource that was read is written.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_tool::{CachePolicy, Resources, ToolOutput};

use super::key::CacheKey;
use super::lru::Lru;
use super::size;
use super::spill_memo::SpillMemo;
use crate::cache::resource_versions::{ResourceLedger, ResourceVersion};

/// Limits of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheLimits {
    /// Number of answers. Default 10,000; 0 disables the cache.
    pub(crate) max_entries: usize,
    /// Bytes of keys and outputs. Default 64 MiB; a larger output is not cached.
    pub(crate) max_bytes: usize,
    /// Time to live for tools that state none. Default 300 s.
    pub(crate) ttl: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { max_entries: 10_000, max_bytes: 64 * 1024 * 1024, ttl: Duration::from_secs(300) }
    }
}

/// Statistics of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Cache hits.
    pub hits: u64,
    /// Cache misses, including expired entries.
    pub misses: u64,
    /// Current entries, including expired ones that were not looked up since.
    pub entries: usize,
    /// Bytes of their keys and outputs.
    pub bytes: usize,
}

/// Reads the time.
type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

/// An LRU cache of successful answers, for tools whose definitions allow it.
///
/// One lock over plain maps, so that both bounds are exact and the answer of an earlier read is
/// never stored after a write.
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

/// A cached answer. Cloning it is cheap.
#[derive(Debug, Clone)]
pub(crate) struct CachedAnswer {
    pub(crate) output: Arc<ToolOutput>,
    /// Where its text was spilled, if it was too long.
    pub(crate) spilled: Arc<SpillMemo>,
}

#[cfg(test)]
impl CachedAnswer {
    /// An answer that was not spilled yet.
    pub(super) fn new(output: Arc<ToolOutput>) -> Self {
        Self { output, spilled: Arc::default() }
    }
}

/// When an answer expires; `None` if that is beyond the range of the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expiry(Option<Instant>);

impl Expiry {
    pub(super) fn is_over(self, now: Instant) -> bool {
        self.0.is_some_and(|expires| now >= expires)
    }
}

/// An entry of the cache.
#[derive(Debug)]
struct CacheEntry {
    kept: CachedAnswer,
    expires: Expiry,
    /// The bytes of key and output.
    size: usize,
}

impl AnswerCache {
    /// An empty cache on tokio's clock.
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self::with_clock(limits, || tokio::time::Instant::now().into_std())
    }

    /// An empty cache with a custom clock.
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

    /// Whether the cache stores anything.
    pub(crate) fn is_enabled(&self) -> bool {
        self.limits.max_entries > 0 && self.limits.max_bytes > 0
    }

    /// The version of the resources that a call reads; get it before the tool starts.
    pub(crate) fn version(&self, key: &CacheKey) -> ResourceVersion {
        self.lock().ledger.version(key)
    }

    /// The cached answer of a call.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<CachedAnswer> {
        let mut state = self.lock();
        let found = state.find(key, self.now());
        match &found {
            Some(_) => state.hits += 1,
            None => state.misses += 1,
        }
        found
    }

    /// Whether a call has a cached answer; not counted as a lookup.
    pub(super) fn holds(&self, key: &CacheKey) -> bool {
        self.lock().find(key, (self.clock)()).is_some()
    }

    /// Like [`get`](Self::get), for the second lookup of one call, whose miss has been counted
    /// already.
    pub(super) fn get_again(&self, key: &CacheKey) -> Option<CachedAnswer> {
        let mut state = self.lock();
        let found = state.find(key, self.now());
        if found.is_some() {
            state.misses -= 1;
            state.hits += 1;
        }
        found
    }

    /// Stores the answer to a call that started at version `started` of what it reads, for the
    /// tool's time to live. Returns whether it was stored: not if the tool has no cache policy, if
    /// key and output exceed the bound, or if a resource was written in between.
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
        // Outputs may be large: freed outside the lock.
        drop(state);
        drop((replaced, evicted));
        true
    }

    /// When an answer stored now expires; `None` if it must not be cached.
    pub(super) fn expiry(&self, key: &CacheKey) -> Option<Expiry> {
        let own = key.definition().cache().and_then(CachePolicy::ttl);
        let ttl = own.unwrap_or(self.limits.ttl);
        (self.is_enabled() && !ttl.is_zero()).then(|| Expiry(self.now().checked_add(ttl)))
    }

    /// The time by the cache's clock.
    pub(super) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Invalidates the answers that were read from a resource, including those of running calls.
    pub(crate) fn invalidate_resource(&self, name: &str) {
        let mut state = self.lock();
        let outdated = state.ledger.write(name);
        let dropped: Vec<_> = outdated.iter().filter_map(|key| state.remove(key)).collect();
        // Outputs may be large: freed outside the lock.
        drop(state);
        drop(dropped);
    }

    /// A guard to hold while a tool that writes these resources runs. Dropping it invalidates what
    /// was read from them. `None` if the tool writes none.
    pub(crate) fn writing(self: &Arc<Self>, resources: &Resources) -> Option<PendingWrite> {
        let written = resources.written();
        (!written.is_empty())
            .then(|| PendingWrite { cache: Arc::clone(self), resources: written.into() })
    }

    /// Invalidates everything, including the answers of running calls.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let dropped = state.entries.drain();
        state.bytes = 0;
        state.ledger.write_all();
        drop(state);
        drop(dropped);
    }

    /// Statistics of the cache.
    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.lock();
        CacheStats {
            hits: state.hits,
            misses: state.misses,
            entries: state.entries.len(),
            bytes: state.bytes,
        }
    }

    /// The number of resources in the ledger.
    #[cfg(test)]
    pub(super) fn known_resources(&self) -> usize {
        self.lock().ledger.known()
    }

    /// A panic under the lock can only come from running out of memory; the state stays consistent.
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
    /// The answer of a key, which becomes the most recently used; removed if it has expired.
    fn find(&mut self, key: &CacheKey, now: Instant) -> Option<CachedAnswer> {
        let answer = self.entries.get(key)?;
        if !answer.expires.is_over(now) {
            return Some(answer.kept.clone());
        }
        self.remove(key);
        None
    }

    /// Inserts an answer. The key must be absent, and there must be room.
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

    /// Evicts answers until there is room for one of this size.
    fn make_room(&mut self, limits: &CacheLimits, size: usize) -> Vec<CacheEntry> {
        let mut evicted = Vec::new();
        while self.entries.len() >= limits.max_entries || self.bytes + size > limits.max_bytes {
            let Some((key, answer)) = self.entries.pop_oldest() else { break };
            self.taken(&key, &answer);
            evicted.push(answer);
        }
        evicted
    }

    /// Updates the counters after an entry was removed.
    fn taken(&mut self, key: &CacheKey, answer: &CacheEntry) {
        self.bytes -= answer.size;
        self.ledger.remove_reader(key);
    }
}

/// A write in progress; see [`AnswerCache::writing`].
///
/// Dropping any clone counts as a write: work that outlives its call, such as a blocking tool past
/// its time limit, holds its own clone.
#[derive(Debug, Clone)]
#[must_use = "dropping it invalidates cached answers"]
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
