//! The moments at which a process is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::{
    Claim, Journal, JournalEntry, JournalPage, MessageNumber, RunCursor, RunId, RunRequests, Seq,
};
use toolcrib_core::suspension::{
    Resolved, Settled, StoreError, Suspension, SuspensionId, SuspensionStore,
};
use toolcrib_tool::BoxFuture;

/// Counts the moments at which a process can be killed, and kills it at one of them.
#[derive(Debug, Default)]
pub(crate) struct Points {
    passed: AtomicUsize,
    /// The number of the moment, from 1.
    die_at: Option<usize>,
}

impl Points {
    pub(crate) fn new(die_at: Option<usize>) -> Arc<Self> {
        Arc::new(Self { passed: AtomicUsize::new(0), die_at })
    }

    pub(crate) fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// A moment. The process ends here as by `kill -9` if it is the one.
    pub(crate) fn pass(&self) {
        let number = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if self.die_at == Some(number) {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
                .unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

/// A store with a moment before and one after each commit.
pub(crate) struct Watched<S> {
    pub(crate) store: S,
    pub(crate) points: Arc<Points>,
}

impl<S> Watched<S> {
    async fn commit<T>(&self, work: BoxFuture<'_, T>) -> T {
        self.points.pass();
        let done = work.await;
        self.points.pass();
        done
    }
}

impl<S: Journal> Journal for Watched<S> {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        entries: &'a [JournalEntry],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>> {
        Box::pin(self.commit(self.store.append(run, after, entries, claim)))
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<JournalPage>, StoreError>> {
        self.store.read(run, after, limit)
    }

    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>> {
        self.store.list(identity, after, limit)
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>> {
        Box::pin(self.commit(self.store.claim(run)))
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.commit(self.store.release(claim)))
    }

    fn ask_to_cancel<'a>(
        &'a self,
        run: &'a RunId,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.ask_to_cancel(run, reason)
    }

    fn leave_message<'a>(
        &'a self,
        run: &'a RunId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<MessageNumber>, StoreError>> {
        self.store.leave_message(run, message)
    }

    fn withdraw_message<'a>(
        &'a self,
        run: &'a RunId,
        message: MessageNumber,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.withdraw_message(run, message)
    }

    fn requests<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunRequests, StoreError>> {
        self.store.requests(run)
    }

    fn claimed_elsewhere<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        self.store.claimed_elsewhere(run)
    }

    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.erase(run)
    }
}

impl<S: SuspensionStore> SuspensionStore for Watched<S> {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.commit(self.store.put(suspension)))
    }

    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        self.store.find(id)
    }

    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(self.commit(self.store.take(id, resolved)))
    }

    fn take_for_caller<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(self.commit(self.store.take_for_caller(id, resolved)))
    }

    fn resolved<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Resolved>, StoreError>> {
        self.store.resolved(id)
    }

    fn waits_elsewhere<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        self.store.waits_elsewhere(id)
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        self.store.list(identity)
    }

    fn same_call<'a>(
        &'a self,
        call: &'a Suspension,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        self.store.same_call(call, now)
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>> {
        self.store.all()
    }

    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.commit(self.store.settle(settled)))
    }

    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        self.store.settled(id)
    }

    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        Box::pin(self.commit(self.store.take_settled(id)))
    }

    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>> {
        self.store.list_settled(identity)
    }
}
