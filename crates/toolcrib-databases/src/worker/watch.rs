//! The deadline of a query, and what the authorizer refused.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared with the callbacks of the database engine.
#[derive(Debug, Clone)]
pub(super) struct Watch(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    deadline: Instant,
    refused: Option<String>,
}

impl Watch {
    pub(super) fn new(time: Duration) -> Self {
        let now = Instant::now();
        // A limit that no clock reaches is a day.
        let deadline = now.checked_add(time).unwrap_or(now + Duration::from_secs(86_400));
        Self(Arc::new(Mutex::new(State { deadline, refused: None })))
    }

    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.state().deadline
    }

    /// Ends the query after this time, if it does not end before.
    pub(super) fn end_within(&self, time: Duration) {
        let mut state = self.state();
        state.deadline = state.deadline.min(Instant::now() + time);
    }

    /// Records the first thing that was refused.
    pub(super) fn refuse(&self, what: impl FnOnce() -> String) {
        self.state().refused.get_or_insert_with(what);
    }

    pub(super) fn refused(&self) -> Option<String> {
        self.state().refused.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
