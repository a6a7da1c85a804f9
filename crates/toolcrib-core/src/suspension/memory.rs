//! A suspension store in memory.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_tool::BoxFuture;

use super::{Resolved, Settled, StoreError, Suspension, SuspensionId, SuspensionStore};
use crate::identity::fingerprint::Fingerprint;
use crate::storage::bounds::{BoundScope, Bounds, Full, largest_holder};
use crate::storage::clock::Timestamp;

/// What the bounds count, for error messages.
const WHAT: &str = "calls that wait";

/// A store in memory with bounds per identity. Expired calls make room first.
#[derive(Debug, Default)]
pub struct MemorySuspensions {
    bounds: Bounds,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    waiting: HashMap<SuspensionId, Suspension>,
    settled: HashMap<SuspensionId, Settled>,
    /// How resolved calls were resolved.
    resolved: HashMap<SuspensionId, Resolved>,
    by_call: ByCall,
}

/// The calls that can be joined, by call key.
#[derive(Debug, Default)]
struct ByCall(HashMap<Fingerprint, Vec<SuspensionId>>);

impl ByCall {
    fn add(&mut self, suspension: &Suspension) {
        if suspension.caller().is_joinable() {
            let ids = self.0.entry(suspension.call_key()).or_default();
            if !ids.contains(suspension.id()) {
                ids.push(suspension.id().clone());
            }
        }
    }

    fn ids(&self, key: Fingerprint) -> &[SuspensionId] {
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }
}

impl Entries {
    fn remove_waiting(&mut self, id: &SuspensionId) -> Option<Suspension> {
        let removed = self.waiting.remove(id)?;
        self.forget_call(&removed);
        Some(removed)
    }

    fn remove_settled(&mut self, id: &SuspensionId) -> Option<Settled> {
        let removed = self.settled.remove(id)?;
        self.forget_call(removed.suspension());
        Some(removed)
    }

    /// Removes the join entry of a call that is gone from both tables.
    fn forget_call(&mut self, gone: &Suspension) {
        let id = gone.id();
        if !gone.caller().is_joinable()
            || self.waiting.contains_key(id)
            || self.settled.contains_key(id)
        {
            return;
        }
        let key = gone.call_key();
        if let Some(ids) = self.by_call.0.get_mut(&key) {
            ids.retain(|one| one != id);
            if ids.is_empty() {
                self.by_call.0.remove(&key);
            }
        }
    }

    fn same_call(&self, call: &Suspension, now: Timestamp) -> Option<&Suspension> {
        let others = || self.by_call.ids(call.call_key()).iter().filter(|id| *id != call.id());
        let settled = others().filter_map(|id| self.settled.get(id));
        let settled = settled.filter(|one| !one.is_old(now)).min_by_key(|one| one.decided_at());
        let waiting = || {
            let waiting = others().filter_map(|id| self.waiting.get(id));
            waiting.filter(|one| !one.is_expired(now)).min_by_key(|one| one.created_at())
        };
        settled.map(Settled::suspension).or_else(waiting)
    }
}

impl MemorySuspensions {
    /// An empty store, within [the default bounds](Bounds::default).
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with other bounds, which apply to waiting calls and to unfetched outcomes.
    pub fn within(bounds: Bounds) -> Self {
        Self { bounds, entries: Mutex::default() }
    }

    fn sorted(&self, wanted: impl Fn(&Suspension) -> bool) -> Vec<Suspension> {
        let entries = self.entries();
        let mut found: Vec<_> =
            entries.waiting.values().filter(|one| wanted(one)).cloned().collect();
        found.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
        found
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, suspension: &Suspension) -> Result<(), Full> {
        let mut entries = self.entries();
        let kept = &entries.waiting;
        let is_own = |one: &Suspension| one.identity() == suspension.identity();
        let own = |kept: &HashMap<_, Suspension>| kept.values().filter(|one| is_own(one)).count();
        let counts = |full: &Full, one: &Suspension| full.scope == BoundScope::All || is_own(one);
        // Uses the newest call's time as the current time.
        let now = suspension.created_at();
        if let Err(full) = self.bounds.admit(WHAT, own(kept), kept.len()) {
            let old = kept
                .values()
                .filter(|one| counts(&full, one) && one.is_expired(now))
                .map(|old| old.id().clone());
            for id in old.collect::<Vec<_>>() {
                entries.remove_waiting(&id);
            }
        }
        let kept = &entries.waiting;
        self.bounds.admit(WHAT, own(kept), kept.len()).map_err(|full| {
            let waits = kept.values().filter(|one| counts(&full, one));
            match waits.map(Suspension::expires_at).min().filter(|at| *at != Timestamp::NEVER) {
                Some(at) => full.with_retry_after(at.since(now)),
                None => full,
            }
        })?;
        entries.waiting.insert(suspension.id().clone(), suspension.clone());
        entries.by_call.add(suspension);
        Ok(())
    }

    /// Takes a call and stores how it was resolved, atomically.
    fn taken(
        &self,
        id: &SuspensionId,
        resolved: &Resolved,
        for_caller: bool,
    ) -> Option<Suspension> {
        let mut entries = self.entries();
        let taken = entries.remove_waiting(id)?;
        self.keep_resolved(&mut entries.resolved, id, resolved);
        if for_caller {
            let running = Settled::running(taken.clone(), resolved.at());
            self.keep_outcome(&mut entries, &running);
        }
        Some(taken)
    }

    fn keep_resolved(
        &self,
        kept: &mut HashMap<SuspensionId, Resolved>,
        id: &SuspensionId,
        new: &Resolved,
    ) {
        let full = |kept: &HashMap<_, Resolved>| {
            let own = kept.values().filter(|one| one.identity() == new.identity()).count();
            self.bounds.admit(WHAT, own, kept.len()).err()
        };
        while let Some(full) = full(kept) {
            let all = kept.values().map(Resolved::identity);
            let Some(owner) = makes_room(&full, new.identity(), all) else { break };
            let own = kept.iter().filter(|(_, one)| one.identity() == owner);
            let Some(oldest) = own.min_by_key(|(_, one)| one.at()).map(|(id, _)| id.clone()) else {
                break;
            };
            kept.remove(&oldest);
        }
        kept.insert(id.clone(), new.clone());
    }

    fn keep_outcome(&self, entries: &mut Entries, settled: &Settled) {
        let identity = settled.suspension().identity();
        let full = |kept: &HashMap<_, Settled>| {
            let own = kept.values().filter(|one| one.suspension().identity() == identity).count();
            self.bounds.admit(WHAT, own, kept.len()).err()
        };
        let is_known = entries.settled.contains_key(settled.suspension().id());
        if !is_known && full(&entries.settled).is_some() {
            let now = settled.decided_at();
            let old = entries.settled.values().filter(|old| old.is_old(now));
            for id in old.map(|old| old.suspension().id().clone()).collect::<Vec<_>>() {
                entries.remove_settled(&id);
            }
            // Unfetched outcomes of the identity make room first.
            while let Some(full) = full(&entries.settled) {
                let all = entries.settled.values().map(|one| one.suspension().identity());
                let Some(owner) = makes_room(&full, identity, all) else { break };
                let of = |one: &&Settled| one.suspension().identity() == owner;
                let oldest = entries.settled.values().filter(of).min_by_key(|old| old.decided_at());
                let Some(oldest) = oldest.map(|old| old.suspension().id().clone()) else { break };
                entries.remove_settled(&oldest);
            }
        }
        entries.settled.insert(settled.suspension().id().clone(), settled.clone());
        entries.by_call.add(settled.suspension());
    }
}

/// The identity whose oldest entry makes room: the requester, or, at the total bound, the one that
/// holds the most.
fn makes_room<'a>(full: &Full, own: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    match full.scope {
        BoundScope::Identity => Some(own.to_owned()),
        BoundScope::All => largest_holder(all),
    }
}

impl SuspensionStore for MemorySuspensions {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(self.keep(suspension).map_err(StoreError::from)))
    }

    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.entries().waiting.get(id).cloned())))
    }

    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.taken(id, resolved, false))))
    }

    fn take_for_caller<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.taken(id, resolved, true))))
    }

    fn resolved<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Resolved>, StoreError>> {
        Box::pin(ready(Ok(self.entries().resolved.get(id).cloned())))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.sorted(|one| one.identity() == identity))))
    }

    fn same_call<'a>(
        &'a self,
        call: &'a Suspension,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.entries().same_call(call, now).cloned())))
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.sorted(|_| true))))
    }

    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>> {
        self.keep_outcome(&mut self.entries(), settled);
        Box::pin(ready(Ok(())))
    }

    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        Box::pin(ready(Ok(self.entries().settled.get(id).cloned())))
    }

    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        Box::pin(ready(Ok(self.entries().remove_settled(id))))
    }

    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>> {
        let entries = self.entries();
        let of_identity = |one: &&Settled| one.suspension().identity() == identity;
        let mut settled: Vec<_> = entries.settled.values().filter(of_identity).cloned().collect();
        settled.sort_by_key(Settled::decided_at);
        Box::pin(ready(Ok(settled)))
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_tool::{Arguments, CallId, Layer, Source, ToolDefinition, ToolEntry};

    use super::*;
    use crate::suspension::Waiting;

    fn suspended(identity: &str, created: u64, expires: u64) -> Suspension {
        let definition = ToolDefinition::builder("t").description("A tool.").build();
        let definition = definition.expect("it is right");
        let entry = ToolEntry::client(definition, Source::new(Layer::Host, "test"));
        let arguments = Arguments::from_validated("{}".to_owned());
        let (id, at) = (CallId::new("1"), Timestamp::from_unix_millis);
        Suspension::new(&id, &entry, &arguments, Waiting::Client, at(created), at(expires))
            .expect("there is randomness")
            .for_identity(identity)
    }

    #[tokio::test]
    async fn expired_calls_make_room_and_else_the_identity_is_refused_with_its_bound() {
        let store = MemorySuspensions::within(Bounds::per_identity(3));
        for expires in [20, 5_000, 5_000] {
            store.put(&suspended("ada", 0, expires)).await.expect("there is room");
        }
        let error = store.put(&suspended("ada", 19, 5_000)).await.expect_err("it has three");
        let StoreError::Full(full) = &error else { panic!("{error}") };
        assert_eq!((full.scope, full.limit), (BoundScope::Identity, 3));
        assert_eq!(full.retry_after, Some(std::time::Duration::from_millis(1)));
        assert!(error.to_string().starts_with("this client has 3 calls that wait"), "{error}");
        store.put(&suspended("ada", 20, 5_000)).await.expect("one has expired");
    }

    #[tokio::test]
    async fn an_identity_at_its_bound_leaves_room_for_others() {
        let store = MemorySuspensions::within(Bounds::per_identity(3));
        for _ in 0..3 {
            store.put(&suspended("ada", 0, 1_000)).await.expect("there is room");
        }
        assert!(store.put(&suspended("ada", 1, 1_000)).await.is_err());
        store.put(&suspended("bob", 1, 1_000)).await.expect("he has none");
    }

    #[tokio::test]
    async fn an_identity_that_fetches_no_outcomes_loses_its_own_only() {
        let store = MemorySuspensions::within(Bounds::per_identity(2));
        let at = Timestamp::from_unix_millis;
        let hers = suspended("bob", 0, 9);
        store.settle(&Settled::running(hers.clone(), at(0))).await.expect("there is room");
        for decided in 1..10 {
            let one = Settled::running(suspended("ada", 0, 9), at(decided));
            store.settle(&one).await.expect("the oldest makes room");
        }
        assert_eq!(store.list_settled("ada").await.expect("it is there").len(), 2);
        assert!(store.settled(hers.id()).await.expect("it is there").is_some());
    }
}
