//! Runs kept in memory: gone with the process.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_tool::BoxFuture;

use super::{RunId, RunRecord, RunState, RunStore};
use crate::suspension::StoreError;

/// Runs that are kept at once.
const MAX_RUNS: usize = 10_000;

/// A store in memory. Where it is full, the oldest run that is over makes room.
#[derive(Debug, Default)]
pub struct MemoryRuns(Mutex<HashMap<RunId, RunRecord>>);

impl MemoryRuns {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<RunId, RunRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saved(&self, record: &RunRecord) -> Result<u64, StoreError> {
        let mut kept = self.kept();
        let version = kept.get(record.id()).map_or(0, RunRecord::version);
        if version != record.version() {
            return Err(StoreError::Conflict);
        }
        if version == 0 && kept.len() >= MAX_RUNS {
            let over = kept.values().filter(|run| run.state() != RunState::RequiresAction);
            let Some(oldest) = over.min_by_key(|run| run.created_at()).map(|run| run.id().clone())
            else {
                return Err(StoreError::Full { entries: kept.len() });
            };
            kept.remove(&oldest);
        }
        kept.insert(record.id().clone(), record.clone().with_version(version + 1));
        Ok(version + 1)
    }
}

impl RunStore for MemoryRuns {
    fn save<'a>(&'a self, record: &'a RunRecord) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(ready(self.saved(record)))
    }

    fn load<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        Box::pin(ready(Ok(self.kept().get(id).cloned())))
    }

    fn remove<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.kept().remove(id);
        Box::pin(ready(Ok(())))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>> {
        let kept = self.kept();
        let mut runs: Vec<_> =
            kept.values().filter(|run| run.identity() == identity).cloned().collect();
        runs.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
        Box::pin(ready(Ok(runs)))
    }
}
