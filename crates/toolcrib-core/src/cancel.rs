//! Cancellation of one call: set once, seen by the tool and by everything it waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use toolcrib_tool::BoxFuture;

/// The cancellation of one call.
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

    /// Sets the cancellation when the guard is dropped: a call that nobody waits for any more must
    /// not go on unseen, and a blocking tool only learns of it here.
    pub(crate) fn set_on_drop(self: &Arc<Self>) -> SetOnDrop {
        SetOnDrop(Some(Arc::clone(self)))
    }
}

impl Cancellation {
    /// Completes when the call is cancelled.
    pub(crate) fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the flag is read, so that a set between the two is not missed.
            changed.as_mut().enable();
            if !self.is_cancelled() {
                changed.await;
            }
        })
    }

    /// Whether it has been.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }
}

pub(crate) struct SetOnDrop(Option<Arc<Cancellation>>);

impl SetOnDrop {
    /// The call has ended by itself: there is nobody left to tell.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        if let Some(cancellation) = &self.0 {
            cancellation.set();
        }
    }
}
