//! Suspended calls kept in memory: gone with the process.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_tool::BoxFuture;

use super::{Settled, StoreError, Suspension, SuspensionId, SuspensionStore};

/// Calls that may wait at once.
const MAX_WAITING: usize = 10_000;

/// A store in memory. Where it is full, what has expired makes room first.
#[derive(Debug, Default)]
pub struct MemorySuspensions(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    waiting: HashMap<SuspensionId, Suspension>,
    settled: HashMap<SuspensionId, Settled>,
}

impl MemorySuspensions {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn sorted(&self, wanted: impl Fn(&Suspension) -> bool) -> Vec<Suspension> {
        let entries = self.entries();
        let mut found: Vec<_> =
            entries.waiting.values().filter(|one| wanted(one)).cloned().collect();
        found.sort_by(|a, b| (a.created_at(), a.id()).cmp(&(b.created_at(), b.id())));
        found
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SuspensionStore for MemorySuspensions {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        let kept = &mut self.entries().waiting;
        if kept.len() >= MAX_WAITING {
            // The newest one knows what time it is.
            kept.retain(|_, old| !old.is_expired(suspension.created_at()));
        }
        let entries = kept.len();
        let fits = entries < MAX_WAITING;
        if fits {
            kept.insert(suspension.id().clone(), suspension.clone());
        }
        Box::pin(ready(if fits { Ok(()) } else { Err(StoreError::Full { entries }) }))
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
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.entries().waiting.remove(id))))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.sorted(|one| one.identity() == identity))))
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>> {
        Box::pin(ready(Ok(self.sorted(|_| true))))
    }

    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>> {
        let kept = &mut self.entries().settled;
        if kept.len() >= MAX_WAITING {
            kept.retain(|_, old| !old.is_old(settled.decided_at()));
        }
        if kept.len() >= MAX_WAITING {
            let oldest = kept.values().min_by_key(|old| old.decided_at());
            if let Some(oldest) = oldest.map(|old| old.suspension().id().clone()) {
                kept.remove(&oldest);
            }
        }
        kept.insert(settled.suspension().id().clone(), settled.clone());
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
        Box::pin(ready(Ok(self.entries().settled.remove(id))))
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
    use crate::clock::Timestamp;
    use crate::suspension::Waiting;

    #[tokio::test]
    async fn a_full_store_drops_what_has_expired_and_else_refuses() {
        let definition = ToolDefinition::builder("t").description("A tool.").build();
        let definition = definition.expect("it is right");
        let entry = ToolEntry::client(definition, Source::new(Layer::Host, "test"));
        let suspended = |created: u64, expires: u64| {
            let arguments = Arguments::from_validated("{}".to_owned());
            let (id, at) = (CallId::new("1"), Timestamp::from_unix_millis);
            let waiting = Waiting::Client;
            Suspension::new(&id, &entry, &arguments, waiting, at(created), at(expires))
                .expect("there is randomness")
        };
        let store = MemorySuspensions::new();
        for n in 0..MAX_WAITING {
            let expires = if n == 0 { 10 } else { 1_000 };
            store.put(&suspended(0, expires)).await.expect("there is room");
        }
        let early = store.put(&suspended(9, 1_000)).await;
        assert!(matches!(early, Err(StoreError::Full { entries: MAX_WAITING })));
        store.put(&suspended(10, 1_000)).await.expect("one has expired");
    }
}
