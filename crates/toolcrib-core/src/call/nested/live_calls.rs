//! Calls that stay alive in this process while a nested call waits for somebody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::oneshot;

use super::RootCall;
use crate::identity::fingerprint::Fingerprint;
use crate::storage::bounds::{Bounds, Full};
use crate::suspension::{Grant, Suspension, SuspensionId};

/// What the bounds count, for error messages.
const WHAT: &str = "running calls that wait";

/// Each live call holds its tool's state in memory.
const BOUNDS: Bounds = Bounds::per_identity(100);

/// How many calls are remembered so that the same call, made again, joins them.
const JOINABLE_MAX: usize = 1_000;

/// The live calls of one executor.
pub(crate) struct LiveCalls {
    /// Identifies this executor in stored calls.
    executor: String,
    calls: Mutex<LiveCallTable>,
}

#[derive(Default)]
struct LiveCallTable {
    waiting: HashMap<SuspensionId, LiveCallEntry>,
    /// The last suspension of each call that can be joined, even after it has ended: its caller may
    /// not have fetched the answer yet.
    joinable: HashMap<Fingerprint, Suspension>,
}

struct LiveCallEntry {
    identity: String,
    living: LiveCall,
}

/// A live call whose nested call waits.
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
    /// The id of this executor in stored calls.
    pub(crate) fn executor(&self) -> &str {
        &self.executor
    }

    /// Adds a call that is about to wait.
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

    /// Removes a call whose nested call was decided on. Exactly one of several callers gets it.
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

    /// Removes a call whose answer was fetched.
    pub(crate) fn forget(&self, key: Fingerprint) {
        self.lock().joinable.remove(&key);
    }

    fn lock(&self) -> MutexGuard<'_, LiveCallTable> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
