//! A tool instance that is shared and closed once.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolcrib_tool::{SharedTool, Tool, ToolName};

use super::closer;

/// One instance of a tool.
///
/// Its placements are counted: a registry places a body for each entry of its current snapshot that
/// uses it, and withdraws it when the snapshot is replaced. Without placements, a body is closed
/// after a grace period, even if old turns still hold it.
pub(crate) struct LiveBody {
    tool: Arc<dyn Tool>,
    /// Its first name, for logs.
    name: ToolName,
    state: Mutex<BodyState>,
    /// Whether it is closed; calls read this without the lock.
    refuses_calls: AtomicBool,
}

#[derive(Debug)]
struct BodyState {
    /// How many entries of current snapshots use it.
    placements: usize,
    /// When its grace period began, if it has one.
    removed_at: Option<Instant>,
    /// Whether it was submitted for closing, which happens once.
    closed: bool,
}

impl LiveBody {
    /// The body that all entries with this instance share. `name` is for logs.
    ///
    /// An instance is never closed twice; calls of a closed instance behave as the tool decides.
    pub(crate) fn of(instance: &SharedTool, name: &ToolName) -> Arc<Self> {
        let make = |was_closed| Self::new(Arc::clone(instance.tool()), name.clone(), was_closed);
        let record: Arc<dyn Any + Send + Sync> =
            instance.record(|was_closed| Arc::new(make(was_closed)));
        // The type differs only if another version of this library is linked in, too.
        let body = record.downcast::<Self>().unwrap_or_else(|_| Arc::new(make(false)));
        // A snapshot with it may be published, so a grace period is cancelled.
        body.change(|state| state.removed_at = None);
        body
    }

    /// The body of an instance that one call uses.
    pub(super) fn of_call(tool: Arc<dyn Tool>, name: &ToolName) -> Arc<Self> {
        Arc::new(Self::new(tool, name.clone(), false))
    }

    fn new(tool: Arc<dyn Tool>, name: ToolName, closed: bool) -> Self {
        let state = BodyState { placements: 0, removed_at: None, closed };
        Self { tool, name, state: Mutex::new(state), refuses_calls: AtomicBool::new(closed) }
    }

    pub(crate) fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Whether it was closed after its removal, so that calls must not start on it.
    pub(crate) fn is_closed(&self) -> bool {
        self.refuses_calls.load(Ordering::Acquire)
    }

    /// Adds a placement. `false` if the body is closed.
    pub(super) fn place(&self) -> bool {
        self.change(|state| {
            state.placements += 1;
            state.removed_at = None;
            !state.closed
        })
    }

    /// Removes a placement. `Some` with the current time if it was the last.
    pub(super) fn withdraw(&self) -> Option<Instant> {
        self.change(|state| {
            state.placements = state.placements.checked_sub(1)?;
            state.removed_at = (state.placements == 0).then(Instant::now);
            state.removed_at
        })
    }

    /// Closes the body if it has no placement.
    pub(super) fn close_unplaced(&self) {
        self.close_if(|_| true);
    }

    /// Closes the body if its grace period is over and it was not placed again.
    pub(super) fn end_grace(&self, grace: Duration) {
        self.close_if(|state| state.removed_at.is_some_and(|at| at.elapsed() >= grace));
    }

    fn close_if(&self, condition: impl FnOnce(&BodyState) -> bool) {
        let closes = self.change(|state| {
            let closes = state.placements == 0 && !state.closed && condition(state);
            state.closed |= closes;
            closes
        });
        if closes {
            closer::close(Arc::clone(&self.tool), self.name.clone());
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut BodyState) -> T) -> T {
        // Nothing panics under this lock that could leave the state half changed.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut state);
        self.refuses_calls.store(state.closed && state.placements == 0, Ordering::Release);
        changed
    }
}

impl Drop for LiveBody {
    fn drop(&mut self) {
        if !self.state.get_mut().unwrap_or_else(PoisonError::into_inner).closed {
            closer::close(Arc::clone(&self.tool), self.name.clone());
        }
    }
}

impl fmt::Debug for LiveBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveBody")
            .field("name", &self.name)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
