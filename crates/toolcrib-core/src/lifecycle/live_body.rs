//! One instance of a tool, shared by everything that holds it, closed once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcrib_tool::{Tool, ToolName};

use super::reaper;
use crate::lifecycle::known_bodies;

/// One instance of a tool. Made by [`of`](Self::of) only, so that one instance has one of these.
///
/// Its placements are counted: a registry places a body once for each entry of its current snapshot
/// that has it, and withdraws it when the snapshot is replaced. A body that has lost its last
/// placement is closed after a grace period, even if old turns still hold it.
pub(crate) struct LiveBody {
    state: AtomicU64,
    tool: Arc<dyn Tool>,
    /// The name it first had, for logs.
    name: ToolName,
}

/// Changes whenever somebody takes a body up or lets it go, so that a grace period that was begun
/// before does not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(u64);

/// The state as one word: two flags, an epoch, and how many placements there are.
mod word {
    /// The body has been handed over for closing.
    pub(super) const CLOSED: u64 = 1 << 63;
    /// The instance was closed in an earlier life: never again.
    pub(super) const SPENT: u64 = 1 << 62;
    const PLACED: u64 = u32::MAX as u64;
    const EPOCH: u64 = !(CLOSED | SPENT | PLACED);
    const ONE_EPOCH: u64 = PLACED + 1;

    pub(super) fn placed(state: u64) -> u64 {
        state & PLACED
    }

    pub(super) fn epoch(state: u64) -> u64 {
        state & EPOCH
    }

    pub(super) fn next_epoch(state: u64) -> u64 {
        (state & !EPOCH) | (state.wrapping_add(ONE_EPOCH) & EPOCH)
    }
}

impl LiveBody {
    /// The body of an instance: the one that others already hold, or a new one. `name` is for logs.
    ///
    /// An instance that was closed before is not closed again; what calls of it do then is its own
    /// affair.
    pub(crate) fn of(tool: &Arc<dyn Tool>, name: &ToolName) -> Arc<Self> {
        known_bodies::unify(tool, name)
    }

    pub(super) fn fresh(tool: &Arc<dyn Tool>, name: &ToolName) -> Arc<Self> {
        Self::with_state(tool, name, 0)
    }

    pub(super) fn spent(tool: &Arc<dyn Tool>, name: &ToolName) -> Arc<Self> {
        Self::with_state(tool, name, word::SPENT)
    }

    fn with_state(tool: &Arc<dyn Tool>, name: &ToolName, state: u64) -> Arc<Self> {
        Arc::new(Self { tool: Arc::clone(tool), name: name.clone(), state: AtomicU64::new(state) })
    }

    pub(crate) fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Whether it was handed over for closing: a call must not begin on it any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & word::CLOSED != 0
    }

    /// Calls off a grace period that has begun. `false`: too late.
    pub(super) fn take_up(&self) -> bool {
        self.change(word::next_epoch).is_some()
    }

    /// Counts a placement. `false`: it is closed already.
    pub(super) fn place(&self) -> bool {
        self.change(|state| state + 1).is_some()
    }

    /// Takes a placement back. `Some`: it was the last, and nothing else has happened since then as
    /// long as the epoch is this one.
    pub(super) fn withdraw(&self) -> Option<Epoch> {
        let withdrawn = |state| match word::placed(state) {
            0 => state,
            1 => word::next_epoch(state - 1),
            _ => state - 1,
        };
        let before = self.change(withdrawn)?;
        (word::placed(before) == 1).then(|| Epoch(word::epoch(withdrawn(before))))
    }

    /// Closes the body if it has no placement; with an epoch, only if nothing happened since.
    pub(super) fn close_unplaced(&self, since: Option<Epoch>) {
        let closed = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            let untouched = since.is_none_or(|since| word::epoch(state) == since.0);
            let open = state & (word::CLOSED | word::SPENT) == 0;
            (open && untouched && word::placed(state) == 0).then_some(state | word::CLOSED)
        });
        if closed.is_ok() {
            reaper::close(Arc::clone(&self.tool), self.name.clone());
        }
    }

    /// Applies a change unless the body is closed; the state before it.
    fn change(&self, change: impl Fn(u64) -> u64) -> Option<u64> {
        self.state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                (state & word::CLOSED == 0).then(|| change(state))
            })
            .ok()
    }
}

impl Drop for LiveBody {
    fn drop(&mut self) {
        if *self.state.get_mut() & (word::CLOSED | word::SPENT) == 0 {
            reaper::close(Arc::clone(&self.tool), self.name.clone());
        }
    }
}

impl fmt::Debug for LiveBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("LiveBody")
            .field("name", &self.name)
            .field("placed", &word::placed(state))
            .field("closed", &(state & word::CLOSED != 0))
            .finish_non_exhaustive()
    }
}
