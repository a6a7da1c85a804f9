//! Calls that are answered with a task, which the client polls until it is done (the extension
//! `io.modelcontextprotocol/tasks`).
//!
//! A task is a call that continues without its request. Only the client that made the call can see
//! it. It ends when its time to live is over at the latest, and `tasks/cancel` cancels it as the
//! end of a request cancels a call.

mod client_tasks;
mod driver;
mod store;

use std::time::Duration;

use rmcp::model::{ClientCapabilities, ErrorData};
use toolcrib_tool::{TaskMode, ToolDefinition};

pub(crate) use crate::call::tasks::client_tasks::{NewTask, TaskHandle, TaskPersistence, Tasks};
pub(crate) use crate::call::tasks::driver::{CallFuture, TaskWork, drive};
pub use store::{EndedTask, FoundTask, FoundTaskState, StoredTask, TaskStore, TaskStoreError};

/// For a tool whose calls always become tasks, how long to wait for a first question: it is asked
/// before there is a task.
const FIRST_QUESTION_WAIT: Duration = Duration::from_millis(100);

/// Which calls become tasks, and how long tasks are kept.
#[derive(Debug, Clone)]
pub struct TaskOptions {
    /// How long a call may take before it becomes a task, if the client supports tasks and the tool
    /// does not specify anything else. Default 10 s.
    pub after: Duration,
    /// How long a task is kept from its creation on. A task that is still running then is
    /// cancelled. Default one hour.
    pub ttl: Duration,
    /// How many tasks one client may have at once, including finished ones. At the limit, calls are
    /// answered when they are done. 0 disables tasks. Default 100.
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

    /// How a call of this tool is answered for that client. The error is for clients that cannot
    /// call it.
    pub(crate) fn answer_mode(
        &self,
        definition: &ToolDefinition,
        client: &ClientCapabilities,
    ) -> Result<AnswerMode, ErrorData> {
        if !self.are_offered() {
            return Ok(AnswerMode::Answer);
        }
        match definition.task() {
            TaskMode::Required if !client.supports_tasks() => {
                let tasks = ClientCapabilities::builder().enable_tasks().build();
                Err(ErrorData::missing_required_client_capability(tasks))
            }
            TaskMode::Required => Ok(AnswerMode::Task),
            TaskMode::Auto if client.supports_tasks() => Ok(AnswerMode::TaskAfter(self.after)),
            _ => Ok(AnswerMode::Answer),
        }
    }
}

/// How a call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerMode {
    /// The request waits for the answer.
    Answer,
    /// With a task, if the call takes this long.
    TaskAfter(Duration),
    /// With a task, unless the call asks something first.
    Task,
}

impl AnswerMode {
    /// How long the request waits; `None` for as long as it takes.
    pub(crate) fn wait_limit(self) -> Option<Duration> {
        match self {
            Self::Answer => None,
            Self::TaskAfter(wait_limit) => Some(wait_limit),
            Self::Task => Some(FIRST_QUESTION_WAIT),
        }
    }
}
