//! The bodies of one registry: which are in its current snapshot, and for how long the others stay
//! open.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::{LiveBody, closer};

/// How long a body that was removed stays open for turns that still hold it.
const GRACE: Duration = Duration::from_secs(30);
/// A longer grace period is as good as none that ends.
const GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// What one registry knows of its bodies. The registry calls [`replace`](Self::replace) under its
/// writer lock, with every snapshot it puts in place.
#[derive(Debug)]
pub(crate) struct Bodies {
    grace: Duration,
    state: Arc<Mutex<BodiesState>>,
}

#[derive(Debug, Default)]
struct BodiesState {
    /// Nothing is placed any more: the registry is over.
    ended: bool,
    /// Within their grace, in the order in which it ends.
    removed: VecDeque<RemovedBody>,
    /// A task waits for the end of the first grace.
    is_timed: bool,
}

#[derive(Debug)]
struct RemovedBody {
    body: Weak<LiveBody>,
    until: Instant,
}

impl Default for Bodies {
    fn default() -> Self {
        Self::with_grace(GRACE)
    }
}

impl Bodies {
    pub(crate) fn with_grace(grace: Duration) -> Self {
        Self { grace: grace.min(GRACE_MAX), state: Arc::default() }
    }

    /// Says that the bodies of `come` are now in the current snapshot and those of `gone` are no
    /// longer; what is in both may be left out of both. To be called before the snapshot is put in
    /// place, so that no body of it is ever past its grace.
    pub(crate) fn replace<'a>(
        &self,
        gone: impl IntoIterator<Item = &'a Arc<LiveBody>>,
        come: impl IntoIterator<Item = &'a Arc<LiveBody>>,
    ) {
        let mut state = lock(&self.state);
        if state.ended {
            return;
        }
        for body in come {
            if !body.place() {
                tracing::warn!(
                    ?body,
                    "a tool is published that was closed: register a new instance"
                );
            }
        }
        for body in gone {
            let Some(at) = body.withdraw() else { continue };
            if self.grace.is_zero() {
                body.close_unplaced();
                continue;
            }
            // Frequent reloads begin thousands of graces, nearly all for bodies that are gone long
            // before the end. Looking through them is paid for by growth.
            if state.removed.len() == state.removed.capacity() {
                state.removed.retain(|removed| removed.body.strong_count() > 0);
            }
            state
                .removed
                .push_back(RemovedBody { body: Arc::downgrade(body), until: at + self.grace });
        }
        if !state.is_timed && !state.removed.is_empty() {
            state.is_timed = true;
            closer::spawn(end_graces(Arc::clone(&self.state), self.grace));
        }
    }

    /// Withdraws the bodies of the current snapshot and closes everything that no other registry
    /// has: the end of a registry whose turns may live on. What was closed is closed when
    /// [`settled`](Self::settled) says so.
    pub(crate) fn close_all<'a>(&self, current: impl IntoIterator<Item = &'a Arc<LiveBody>>) {
        self.withdraw(current, LiveBody::close_unplaced);
        let removed = std::mem::take(&mut lock(&self.state).removed);
        for body in removed.iter().filter_map(|removed| removed.body.upgrade()) {
            body.close_unplaced();
        }
    }

    /// Withdraws the bodies of the last snapshot of a registry that is dropped: they are closed as
    /// soon as nobody holds that snapshot.
    pub(crate) fn end<'a>(&self, current: impl IntoIterator<Item = &'a Arc<LiveBody>>) {
        self.withdraw(current, |_| {});
    }

    fn withdraw<'a>(
        &self,
        current: impl IntoIterator<Item = &'a Arc<LiveBody>>,
        then: impl Fn(&LiveBody),
    ) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.ended, true) {
            for body in current {
                body.withdraw();
                then(body);
            }
        }
    }

    /// Completes when every instance that has been handed over for closing is closed or abandoned.
    pub(crate) async fn settled() {
        closer::settled().await;
    }
}

/// Closes bodies at the end of their grace, until none is left.
async fn end_graces(state: Arc<Mutex<BodiesState>>, grace: Duration) {
    loop {
        let next = {
            let mut state = lock(&state);
            let now = Instant::now();
            while state.removed.front().is_some_and(|first| first.until <= now) {
                if let Some(body) = state.removed.pop_front().and_then(|own| own.body.upgrade()) {
                    body.end_grace(grace);
                }
            }
            let Some(first) = state.removed.front() else {
                state.is_timed = false;
                return;
            };
            first.until
        };
        tokio::time::sleep_until(next.into()).await;
    }
}

fn lock(state: &Mutex<BodiesState>) -> MutexGuard<'_, BodiesState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
