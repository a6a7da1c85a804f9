//! Shutting an executor down: no new calls, a grace for those that run, then their cancellation.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use toolcrib_tool::ToolError;

/// How long cancelled calls may take to hand over their answers. A call that holds its thread
/// answers when it can.
const HAND_OVER: Duration = Duration::from_secs(5);

/// In `state`: no new calls. The other bits count the calls that run.
const ENDING: usize = 1 << (usize::BITS - 1);

/// Who is in, and whether the house is closing. A call pays one atomic operation to enter and one to
/// leave.
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    state: AtomicUsize,
    /// The last call has left, after the end began.
    empty: Notify,
    begun: Notify,
    cancelled: AtomicBool,
    cancel: Notify,
}

/// What became of the calls that ran when an executor was shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Calls that had not ended when the grace was over, and were cancelled.
    pub cancelled: usize,
    /// Calls that had not answered 5 s after their cancellation: they hold their thread.
    pub abandoned: usize,
}

/// A call that was let in. It has left when this is dropped.
#[derive(Debug)]
#[must_use = "dropped, the call counts as over"]
pub(crate) struct Entered<'a>(&'a Shutdown);

impl Shutdown {
    /// Lets a call in, or says `unavailable`. Only for calls from outside: those made from a call
    /// that is in belong to it.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, ToolError> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let entered = Entered(self);
        // Refused, it counts until here, and leaves like any other.
        if before & ENDING == 0 { Ok(entered) } else { Err(shutting_down()) }
    }

    /// How many calls are in.
    pub(crate) fn inside(&self) -> usize {
        self.state.load(Ordering::Acquire) & !ENDING
    }

    /// Whether no new calls are let in.
    pub(crate) fn has_begun(&self) -> bool {
        self.state.load(Ordering::Acquire) & ENDING != 0
    }

    /// Completes when no new calls are let in.
    pub(crate) async fn begun(&self) {
        let mut begun = pin!(self.begun.notified());
        begun.as_mut().enable();
        if !self.has_begun() {
            begun.await;
        }
    }

    /// Completes when running calls are to end, because the grace is over.
    pub(crate) async fn cancelled(&self) {
        let mut cancel = pin!(self.cancel.notified());
        // Registered before the flag is read, so that a cancellation between the two is not missed.
        cancel.as_mut().enable();
        if !self.is_cancelled() {
            cancel.await;
        }
    }

    /// Whether the grace is over.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Ends it: lets nobody in, waits for those who are in, cancels them when the grace is over.
    pub(crate) async fn run(&self, grace: Duration) -> ShutdownReport {
        self.state.fetch_or(ENDING, Ordering::AcqRel);
        self.begun.notify_waiters();
        if timeout(grace, self.emptied()).await.is_ok() {
            return ShutdownReport::default();
        }
        let cancelled = self.running();
        self.cancelled.store(true, Ordering::Release);
        self.cancel.notify_waiters();
        let handed_over = timeout(HAND_OVER, self.emptied()).await;
        let abandoned = if handed_over.is_ok() { 0 } else { self.running() };
        ShutdownReport { cancelled, abandoned }
    }

    /// How many calls are in.
    pub(crate) fn running(&self) -> usize {
        self.state.load(Ordering::Acquire) & !ENDING
    }

    async fn emptied(&self) {
        loop {
            let mut empty = pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            empty.await;
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == ENDING + 1 {
            self.0.empty.notify_waiters();
        }
    }
}

fn shutting_down() -> ToolError {
    ToolError::unavailable("the host is shutting down and takes no more calls")
        .with_hint("Nothing was run.")
}
