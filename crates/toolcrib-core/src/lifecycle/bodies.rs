//! The bodies of one registry: which are in its current snapshot, and for how long the others stay
//! open.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::{LiveBody, reaper};

/// How long a body that was removed stays open for turns that still hold it.
const GRACE: Duration = Duration::from_secs(30);

/// What one registry knows of its bodies. The registry calls [`replace`](Self::replace) under its
/// writer lock, with every snapshot it puts in place.
#[derive(Debug)]
pub(crate) struct Bodies {
    grace: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing is placed any more: the registry is over.
    ended: bool,
    /// Within their grace, or just past it.
    removed: Vec<Weak<LiveBody>>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self::with_grace(GRACE)
    }
}

impl Bodies {
    pub(crate) fn with_grace(grace: Duration) -> Self {
        Self { grace, state: Mutex::default() }
    }

    /// Says that the bodies of `come` are now in the current snapshot and those of `gone` are no
    /// longer; what is in both may be left out of both. To be called before the snapshot is put in
    /// place, so that no body of it is ever past its grace.
    pub(crate) fn replace<'a>(
        &self,
        gone: impl IntoIterator<Item = &'a Arc<LiveBody>>,
        come: impl IntoIterator<Item = &'a Arc<LiveBody>>,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return;
        }
        for body in come {
            if !body.place() {
                // Only a snapshot made from an old one can have it: its calls are `unavailable`.
                tracing::error!(?body, "a tool is published that was closed: register it again");
            }
        }
        for body in gone {
            let Some(since) = body.withdraw() else { continue };
            if self.grace.is_zero() {
                body.close_unplaced(Some(since));
                continue;
            }
            if state.removed.len() == state.removed.capacity() {
                state.removed.retain(|body| body.strong_count() > 0);
            }
            state.removed.push(Arc::downgrade(body));
            reaper::end_of_grace(Arc::downgrade(body), since, self.grace);
        }
    }

    /// Withdraws the bodies of the current snapshot and closes everything that no other registry
    /// has: the end of a registry whose turns may live on. What was closed is closed when
    /// [`settled`](Self::settled) says so.
    pub(crate) fn close_all<'a>(&self, current: impl IntoIterator<Item = &'a Arc<LiveBody>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = std::mem::take(&mut state.removed);
        if !std::mem::replace(&mut state.ended, true) {
            for body in current {
                body.withdraw();
                body.close_unplaced(None);
            }
        }
        drop(state);
        for body in removed.iter().filter_map(Weak::upgrade) {
            body.close_unplaced(None);
        }
    }

    /// Withdraws the bodies of the last snapshot of a registry that is dropped: they are closed as
    /// soon as nobody holds that snapshot.
    pub(crate) fn withdraw<'a>(&self, current: impl IntoIterator<Item = &'a Arc<LiveBody>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.ended, true) {
            for body in current {
                body.withdraw();
            }
        }
    }

    /// Completes when every instance that has been handed over for closing is closed or abandoned.
    pub(crate) async fn settled() {
        reaper::settled().await;
    }
}
