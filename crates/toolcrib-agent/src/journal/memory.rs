//! Journals in memory.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_core::bounds::Bounds;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{Claim, RunCursor, RunId, Seq};
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

use super::Journal;
use crate::{JournalEntry, JournalRow};

/// Journals in memory, with bounds per identity. Finished runs make room, oldest first. They end with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    bounds: Bounds,
    runs: Mutex<HashMap<RunId, StoredRun>>,
}

#[derive(Debug)]
struct StoredRun {
    identity: String,
    created_at: Timestamp,
    /// As text, as a database stores them: what is read has been written and read.
    rows: Vec<String>,
    is_over: bool,
    /// The term of the last claim.
    term: u64,
    is_claimed: bool,
}

impl StoredRun {
    fn cursor(&self, id: &RunId) -> RunCursor {
        RunCursor::new(self.created_at, id.clone())
    }

    fn check(&self, claim: Option<&Claim>) -> Result<(), StoreError> {
        match claim {
            Some(claim) if !self.is_claimed || claim.term() != self.term => {
                Err(StoreError::ClaimLost)
            }
            None if self.is_claimed => Err(StoreError::Claimed { process: std::process::id() }),
            _ => Ok(()),
        }
    }
}

impl MemoryJournal {
    /// An empty store with the default bounds.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with other bounds.
    pub fn within(bounds: Bounds) -> Self {
        Self { bounds, runs: Mutex::default() }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, StoredRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn appended(
        &self,
        run: &RunId,
        after: Seq,
        rows: &[JournalRow],
        claim: Option<&Claim>,
    ) -> Result<Seq, StoreError> {
        let texts = rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| StoreError::Failed {
            action: "append to the journal of a run".to_owned(),
            source: error.into(),
        })?;
        let mut runs = self.runs();
        match runs.get(run) {
            Some(known) => known.check(claim)?,
            None if claim.is_some() => return Err(StoreError::ClaimLost),
            None => {
                let Some(JournalRow { at, entry: JournalEntry::Started { identity, .. } }) =
                    rows.first()
                else {
                    return Err(StoreError::Conflict);
                };
                self.make_room(&mut runs, identity)?;
                let stored = StoredRun {
                    identity: identity.clone(),
                    created_at: *at,
                    rows: Vec::new(),
                    is_over: false,
                    term: 0,
                    is_claimed: false,
                };
                runs.insert(run.clone(), stored);
            }
        }
        let Some(known) = runs.get_mut(run) else { return Err(StoreError::Conflict) };
        if known.rows.len() as Seq != after {
            return Err(StoreError::Conflict);
        }
        if let Some(last) = rows.last() {
            known.is_over = matches!(last.entry, JournalEntry::Finished { .. });
        }
        known.rows.extend(texts);
        Ok(known.rows.len() as Seq)
    }

    fn make_room(
        &self,
        runs: &mut HashMap<RunId, StoredRun>,
        identity: &str,
    ) -> Result<(), StoreError> {
        loop {
            let own = runs.values().filter(|run| run.identity == identity).count();
            let Err(full) = self.bounds.admit("runs", own, runs.len()) else { return Ok(()) };
            // A run of the identity itself makes room first, so that it rarely costs others theirs.
            let oldest = runs
                .iter()
                .filter(|(_, run)| run.is_over && !run.is_claimed)
                .min_by_key(|(_, run)| (run.identity != identity, run.created_at))
                .filter(|(_, run)| run.identity == identity || own < self.bounds.per_identity);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return Err(full.into()) };
            runs.remove(&oldest);
        }
    }

    fn page(
        &self,
        run: &RunId,
        after: Seq,
        limit: usize,
    ) -> Result<Option<Vec<JournalRow>>, StoreError> {
        let runs = self.runs();
        let Some(known) = runs.get(run) else { return Ok(None) };
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let rows = known.rows.iter().skip(after).take(limit);
        let rows = rows.map(|text| serde_json::from_str(text)).collect::<Result<_, _>>();
        let corrupt = |error: serde_json::Error| StoreError::Corrupt {
            place: format!("the journal of the run {run}"),
            problem: error.to_string(),
        };
        rows.map(Some).map_err(corrupt)
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        rows: &'a [JournalRow],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>> {
        Box::pin(ready(self.appended(run, after, rows, claim)))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Vec<JournalRow>>, StoreError>> {
        Box::pin(ready(self.page(run, after, limit)))
    }

    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>> {
        let kept = self.runs();
        let own = kept.iter().filter(|(_, run)| run.identity == identity);
        let mut runs: Vec<_> = own.map(|(id, run)| run.cursor(id)).collect();
        runs.retain(|run| after.is_none_or(|after| after < run));
        runs.sort();
        runs.truncate(limit);
        Box::pin(ready(Ok(runs)))
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>> {
        let claim = self.runs().get_mut(run).map(|known| {
            known.term += 1;
            known.is_claimed = true;
            Claim::new(run.clone(), known.term)
        });
        Box::pin(ready(Ok(claim)))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(known) = self.runs().get_mut(claim.run())
            && known.term == claim.term()
        {
            known.is_claimed = false;
        }
        Box::pin(ready(Ok(())))
    }

    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut runs = self.runs();
        let checked = runs.get(run).map_or(Ok(()), |known| known.check(None));
        if checked.is_ok() {
            runs.remove(run);
        }
        Box::pin(ready(checked))
    }
}
