//! The session history: answers that a session has already got, for `dedupe: session`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::key::CacheKey;
use super::lru::Lru;
use super::size;
use crate::cache::entries::{CachedAnswer, Expiry};
use crate::cache::resource_versions::ResourceVersion;

/// Limits of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistoryLimits {
    /// Sessions. Default 10,000.
    pub(crate) sessions: usize,
    /// Answers per session. Default 1,000.
    pub(crate) entries: usize,
    /// Bytes of keys and outputs of all sessions together. Default 64 MiB.
    pub(crate) bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { sessions: 10_000, entries: 1_000, bytes: 64 * 1024 * 1024 }
    }
}

/// Successful answers per session, evicted in LRU order: within a session its answers, and among
/// sessions the whole session, or, for the bound on bytes, its answers one by one.
#[derive(Debug)]
pub(crate) struct SessionHistory {
    limits: HistoryLimits,
    state: Mutex<HistoryState>,
}

#[derive(Debug)]
struct HistoryState {
    sessions: Lru<Arc<str>, Lru<CacheKey, RememberedAnswer>>,
    bytes: usize,
}

#[derive(Debug)]
struct RememberedAnswer {
    kept: CachedAnswer,
    version: ResourceVersion,
    expires: Expiry,
    size: usize,
}

impl SessionHistory {
    pub(crate) fn new(limits: HistoryLimits) -> Self {
        Self { limits, state: Mutex::new(HistoryState { sessions: Lru::new(), bytes: 0 }) }
    }

    /// The answer that the session got to the same call, if it has not expired by `now` and nothing
    /// that it read was written since: `version` is the current version.
    pub(crate) fn get(
        &self,
        session: &str,
        key: &CacheKey,
        version: ResourceVersion,
        now: Instant,
    ) -> Option<CachedAnswer> {
        let mut state = self.lock();
        let answers = state.sessions.get(session)?;
        let answer = answers.get(key)?;
        if answer.version == version && !answer.expires.is_over(now) {
            return Some(answer.kept.clone());
        }
        let outdated = answers.remove(key);
        state.bytes -= outdated.map_or(0, |(_, answer)| answer.size);
        None
    }

    /// Stores a successful answer to a call that started at `version`.
    pub(crate) fn insert(
        &self,
        session: &str,
        key: &CacheKey,
        version: ResourceVersion,
        kept: CachedAnswer,
        expires: Expiry,
    ) {
        let size = key.size() + size::of(&kept.output);
        if size > self.limits.bytes || self.limits.entries == 0 || self.limits.sessions == 0 {
            return;
        }
        let mut state = self.lock();
        let HistoryState { sessions, bytes } = &mut *state;
        if sessions.get(session).is_none() {
            sessions.insert(session.into(), Lru::new());
        }
        // The session is now the most recently used.
        if let Some(answers) = sessions.get(session) {
            let replaced =
                answers.insert(key.clone(), RememberedAnswer { kept, version, expires, size });
            *bytes = *bytes + size - replaced.map_or(0, |answer| answer.size);
            while answers.len() > self.limits.entries {
                *bytes -= answers.pop_oldest().map_or(0, |(_, answer)| answer.size);
            }
        }
        while state.sessions.len() > self.limits.sessions {
            state.forget_oldest();
        }
        while state.bytes > self.limits.bytes {
            state.forget_oldest_answer();
        }
    }

    /// Removes a session.
    pub(crate) fn forget(&self, session: &str) {
        let mut state = self.lock();
        let forgotten = state.sessions.remove(session);
        state.account_for(forgotten);
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        let forgotten = state.sessions.drain();
        state.bytes = 0;
        drop(state);
        drop(forgotten);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HistoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryState {
    fn forget_oldest(&mut self) {
        let forgotten = self.sessions.pop_oldest();
        self.account_for(forgotten);
    }

    fn account_for(&mut self, forgotten: Option<(Arc<str>, Lru<CacheKey, RememberedAnswer>)>) {
        let Some((_, mut answers)) = forgotten else { return };
        self.bytes -= answers.drain().map(|(_, answer)| answer.size).sum::<usize>();
    }

    /// Terminates because each step removes an answer or an empty session, and without sessions
    /// there are no bytes.
    fn forget_oldest_answer(&mut self) {
        match self.sessions.oldest().and_then(Lru::pop_oldest) {
            Some((_, answer)) => self.bytes -= answer.size,
            None => self.forget_oldest(),
        }
    }
}
