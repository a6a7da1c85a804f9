//! Calls that are alive in this process while a call within them waits for somebody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::oneshot;

use super::RootCall;
use crate::identity::fingerprint::Fingerprint;
use crate::storage::bounds::{Bounds, Full};
use crate::suspension::{Grant, Suspension, SuspensionId};

/// What there may be too many of.
const WHAT: &str = "calls that are at work and wait";

/// Each of them holds its tool's state in memory.
const BOUNDS: Bounds = Bounds::per_identity(100);

/// How many calls are remembered so that the same call, made again, joins them.
const JOINABLE_MAX: usize = 1_000;

/// The living calls of one executor.
pub(crate) struct LiveCalls {
    /// Tells this executor from every other, in records of calls.
    executor: String,
    calls: Mutex<LiveCallTable>,
}

#[derive(Default)]
struct LiveCallTable {
    waiting: HashMap<SuspensionId, LiveCallEntry>,
    /// The last suspension of each caller's call that can be joined, also after it has ended: its
    /// answer may still be there for its caller.
    joinable: HashMap<Fingerprint, Suspension>,
}

struct LiveCallEntry {
    identity: String,
    living: LiveCall,
}

/// A living call whose nested call waits.
pub(super) struct LiveCall {
    pub(super) root: Arc<RootCall>,
    pub(super) grant: oneshot::Sender<Grant>,
}

impl Default for LiveCalls {
    fn default() -> Self {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let executor = format!("{}-{}-{count}", std::process::id(), since.as_nanos());
        Self { executor, calls: Mutex::default() }
    }
}

impl LiveCalls {
    /// What records of calls name this executor.
    pub(crate) fn executor(&self) -> &str {
        &self.executor
    }

    /// Notes a call that is about to wait.
    pub(super) fn add(&self, suspension: &Suspension, living: LiveCall) -> Result<(), Full> {
        let mut calls = self.lock();
        let identity = suspension.identity();
        let own = calls.waiting.values().filter(|entry| entry.identity == identity).count();
        BOUNDS.admit(WHAT, own, calls.waiting.len())?;
        let entry = LiveCallEntry { identity: identity.to_owned(), living };
        calls.waiting.insert(suspension.id().clone(), entry);
        if suspension.caller().is_joinable() {
            if calls.joinable.len() >= JOINABLE_MAX {
                let oldest = calls.joinable.iter().min_by_key(|(_, one)| one.created_at());
                let oldest = oldest.map(|(key, _)| *key);
                oldest.and_then(|key| calls.joinable.remove(&key));
            }
            calls.joinable.insert(suspension.call_key(), suspension.clone());
        }
        Ok(())
    }

    /// Takes out a call whose nested call was decided on. Of all who ask, one gets it.
    pub(super) fn take(&self, id: &SuspensionId) -> Option<LiveCall> {
        self.lock().waiting.remove(id).map(|entry| entry.living)
    }

    /// Whether any call could be joined.
    pub(crate) fn any_joinable(&self) -> bool {
        !self.lock().joinable.is_empty()
    }

    /// The last suspension of the same call, made before.
    pub(crate) fn joinable(&self, key: Fingerprint) -> Option<Suspension> {
        self.lock().joinable.get(&key).cloned()
    }

    /// Forgets a call that has its answer.
    pub(crate) fn forget(&self, key: Fingerprint) {
        self.lock().joinable.remove(&key);
    }

    fn lock(&self) -> MutexGuard<'_, LiveCallTable> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
