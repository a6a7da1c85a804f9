//! The barrier for nested calls of tools that run alone: they wait until no other call of their
//! batch is running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The running calls of one batch, or of one call and its nested calls.
///
/// A call that waits for its nested call does not count as running, so that two calls whose nested
/// calls both have to run alone do not deadlock.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    state: Mutex<BarrierState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct BarrierState {
    at_work: usize,
    /// Whether a call runs alone.
    alone: bool,
    /// Calls that wait to run alone. No other call starts meanwhile.
    waiting: usize,
}

impl Barrier {
    async fn enter(&self) {
        self.when(|state| {
            let may = !state.alone && state.waiting == 0;
            state.at_work += usize::from(may);
            may
        })
        .await;
    }

    async fn enter_alone(&self) {
        let _waiting = WaitingAlone::begin(self);
        self.when(|state| {
            let may = !state.alone && state.at_work == 0;
            state.alone |= may;
            may
        })
        .await;
    }

    fn leave(&self, alone: bool) {
        let mut state = self.lock();
        if alone {
            state.alone = false;
        } else {
            state.at_work = state.at_work.saturating_sub(1);
        }
        // While no call runs alone, only calls that wait to do so are held up.
        let is_awaited = alone || state.waiting > 0;
        drop(state);
        if is_awaited {
            self.changed.notify_waiters();
        }
    }

    /// Waits until the condition, which may change the state, holds.
    async fn when(&self, mut condition: impl FnMut(&mut BarrierState) -> bool) {
        if condition(&mut self.lock()) {
            return;
        }
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the state is read, so that a change between the two is not missed.
            changed.as_mut().enable();
            if condition(&mut self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a call that waits to run alone, until it is dropped.
struct WaitingAlone<'b>(&'b Barrier);

impl<'b> WaitingAlone<'b> {
    fn begin(barrier: &'b Barrier) -> Self {
        barrier.lock().waiting += 1;
        Self(barrier)
    }
}

impl Drop for WaitingAlone<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
        self.0.changed.notify_waiters();
    }
}

/// One running call. Dropping this leaves the barrier.
#[derive(Debug)]
pub(crate) struct Presence {
    /// `None` within a call that runs alone: its nested calls belong to it.
    barrier: Option<Arc<Barrier>>,
    alone: bool,
    state: Mutex<PresenceState>,
}

#[derive(Debug)]
struct PresenceState {
    /// Nested calls, at any depth, that wait for somebody.
    away: usize,
    /// Nested calls that it waits for.
    nested: usize,
    /// Whether it counts as running.
    counted: bool,
}

impl Presence {
    /// Waits until a call may start; with `alone`, until no other call is running.
    pub(crate) async fn enter(barrier: Option<Arc<Barrier>>, alone: bool) -> Self {
        if let Some(barrier) = &barrier {
            if alone { barrier.enter_alone().await } else { barrier.enter().await }
        }
        let state = Mutex::new(PresenceState { away: 0, nested: 0, counted: barrier.is_some() });
        Self { barrier, alone, state }
    }

    /// The call waits for a nested call, until this is dropped or [ended](SteppedAside::end).
    pub(crate) fn step_aside(&self) -> SteppedAside<'_> {
        let mut state = self.lock();
        state.nested += 1;
        if !self.alone
            && std::mem::take(&mut state.counted)
            && let Some(barrier) = &self.barrier
        {
            barrier.leave(false);
        }
        SteppedAside(self)
    }

    /// A nested call waits for somebody: others may run alone meanwhile, even if this call runs
    /// alone.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.away += 1;
        if std::mem::take(&mut state.counted)
            && let Some(barrier) = &self.barrier
        {
            barrier.leave(self.alone);
        }
    }

    /// The nested call no longer waits. A call that runs alone waits until it can do so again;
    /// others come back when their nested call has ended.
    pub(crate) async fn come_back(&self) {
        {
            let mut state = self.lock();
            state.away = state.away.saturating_sub(1);
            if !self.alone || state.away > 0 || state.counted {
                return;
            }
        }
        let Some(barrier) = &self.barrier else { return };
        barrier.enter_alone().await;
        let mut state = self.lock();
        if state.away == 0 && !state.counted {
            state.counted = true;
        } else {
            barrier.leave(true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, PresenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(barrier) = self.barrier.as_ref().filter(|_| state.counted) {
            barrier.leave(self.alone);
        }
    }
}

/// A call that waits for its nested call.
#[must_use = "the call steps aside only until this is dropped"]
pub(crate) struct SteppedAside<'p>(&'p Presence);

impl SteppedAside<'_> {
    /// The nested call has ended: waits until this one may continue.
    pub(crate) async fn end(self) {
        let presence = self.0;
        drop(self);
        let Some(barrier) = presence.barrier.as_ref().filter(|_| !presence.alone) else { return };
        if presence.lock().nested > 0 {
            return;
        }
        barrier.enter().await;
        let mut state = presence.lock();
        if state.nested == 0 && !state.counted {
            state.counted = true;
        } else {
            barrier.leave(false);
        }
    }
}

impl Drop for SteppedAside<'_> {
    fn drop(&mut self) {
        self.0.lock().nested -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    async fn enter(barrier: &Arc<Barrier>) -> Presence {
        Presence::enter(Some(Arc::clone(barrier)), false).await
    }

    #[tokio::test]
    async fn whoever_runs_alone_waits_for_those_at_work_and_holds_up_those_to_come() {
        let barrier = Arc::default();
        let one = enter(&barrier).await;
        let mut alone = pin!(Presence::enter(Some(Arc::clone(&barrier)), true));
        assert!(alone.as_mut().now_or_never().is_none());
        let mut next = pin!(enter(&barrier));
        assert!(next.as_mut().now_or_never().is_none(), "one waits to run alone");
        drop(one);
        let alone = alone.await;
        assert!(next.as_mut().now_or_never().is_none());
        drop(alone);
        next.await;
    }

    #[tokio::test]
    async fn two_calls_whose_nested_calls_run_alone_do_not_wait_for_each_other() {
        let barrier = Arc::default();
        let (one, other) = (enter(&barrier).await, enter(&barrier).await);
        let (aside, other_aside) = (one.step_aside(), other.step_aside());
        let first = Presence::enter(Some(Arc::clone(&barrier)), true).await;
        let mut second = pin!(Presence::enter(Some(Arc::clone(&barrier)), true));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        {
            let mut back = pin!(aside.end());
            assert!(back.as_mut().now_or_never().is_none(), "the second is to run alone first");
            drop(second.await);
            back.await;
        }
        other_aside.end().await;
        drop((one, other));
        assert_eq!(barrier.lock().at_work, 0);
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_leaves_nothing_behind() {
        let barrier: Arc<Barrier> = Arc::default();
        let one = enter(&barrier).await;
        {
            let mut alone = pin!(Presence::enter(Some(Arc::clone(&barrier)), true));
            assert!(alone.as_mut().now_or_never().is_none());
        }
        drop(one.step_aside());
        drop(one);
        enter(&barrier).await;
        assert_eq!(barrier.lock().at_work, 0);
        assert_eq!(barrier.lock().waiting, 0);
    }
}
