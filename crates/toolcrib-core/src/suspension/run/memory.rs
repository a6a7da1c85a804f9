//! A run store in memory.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_tool::BoxFuture;

use super::journal::{
    Claim, Journal, JournalEntry, JournalPage, MESSAGES_MAX, MessageNumber, RunLimits, RunRequests,
    Seq, too_many_messages,
};
use super::{RunCursor, RunId};
use crate::storage::bounds::{BoundScope, largest_holder};
use crate::storage::clock::Timestamp;
use crate::suspension::StoreError;

/// Journals in memory with bounds per identity. Finished runs, and batches whose calls have all
/// expired, make room, oldest first. An answer counts once the run is saved.
#[derive(Debug, Default)]
pub struct MemoryRuns {
    limits: RunLimits,
    kept: Mutex<HashMap<RunId, StoredRuns>>,
}

#[derive(Debug)]
struct StoredRuns {
    identity: String,
    created_at: Timestamp,
    entries: Vec<JournalEntry>,
    bytes: usize,
    /// The expiry of each waiting call.
    waits: BTreeMap<usize, Timestamp>,
    /// Whether it can go on although no call waits.
    is_open: bool,
    /// The term of the last claim.
    term: u64,
    is_claimed: bool,
    /// What others want of whoever works on it.
    requests: RunRequests,
    /// The number of the last message.
    last_message: MessageNumber,
}

impl StoredRuns {
    fn cursor(&self, id: &RunId) -> RunCursor {
        RunCursor::new(self.created_at, id.clone())
    }

    fn is_over(&self, now: Timestamp) -> bool {
        !self.is_claimed && !self.is_open && self.waits.values().all(|until| *until <= now)
    }

    fn last(&self) -> Seq {
        self.entries.len() as Seq
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

impl MemoryRuns {
    /// An empty store, within [the default limits](RunLimits::default).
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store within other limits.
    pub fn within(limits: impl Into<RunLimits>) -> Self {
        Self { limits: limits.into(), kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<RunId, StoredRuns>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn appended(
        &self,
        run: &RunId,
        after: Seq,
        entries: &[JournalEntry],
        claim: Option<&Claim>,
    ) -> Result<Seq, StoreError> {
        let mut bytes = 0;
        for (entry, seq) in entries.iter().zip(after + 1..) {
            let size = entry.to_text(seq)?.len();
            self.limits.admit(size, seq)?;
            bytes += size;
        }
        let mut kept = self.kept();
        match (kept.get(run), claim) {
            (Some(known), claim) => {
                known.check(claim)?;
                if known.last() != after {
                    return Err(StoreError::Conflict);
                }
            }
            (None, Some(_)) => return Err(StoreError::ClaimLost),
            (None, None) if after != 0 => return Err(StoreError::Conflict),
            (None, None) => {
                let Some((identity, at)) = entries.first().and_then(JournalEntry::begins) else {
                    return Ok(0);
                };
                self.make_room(&mut kept, identity, at)?;
                kept.insert(
                    run.clone(),
                    StoredRuns {
                        identity: identity.to_owned(),
                        created_at: at,
                        entries: Vec::new(),
                        bytes: 0,
                        waits: BTreeMap::new(),
                        is_open: false,
                        term: 0,
                        is_claimed: false,
                        requests: RunRequests::default(),
                        last_message: 0,
                    },
                );
            }
        }
        let Some(known) = kept.get_mut(run) else { return Err(StoreError::Conflict) };
        let taken: Vec<_> = entries.iter().filter_map(JournalEntry::takes).collect();
        let left = &mut known.requests.messages;
        if taken.iter().any(|taken| !left.iter().any(|(number, _)| number == taken)) {
            return Err(StoreError::Conflict);
        }
        left.retain(|(number, _)| !taken.contains(number));
        for entry in entries {
            match entry.waits() {
                Some((call, Some((_, until)))) => drop(known.waits.insert(call, until)),
                Some((call, None)) => drop(known.waits.remove(&call)),
                None => {}
            }
            if entry.ends() {
                known.requests.cancel = None;
                known.waits.clear();
            }
            known.is_open = entry.is_open();
        }
        known.bytes += bytes;
        known.entries.extend_from_slice(entries);
        Ok(known.last())
    }

    fn make_room(
        &self,
        kept: &mut HashMap<RunId, StoredRuns>,
        identity: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        loop {
            let own = || kept.values().filter(|run| run.identity == identity);
            let (runs, bytes) = (own().count(), own().map(|run| run.bytes).sum());
            let Err(full) = self.limits.room(runs, bytes, kept.len()) else { return Ok(()) };
            let over = || kept.iter().filter(|(_, run)| run.is_over(now));
            let owner = match full.scope {
                BoundScope::Identity => Some(identity.to_owned()),
                BoundScope::All => largest_holder(over().map(|(_, run)| run.identity.as_str())),
            };
            let oldest = over()
                .filter(|(_, run)| owner.as_deref() == Some(&run.identity))
                .min_by_key(|(_, run)| run.created_at);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return Err(full.into()) };
            kept.remove(&oldest);
        }
    }

    fn page_of(&self, run: &RunId, after: Seq, limit: usize) -> Option<JournalPage> {
        let kept = self.kept();
        let run = kept.get(run)?;
        let entries = (1..).zip(&run.entries).skip_while(|(seq, _)| *seq <= after).take(limit);
        let entries = entries.map(|(seq, entry)| (seq, entry.clone())).collect();
        Some(JournalPage::new(entries, run.last()))
    }

    fn claimed(&self, run: &RunId) -> Option<Claim> {
        let mut kept = self.kept();
        let known = kept.get_mut(run)?;
        known.term += 1;
        known.is_claimed = true;
        Some(Claim::new(run.clone(), known.term))
    }

    fn erased(&self, run: &RunId) -> Result<(), StoreError> {
        let mut kept = self.kept();
        if let Some(known) = kept.get(run) {
            known.check(None)?;
        }
        kept.remove(run);
        Ok(())
    }
}

impl Journal for MemoryRuns {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        entries: &'a [JournalEntry],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>> {
        Box::pin(ready(self.appended(run, after, entries, claim)))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<JournalPage>, StoreError>> {
        Box::pin(ready(Ok(self.page_of(run, after, limit))))
    }

    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>> {
        let kept = self.kept();
        let own = kept.iter().filter(|(_, run)| run.identity == identity);
        let mut runs: Vec<_> = own.map(|(id, run)| run.cursor(id)).collect();
        runs.retain(|run| after.is_none_or(|after| after < run));
        runs.sort();
        runs.truncate(limit);
        Box::pin(ready(Ok(runs)))
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>> {
        Box::pin(ready(Ok(self.claimed(run))))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(known) = self.kept().get_mut(claim.run())
            && known.term == claim.term()
        {
            known.is_claimed = false;
        }
        Box::pin(ready(Ok(())))
    }

    fn ask_to_cancel<'a>(
        &'a self,
        run: &'a RunId,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut kept = self.kept();
        let open = kept.get_mut(run).filter(|run| run.is_open);
        let asked = open.map(|run| run.requests.cancel = Some(reason.to_owned())).is_some();
        Box::pin(ready(Ok(asked)))
    }

    fn leave_message<'a>(
        &'a self,
        run: &'a RunId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<MessageNumber>, StoreError>> {
        let mut kept = self.kept();
        let left = kept.get_mut(run).filter(|run| run.is_open).map(|run| {
            let RunRequests { messages, .. } = &mut run.requests;
            if messages.len() >= MESSAGES_MAX {
                return Err(too_many_messages());
            }
            run.last_message += 1;
            messages.push((run.last_message, message.to_owned()));
            Ok(run.last_message)
        });
        Box::pin(ready(left.transpose()))
    }

    fn withdraw_message<'a>(
        &'a self,
        run: &'a RunId,
        message: MessageNumber,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut kept = self.kept();
        let withdrawn = kept.get_mut(run).is_some_and(|run| {
            let before = run.requests.messages.len();
            run.requests.messages.retain(|(number, _)| *number != message);
            run.requests.messages.len() < before
        });
        Box::pin(ready(Ok(withdrawn)))
    }

    fn requests<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunRequests, StoreError>> {
        let requests = self.kept().get(run).map(|run| run.requests.clone());
        Box::pin(ready(Ok(requests.unwrap_or_default())))
    }

    fn claimed_elsewhere<'a>(
        &'a self,
        _: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        // No other process reaches it.
        Box::pin(ready(Ok(None)))
    }

    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(self.erased(run)))
    }
}
