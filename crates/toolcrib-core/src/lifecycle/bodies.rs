//! The tool bodies of one registry: which are in its current snapshot, and how long removed ones
//! stay open.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::{LiveBody, closer};

/// How long a removed body stays open for turns that still hold it.
const GRACE: Duration = Duration::from_secs(30);
/// Longer grace periods are treated as endless.
const GRACE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The bodies of one registry. The registry calls [`replace`](Self::replace) under its writer lock
/// for every snapshot that it publishes.
#[derive(Debug)]
pub(crate) struct Bodies {
    grace: Duration,
    state: Arc<Mutex<BodiesState>>,
}

#[derive(Debug, Default)]
struct BodiesState {
    /// The registry has ended: nothing is placed any more.
    ended: bool,
    /// Removed bodies in their grace period, ordered by its end.
    removed: VecDeque<RemovedBody>,
    /// Whether a task waits for the end of the first grace period.
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

    /// Places the bodies of `come` and withdraws those of `gone`; bodies that are in both may be
    /// omitted from both. Call it before the snapshot is published, so that none of its bodies is
    /// past its grace period.
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
            // Frequent reloads begin thousands of grace periods, nearly all for bodies that are
            // dropped early. They are purged only when the list is full, so the cost is amortized.
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

    /// Withdraws the bodies of the current snapshot and closes those that no other registry has, at
    /// the end of a registry whose turns may live on. Wait with [`settled`](Self::settled) until
    /// they are closed.
    pub(crate) fn close_all<'a>(&self, current: impl IntoIterator<Item = &'a Arc<LiveBody>>) {
        self.withdraw(current, LiveBody::close_unplaced);
        let removed = std::mem::take(&mut lock(&self.state).removed);
        for body in removed.iter().filter_map(|removed| removed.body.upgrade()) {
            body.close_unplaced();
        }
    }

    /// Withdraws the bodies of the last snapshot of a dropped registry: they are closed as soon as
    /// nothing holds that snapshot.
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

    /// Completes when every instance that was submitted for closing is closed or abandoned.
    pub(crate) async fn settled() {
        closer::settled().await;
    }
}

/// Closes bodies at the end of their grace period, until none is left.
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
