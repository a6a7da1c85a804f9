//! The store of waiting calls as one process reaches it: not any more after the process was killed, whose
//! futures go on in this test.

use std::sync::Arc;

use toolcrib_core::clock::Timestamp;
use toolcrib_core::suspension::{
    MemorySuspensions, Resolved, Settled, StoreError, Suspension, SuspensionId, SuspensionStore,
};
use toolcrib_tool::BoxFuture;

use crate::setup::Records;

pub(crate) struct ProcessStore {
    store: Arc<MemorySuspensions>,
    process: Arc<Records>,
}

impl ProcessStore {
    pub(crate) fn new(store: &Arc<MemorySuspensions>, process: &Arc<Records>) -> Self {
        Self { store: Arc::clone(store), process: Arc::clone(process) }
    }

    /// The answer of the store, which a killed process never gets.
    fn while_alive<'a, T: Send + 'a>(
        &'a self,
        answer: impl FnOnce(&'a MemorySuspensions) -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.process.is_killed() {
            return Box::pin(std::future::pending());
        }
        answer(&self.store)
    }
}

impl SuspensionStore for ProcessStore {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        self.while_alive(|store| store.put(suspension))
    }

    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        self.while_alive(|store| store.find(id))
    }

    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        self.while_alive(|store| store.take(id, resolved))
    }

    fn take_for_caller<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        self.while_alive(|store| store.take_for_caller(id, resolved))
    }

    fn resolved<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Resolved>, StoreError>> {
        self.while_alive(|store| store.resolved(id))
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        self.while_alive(|store| store.list(identity))
    }

    fn same_call<'a>(
        &'a self,
        call: &'a Suspension,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        self.while_alive(|store| store.same_call(call, now))
    }

    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>> {
        self.while_alive(|store| store.settle(settled))
    }

    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        self.while_alive(|store| store.settled(id))
    }

    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        self.while_alive(|store| store.take_settled(id))
    }

    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>> {
        self.while_alive(|store| store.list_settled(identity))
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>> {
        self.while_alive(|store| store.all())
    }
}
