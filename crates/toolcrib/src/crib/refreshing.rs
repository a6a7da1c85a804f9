//! Refreshes tools as long as a crib lives.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use toolcrib_core::Executor;

/// The task that asks tools for their definitions at the end of each period
/// ([`Refresher::run`](toolcrib_core::Refresher::run)). If a crib is built outside a runtime, the task
/// starts with the first turn.
#[derive(Debug, Default)]
pub(super) struct Refreshing(Mutex<TaskState>);

#[derive(Debug, Default)]
enum TaskState {
    #[default]
    NotStarted,
    Running(AbortHandle),
    Ended,
}

impl Refreshing {
    /// Starts the task if it is not running and there is a runtime with a clock.
    pub(super) fn start(&self, executor: &Executor) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_lost = match &*state {
            TaskState::NotStarted => true,
            // Its runtime may have ended while the crib is used in another one.
            TaskState::Running(task) => task.is_finished(),
            TaskState::Ended => false,
        };
        if is_lost && let Ok(runtime) = Handle::try_current() {
            let refreshing = executor.refresher().run();
            *state = TaskState::Running(runtime.spawn(refreshing).abort_handle());
        }
    }

    /// Ends the task for good.
    pub(super) fn end(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let TaskState::Running(task) = std::mem::replace(&mut *state, TaskState::Ended) {
            task.abort();
        }
    }
}

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.end();
    }
}
