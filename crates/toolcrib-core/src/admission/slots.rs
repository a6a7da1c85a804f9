//! How many calls of one tool run at once: slots, and a queue that is first come, first served.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The slots of one tool.
///
/// Every caller brings the limit of the definition it holds, and all are counted together: a
/// semaphore per limit would let the calls of an old and of a reloaded definition run side by side.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    running: usize,
    next_ticket: u64,
    /// In the order of the tickets, which is the order of arrival.
    queue: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    limit: usize,
    grant: oneshot::Sender<ConcurrencySlot>,
}

/// What [`Gate::enter`] found.
#[derive(Debug)]
pub(super) enum Admittance {
    /// A slot was free and nobody was waiting for it.
    Now(ConcurrencySlot),
    /// All slots are taken.
    Queued(Queued),
    /// All slots are taken, and so are the places in the queue.
    Full,
}

impl Gate {
    /// Takes a slot if fewer than `limit` calls run, else a place among at most `max_queue`.
    pub(super) fn enter(self: &Arc<Self>, limit: usize, max_queue: usize) -> Admittance {
        let mut state = self.lock();
        if state.queue.is_empty() && state.running < limit {
            state.running += 1;
            return Admittance::Now(ConcurrencySlot::of(self));
        }
        if state.queue.len() >= max_queue {
            return Admittance::Full;
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let (grant, granted) = oneshot::channel();
        state.queue.push_back(Waiter { ticket, limit, grant });
        Admittance::Queued(Queued { gate: Arc::clone(self), ticket, granted })
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        // No code of others runs under the lock; what a panic could have left is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A running call is over, or lends its slot.
    fn leave(self: &Arc<Self>) {
        let granted = {
            let mut state = self.lock();
            state.running -= 1;
            state.advance()
        };
        self.hand_out(granted);
    }

    /// Hands slots to those in front. Outside the lock: a slot that nobody takes comes back
    /// through its destructor, which locks again.
    fn hand_out(self: &Arc<Self>, granted: Vec<oneshot::Sender<ConcurrencySlot>>) {
        for grant in granted {
            let _ = grant.send(ConcurrencySlot::of(self));
        }
    }

    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.running, state.queue.len())
    }
}

impl GateState {
    /// Counts in everyone in front whose limit leaves room.
    fn advance(&mut self) -> Vec<oneshot::Sender<ConcurrencySlot>> {
        let mut granted = Vec::new();
        while self.queue.front().is_some_and(|front| self.running < front.limit) {
            let Some(front) = self.queue.pop_front() else { break };
            self.running += 1;
            granted.push(front.grant);
        }
        granted
    }
}

/// One running call; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct ConcurrencySlot {
    gate: Arc<Gate>,
    /// Others may run while it is lent.
    is_lent: AtomicBool,
}

impl ConcurrencySlot {
    fn of(gate: &Arc<Gate>) -> Self {
        Self { gate: Arc::clone(gate), is_lent: AtomicBool::new(false) }
    }

    /// Lets another call run in its place, until it is taken back.
    pub(crate) fn lend(&self) {
        if !self.is_lent.swap(true, Ordering::AcqRel) {
            self.gate.leave();
        }
    }

    /// Takes the slot back at once, even if that makes one too many.
    pub(crate) fn take_back_now(&self) {
        if self.is_lent.swap(false, Ordering::AcqRel) {
            self.gate.lock().running += 1;
        }
    }

    /// A place in the queue for getting the slot back, or the slot of another call that becomes it;
    /// `None` if it is not lent.
    pub(super) fn ask_back(&self, limit: usize) -> Option<Admittance> {
        self.is_lent.load(Ordering::Acquire).then(|| self.gate.enter(limit, usize::MAX))
    }

    /// Goes on in the place of another slot of the same tool.
    pub(super) fn take_over(&self, other: &ConcurrencySlot) {
        // The other one gives nothing back; unless this one is not lent any more, and needs it not.
        if self.is_lent.swap(false, Ordering::AcqRel) {
            other.is_lent.store(true, Ordering::Release);
        }
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        if !self.is_lent.load(Ordering::Acquire) {
            self.gate.leave();
        }
    }
}

/// A place in the queue; dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct Queued {
    gate: Arc<Gate>,
    ticket: u64,
    granted: oneshot::Receiver<ConcurrencySlot>,
}

impl Queued {
    /// Waits for the slot. `None` only if the queue was lost, which it is not while this lives.
    pub(super) async fn slot(&mut self) -> Option<ConcurrencySlot> {
        (&mut self.granted).await.ok()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let granted = {
            let mut state = self.gate.lock();
            let Ok(place) = state.queue.binary_search_by_key(&self.ticket, |w| w.ticket) else {
                // Granted; if nobody took the slot, it is dropped with the channel.
                return;
            };
            state.queue.remove(place);
            // Whoever stands behind may have a wider limit.
            state.advance()
        };
        self.gate.hand_out(granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut slot = now(gate.enter(1, 10));
        let mut waiting: Vec<_> = (0..5).map(|_| queued(gate.enter(1, 10))).collect();
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
        let first = now(gate.enter(1, 10));
        let _waiting = queued(gate.enter(1, 10));
        let newcomer = queued(gate.enter(5, 10));
        drop((first, newcomer));
    }

    #[test]
    fn a_slot_that_nobody_takes_goes_to_the_next() {
        let gate = Arc::new(Gate::default());
        let slot = now(gate.enter(1, 10));
        let (gone, mut next) = (queued(gate.enter(1, 10)), queued(gate.enter(1, 10)));
        drop(slot);
        drop(gone);
        assert!(next.granted.try_recv().is_ok());
    }

    #[test]
    fn a_narrower_limit_counts_the_calls_of_the_wider_one() {
        let gate = Arc::new(Gate::default());
        let old = [now(gate.enter(2, 10)), now(gate.enter(2, 10))];
        let mut new = queued(gate.enter(1, 10));
        let [first, second] = old;
        drop(first);
        assert!(new.granted.try_recv().is_err(), "one of the old definition still runs");
        drop(second);
        assert!(new.granted.try_recv().is_ok());
    }

    #[test]
    fn whoever_leaves_the_front_does_not_hold_up_a_wider_limit() {
        let gate = Arc::new(Gate::default());
        let _running = now(gate.enter(1, 10));
        let narrow = queued(gate.enter(1, 10));
        let mut wide = queued(gate.enter(2, 10));
        drop(narrow);
        assert!(wide.granted.try_recv().is_ok());
    }

    #[test]
    fn the_queue_has_an_end() {
        let gate = Arc::new(Gate::default());
        let _running = now(gate.enter(1, 1));
        let waiting = queued(gate.enter(1, 1));
        assert!(matches!(gate.enter(1, 1), Admittance::Full));
        drop(waiting);
        assert!(matches!(gate.enter(1, 1), Admittance::Queued(_)));
    }
}
