//! Where tasks outlive the server.

use std::fmt;

use serde_json::Value;
use toolcrib_core::clock::Timestamp;
use toolcrib_tool::BoxFuture;

/// Keeps what came of tasks, so that their clients find it after a restart.
///
/// Whoever begins a task claims it. A task whose server ended before it did is lost: whether its call had
/// its effect is not known.
pub trait TaskStore: fmt::Debug + Send + Sync + 'static {
    /// Keeps a new task, at work. Fails where its owner has `most` of them already, in all servers.
    fn begin<'a>(
        &'a self,
        task: &'a StoredTask,
        most: usize,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// Keeps how a task ended that this store has begun.
    fn end<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
        ended: &'a EndedTask,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// Forgets a task that this store has begun: its client was never told of it.
    fn forget<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>>;

    /// What became of a task of an owner, unless its time is over.
    fn find<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<FoundTask>, TaskStoreError>>;
}

/// A task as it was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    /// Its id, which nobody can guess.
    pub id: String,
    /// Whose it is: nobody else finds it.
    pub owner: String,
    /// Since when, as the protocol writes it.
    pub created_at: String,
    /// When its time is over.
    pub expires_at: Timestamp,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTask {
    /// When, as the protocol writes it.
    pub at: String,
    /// What came of it: an object with `result`, `error`, or, of one that was withdrawn, neither.
    pub outcome: Value,
}

/// A task that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundTask {
    /// Since when, as the protocol writes it.
    pub created_at: String,
    /// How far it has come.
    pub state: FoundTaskState,
}

/// How far a task has come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FoundTaskState {
    /// It has ended.
    Ended(EndedTask),
    /// The server that began it works on it.
    Working,
    /// The server that began it ended first.
    Lost,
}

/// Why a task could not be kept or found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// Its owner has as many tasks as there may be.
    Full,
    /// The store does not work; for the operator.
    Failed(String),
}

impl fmt::Display for TaskStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("this client has as many tasks as it may have"),
            Self::Failed(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for TaskStoreError {}
