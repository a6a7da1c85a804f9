//! Cancellation: set once, seen by everything that waits for it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The cancellation of a call, of a turn or of everything an executor runs.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    set: AtomicBool,
    changed: Notify,
}

impl Cancellation {
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Completes when it is set.
    pub(crate) async fn cancelled(&self) {
        let changed = self.changed.notified();
        tokio::pin!(changed);
        // Registered before the flag is read, so that a set between the two is not missed.
        changed.as_mut().enable();
        if !self.is_cancelled() {
            changed.await;
        }
    }

    /// Whether it has been.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }
}
