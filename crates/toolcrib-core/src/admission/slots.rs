//! How many calls of one tool run at once: slots, and a queue that is fair between identities.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::fair_queue::{FairQueue, Started, Waiter};

type Grant = oneshot::Sender<ConcurrencySlot>;

/// The slots of one tool.
///
/// Every caller brings the limit of the definition it holds, and all calls are counted together:
/// with one semaphore per limit, calls of the old and the reloaded definition would run at the same
/// time.
#[derive(Debug, Default)]
pub(super) struct Gate {
    queue: Mutex<FairQueue<Grant>>,
}

/// The result of [`Gate::enter`].
#[derive(Debug)]
pub(super) enum Admittance {
    /// A slot was free, and no other identity comes first.
    Now(ConcurrencySlot),
    /// The call waits for its turn.
    Queued(Queued),
    /// The queue is full, and no identity has more calls in it than this one would have.
    Full,
}

impl Gate {
    /// Takes a slot if fewer than `limit` calls run and no other identity comes first, else a place in
    /// the queue, which holds at most `max_queue` calls. In a full queue, the newest call of the
    /// identity with the most waiting calls makes room for an identity that has fewer.
    pub(super) fn enter(
        self: &Arc<Self>,
        identity: &Arc<str>,
        limit: usize,
        max_queue: usize,
    ) -> Admittance {
        let mut queue = self.lock();
        let ticket = queue.ticket();
        if queue.waiting() == 0 && queue.running() < limit {
            queue.start(identity);
            return Admittance::Now(ConcurrencySlot::new(self, identity, ticket));
        }
        let mut removed = None;
        if queue.waiting() >= max_queue {
            removed = queue.make_room(identity);
            if removed.is_none() {
                return Admittance::Full;
            }
        }
        let entry = self.wait(queue, identity, QueueRequest { ticket, limit, is_back: false });
        drop(removed);
        entry
    }

    /// Waits among the calls of the identity.
    fn wait(
        self: &Arc<Self>,
        mut queue: MutexGuard<'_, FairQueue<Grant>>,
        identity: &Arc<str>,
        QueueRequest { ticket, limit, is_back }: QueueRequest,
    ) -> Admittance {
        let (grant, granted) = oneshot::channel();
        queue.push(identity, Waiter { ticket, limit, is_back, grant });
        let started = queue.advance();
        drop(queue);
        self.hand_out(started);
        let gate = Arc::clone(self);
        let mut queued = Queued { gate, identity: Arc::clone(identity), ticket, granted };
        match queued.granted.try_recv() {
            Ok(slot) => Admittance::Now(slot),
            Err(_) => Admittance::Queued(queued),
        }
    }

    fn lock(&self) -> MutexGuard<'_, FairQueue<Grant>> {
        // No foreign code runs under the lock, so a panic cannot leave the state inconsistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A running call has ended, or lends its slot.
    fn leave(self: &Arc<Self>, identity: &Arc<str>) {
        let started = {
            let mut queue = self.lock();
            queue.end(identity);
            queue.advance()
        };
        self.hand_out(started);
    }

    /// Hands slots to the calls whose turn it is. Outside the lock: a slot that nobody takes comes back
    /// through its destructor, which locks again.
    fn hand_out(self: &Arc<Self>, started: Vec<Started<Grant>>) {
        for Started { identity, ticket, grant } in started {
            let _ = grant.send(ConcurrencySlot::new(self, &identity, ticket));
        }
    }

    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize) {
        let queue = self.lock();
        (queue.running(), queue.waiting())
    }
}

/// What a call that has to wait asks the queue for.
struct QueueRequest {
    ticket: u64,
    limit: usize,
    is_back: bool,
}

/// One running call; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct ConcurrencySlot {
    gate: Arc<Gate>,
    identity: Arc<str>,
    /// The place in the order of arrival, which a call keeps while its slot is lent.
    ticket: u64,
    /// Whether another call may run in its place.
    is_lent: AtomicBool,
}

impl ConcurrencySlot {
    fn new(gate: &Arc<Gate>, identity: &Arc<str>, ticket: u64) -> Self {
        let (gate, identity) = (Arc::clone(gate), Arc::clone(identity));
        Self { gate, identity, ticket, is_lent: AtomicBool::new(false) }
    }

    /// Lets another call run in its place until it is taken back.
    pub(crate) fn lend(&self) {
        if !self.is_lent.swap(true, Ordering::AcqRel) {
            self.gate.leave(&self.identity);
        }
    }

    /// Takes the slot back at once, even if that makes one too many.
    pub(crate) fn take_back_now(&self) {
        if self.is_lent.swap(false, Ordering::AcqRel) {
            self.gate.lock().start(&self.identity);
        }
    }

    /// A place in the queue for getting the slot back, before the calls of the same identity that came
    /// later, or the slot of another call that becomes it; `None` if it is not lent.
    pub(super) fn ask_back(&self, limit: usize) -> Option<Admittance> {
        self.is_lent.load(Ordering::Acquire).then(|| {
            let request = QueueRequest { ticket: self.ticket, limit, is_back: true };
            self.gate.wait(self.gate.lock(), &self.identity, request)
        })
    }

    /// Takes over another slot of the same tool.
    pub(super) fn take_over(&self, other: &ConcurrencySlot) {
        // If this slot is still lent, the other one now stands for it and must not be given back.
        if self.is_lent.swap(false, Ordering::AcqRel) {
            other.is_lent.store(true, Ordering::Release);
        }
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        if !self.is_lent.load(Ordering::Acquire) {
            self.gate.leave(&self.identity);
        }
    }
}

/// A place in the queue; dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct Queued {
    gate: Arc<Gate>,
    identity: Arc<str>,
    ticket: u64,
    granted: oneshot::Receiver<ConcurrencySlot>,
}

impl Queued {
    /// Waits for the slot. `None` if the place was given to another identity because the queue is full.
    pub(super) async fn slot(&mut self) -> Option<ConcurrencySlot> {
        (&mut self.granted).await.ok()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let started = {
            let mut queue = self.gate.lock();
            if !queue.remove(&self.identity, self.ticket) {
                // Granted. If nobody took the slot, it is dropped with the channel.
                return;
            }
            // Whoever comes next may have a wider limit.
            queue.advance()
        };
        self.gate.hand_out(started);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(gate: &Arc<Gate>, limit: usize, max_queue: usize) -> Admittance {
        gate.enter(&"ada".into(), limit, max_queue)
    }

    fn now(entry: Admittance) -> ConcurrencySlot {
        match entry {
            Admittance::Now(slot) => slot,
            other => panic!("expected a slot, got {other:?}"),
        }
    }

    fn queued(entry: Admittance) -> Queued {
        match entry {
            Admittance::Queued(queued) => queued,
            other => panic!("expected a place in the queue, got {other:?}"),
        }
    }

    #[tokio::test]
    async fn slots_go_round_in_order_of_arrival() {
        let gate = Arc::new(Gate::default());
        let mut slot = now(enter(&gate, 1, 10));
        let mut waiting: Vec<_> = (0..5).map(|_| queued(enter(&gate, 1, 10))).collect();
        for next in 0..waiting.len() {
            drop(slot);
            for late in &mut waiting[next + 1..] {
                assert!(late.granted.try_recv().is_err());
            }
            slot = waiting[next].slot().await.unwrap();
        }
        drop(slot);
        assert_eq!(gate.load(), (0, 0));
    }

    #[test]
    fn a_newcomer_does_not_overtake_the_queue() {
        let gate = Arc::new(Gate::default());
        let first = now(enter(&gate, 1, 10));
        let _waiting = queued(enter(&gate, 1, 10));
        let newcomer = queued(enter(&gate, 5, 10));
        drop((first, newcomer));
    }

    #[test]
    fn a_slot_that_nobody_takes_goes_to_the_next() {
        let gate = Arc::new(Gate::default());
        let slot = now(enter(&gate, 1, 10));
        let (gone, mut next) = (queued(enter(&gate, 1, 10)), queued(enter(&gate, 1, 10)));
        drop(slot);
        drop(gone);
        assert!(next.granted.try_recv().is_ok());
    }

    #[test]
    fn a_narrower_limit_counts_the_calls_of_the_wider_one() {
        let gate = Arc::new(Gate::default());
        let old = [now(enter(&gate, 2, 10)), now(enter(&gate, 2, 10))];
        let mut new = queued(enter(&gate, 1, 10));
        let [first, second] = old;
        drop(first);
        assert!(new.granted.try_recv().is_err(), "one of the old definition still runs");
        drop(second);
        assert!(new.granted.try_recv().is_ok());
    }

    #[test]
    fn whoever_leaves_the_front_does_not_hold_up_a_wider_limit() {
        let gate = Arc::new(Gate::default());
        let _running = now(enter(&gate, 1, 10));
        let narrow = queued(enter(&gate, 1, 10));
        let mut wide = queued(enter(&gate, 2, 10));
        drop(narrow);
        assert!(wide.granted.try_recv().is_ok());
    }

    #[test]
    fn the_queue_has_an_end() {
        let gate = Arc::new(Gate::default());
        let _running = now(enter(&gate, 1, 1));
        let waiting = queued(enter(&gate, 1, 1));
        assert!(matches!(enter(&gate, 1, 1), Admittance::Full));
        drop(waiting);
        assert!(matches!(enter(&gate, 1, 1), Admittance::Queued(_)));
    }

    #[tokio::test]
    async fn the_next_slot_is_the_other_identitys() {
        let gate = Arc::new(Gate::default());
        let first = now(enter(&gate, 2, 100));
        let second = now(enter(&gate, 2, 100));
        let mut own: Vec<_> = (0..40).map(|_| queued(enter(&gate, 2, 100))).collect();
        let mut other = queued(gate.enter(&"eve".into(), 2, 100));
        drop(first);
        let eve = other.granted.try_recv().expect("the next free slot");
        drop(second);
        let ada = own[0].granted.try_recv().expect("one slot for each");
        drop(ada);
        drop(own[1].granted.try_recv().expect("eve waits no more"));
        drop(eve);
    }

    #[test]
    fn a_full_queue_of_one_identity_has_room_for_another() {
        let gate = Arc::new(Gate::default());
        let _running = now(enter(&gate, 1, 3));
        let mut own: Vec<_> = (0..3).map(|_| queued(enter(&gate, 1, 3))).collect();
        assert!(matches!(enter(&gate, 1, 3), Admittance::Full));
        let other = queued(gate.enter(&"eve".into(), 1, 3));
        assert!(own[2].granted.try_recv().is_err());
        assert_eq!(gate.load(), (1, 3));
        drop((own, other));
        assert_eq!(gate.load(), (1, 0));
    }
}
