//! Storage in which tasks survive a restart.

use std::fmt;

use serde_json::Value;
use toolcrib_core::clock::Timestamp;
use toolcrib_tool::BoxFuture;

/// Stores the outcomes of tasks, so that clients find them after a restart.
///
/// The server that begins a task owns it. If that server ends before the task does, the task is
/// lost: whether its call had an effect is unknown.
pub trait TaskStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new, running task. Fails if its owner already has `most` tasks, across all servers.
    fn begin<'a>(
        &'a self,
        task: &'a StoredTask,
        most: usize,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// Stores how a task ended that this store has begun.
    fn end<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
        ended: &'a EndedTask,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// Forgets a task that this store has begun and that no client was told of.
    fn forget<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// Looks up a task of an owner that has not expired.
    fn find<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<FoundTask>, TaskStoreError>>;
}

/// A new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    /// Its id, which cannot be guessed.
    pub id: String,
    /// Its owner: nobody else finds it.
    pub owner: String,
    /// When it was created, in the protocol's format.
    pub created_at: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTask {
    /// When it ended, in the protocol's format.
    pub at: String,
    /// Its outcome: an object with `result` or `error`, or with neither if it was cancelled.
    pub outcome: Value,
}

/// A stored task.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundTask {
    /// When it was created, in the protocol's format.
    pub created_at: String,
    /// Its state.
    pub state: FoundTaskState,
}

/// The state of a stored task.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FoundTaskState {
    /// It has ended.
    Ended(EndedTask),
    /// The server that began it is working on it.
    Working,
    /// The server that began it ended before the task did.
    Lost,
}

/// Why a task could not be stored or found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// Its owner has the maximum number of tasks.
    Full,
    /// The store does not work; the text is for the operator.
    Failed(String),
}

impl fmt::Display for TaskStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("this client has reached its limit of tasks"),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for TaskStoreError {}
