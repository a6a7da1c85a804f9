//! Runs kept in memory: gone with the process.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_tool::BoxFuture;

use super::{RunCursor, RunId, RunRecord, RunStore};
use crate::bounds::{Bounds, Whose, largest_holder};
use crate::suspension::StoreError;

/// What there may be too many of.
const WHAT: &str = "runs";

/// A store in memory, within bounds per identity. Runs that are over, or whose calls have all expired,
/// make room; the oldest goes first.
#[derive(Debug, Default)]
pub struct MemoryRuns {
    bounds: Bounds,
    kept: Mutex<HashMap<RunId, RunRecord>>,
}

impl MemoryRuns {
    /// An empty store, within [the default bounds](Bounds::default).
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store within other bounds.
    pub fn within(bounds: Bounds) -> Self {
        Self { bounds, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<RunId, RunRecord>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saved(&self, record: &RunRecord) -> Result<u64, StoreError> {
        let mut kept = self.kept();
        let version = kept.get(record.id()).map_or(0, RunRecord::version);
        if version != record.version() {
            return Err(StoreError::Conflict);
        }
        if version == 0 {
            self.make_room(&mut kept, record)?;
        }
        kept.insert(record.id().clone(), record.clone().with_version(version + 1));
        Ok(version + 1)
    }

    fn make_room(
        &self,
        kept: &mut HashMap<RunId, RunRecord>,
        new: &RunRecord,
    ) -> Result<(), StoreError> {
        loop {
            let own = kept.values().filter(|run| run.identity() == new.identity()).count();
            let Err(full) = self.bounds.admit(WHAT, own, kept.len()) else { return Ok(()) };
            // The newest one knows what time it is.
            let now = new.created_at();
            let over = || kept.values().filter(|run| run.is_over(now));
            let whose = match full.whose {
                Whose::Identity => Some(new.identity().to_owned()),
                Whose::All => largest_holder(over().map(RunRecord::identity)),
            };
            let oldest = over()
                .filter(|run| whose.as_deref() == Some(run.identity()))
                .min_by_key(|run| run.created_at());
            let Some(oldest) = oldest.map(|run| run.id().clone()) else {
                return Err(full.into());
            };
            kept.remove(&oldest);
        }
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

    fn page<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>> {
        let kept = self.kept();
        let mut runs: Vec<_> = kept
            .values()
            .filter(|run| run.identity() == identity)
            .filter(|run| after.is_none_or(|after| after.is_before(run)))
            .collect();
        runs.sort_by_key(|run| (run.created_at(), run.id().clone()));
        let page = runs.into_iter().take(limit).cloned().collect();
        Box::pin(ready(Ok(page)))
    }
}
