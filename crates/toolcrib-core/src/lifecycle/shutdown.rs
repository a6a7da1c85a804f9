//! Shutting down an executor: no new calls, a grace period for running ones, then their
//! cancellation.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use toolcrib_tool::ToolError;

/// How long to wait for the answers of cancelled calls. A call that blocks its thread may take
/// longer.
const HAND_OVER: Duration = Duration::from_secs(5);

/// The bit of `state` that means "no new calls". The other bits count the running calls.
const ENDING: usize = 1 << (usize::BITS - 1);

/// Counts running calls and tracks the shutdown. A call costs one atomic operation at its start and
/// one at its end.
#[derive(Debug, Default)]
pub(crate) struct Shutdown {
    state: AtomicUsize,
    /// Notified when the last call has left during a shutdown.
    empty: Notify,
    begun: Notify,
    cancelled: AtomicBool,
    cancel: Notify,
}

/// What happened to the running calls at a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Calls that had not ended after the grace period and were cancelled.
    pub cancelled: usize,
    /// Calls that had not answered 5 s after their cancellation, because they block their thread.
    pub abandoned: usize,
}

/// A running call, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it counts the call as ended"]
pub(crate) struct Entered<'a>(&'a Shutdown);

impl Shutdown {
    /// Admits a call, or fails with `unavailable` during a shutdown. Nested calls do not enter.
    pub(crate) fn enter(&self) -> Result<Entered<'_>, ToolError> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let entered = Entered(self);
        // A refused call was counted until here and leaves like any other.
        if before & ENDING == 0 { Ok(entered) } else { Err(shutting_down()) }
    }

    /// One call less is in.
    pub(crate) fn leave(&self) {
        if self.state.fetch_sub(1, Ordering::AcqRel) == ENDING + 1 {
            self.empty.notify_waiters();
        }
    }

    /// How many calls are in.
    pub(crate) fn inside(&self) -> usize {
        self.state.load(Ordering::Acquire) & !ENDING
    }

    /// Whether the shutdown has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.state.load(Ordering::Acquire) & ENDING != 0
    }

    /// Completes when the shutdown begins.
    pub(crate) async fn begun(&self) {
        let mut begun = pin!(self.begun.notified());
        begun.as_mut().enable();
        if !self.has_begun() {
            begun.await;
        }
    }

    /// Completes when running calls are cancelled after the grace period.
    pub(crate) async fn cancelled(&self) {
        let mut cancel = pin!(self.cancel.notified());
        // Registered before the flag is read, so that a cancellation between the two is not missed.
        cancel.as_mut().enable();
        if !self.is_cancelled() {
            cancel.await;
        }
    }

    /// Whether running calls are cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Shuts down: admits no calls, waits for running ones, and cancels them after the grace
    /// period.
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
        self.0.leave();
    }
}

fn shutting_down() -> ToolError {
    ToolError::unavailable("the host is shutting down and takes no more calls")
        .with_hint("Nothing was run.")
}
