//! Calls that are answered with a task: the client asks after it until it is done, however long that
//! takes (the extension `io.modelcontextprotocol/tasks`).
//!
//! A task is a call that goes on without its request. It is known to the client that made the call
//! and to no other, ends with its time to live at the latest, and is withdrawn by `tasks/cancel` as a
//! call is by its request's end.

mod client_tasks;
mod driver;
mod store;

use std::time::Duration;

use rmcp::model::{ClientCapabilities, ErrorData};
use toolcrib_tool::{TaskMode, ToolDefinition};

pub(crate) use crate::call::tasks::client_tasks::{Keeping, KeptTask, NewTask, Tasks};
pub(crate) use crate::call::tasks::driver::{Work, drive};
pub use store::{EndedTask, FoundTask, FoundTaskState, StoredTask, TaskStore, TaskStoreError};

/// How long calls of a tool whose calls are all tasks may ask something at once: a question that comes
/// first is asked before there is a task.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Which calls become tasks, and how long those are kept.
#[derive(Debug, Clone)]
pub struct TaskOptions {
    /// How long a call may take before it becomes a task, where the client knows tasks and the tool
    /// says nothing else. Default 10 s.
    pub after: Duration,
    /// How long a task is kept, from its beginning on. One that is still at work then is ended. Default
    /// one hour.
    pub ttl: Duration,
    /// How many tasks one client may have at once, those that are done included. While there are as
    /// many, calls are answered when they are done. 0: tasks are not offered at all. Default 100.
    pub max: usize,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self { after: Duration::from_secs(10), ttl: Duration::from_secs(60 * 60), max: 100 }
    }
}

impl TaskOptions {
    pub(crate) fn are_offered(&self) -> bool {
        self.max > 0
    }

    /// Whether calls of that client may become tasks.
    pub(crate) fn are_offered_to(&self, client: &ClientCapabilities) -> bool {
        self.are_offered() && client.supports_tasks()
    }

    /// What a call of this tool may become for that client. The error is for clients that cannot call
    /// it.
    pub(crate) fn fate(
        &self,
        definition: &ToolDefinition,
        client: &ClientCapabilities,
    ) -> Result<Fate, ErrorData> {
        if !self.are_offered() {
            return Ok(Fate::Answer);
        }
        match definition.task() {
            TaskMode::Required if !client.supports_tasks() => {
                let tasks = ClientCapabilities::builder().enable_tasks().build();
                Err(ErrorData::missing_required_client_capability(tasks))
            }
            TaskMode::Required => Ok(Fate::Task),
            TaskMode::Auto if client.supports_tasks() => Ok(Fate::TaskAfter(self.after)),
            _ => Ok(Fate::Answer),
        }
    }
}

/// What a call may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its request waits for the answer.
    Answer,
    /// A task, once it has taken so long.
    TaskAfter(Duration),
    /// A task, unless it asks something first.
    Task,
}

impl Fate {
    /// How long the request waits; `None`: as long as it takes.
    pub(crate) fn patience(self) -> Option<Duration> {
        match self {
            Self::Answer => None,
            Self::TaskAfter(patience) => Some(patience),
            Self::Task => Some(AT_ONCE),
        }
    }
}
