//! Stores tasks of MCP clients as rows.

use toolcrib_mcp::{EndedTask, FoundTask, FoundTaskState, StoredTask, TaskStore, TaskStoreError};
use toolcrib_tool::{BoxFuture, exact};

use crate::database::Database;
use crate::database::servers::Epoch;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::millis;
use crate::tables::owner::OwnerDigest;

/// Stores the outcomes of tasks. Tasks that a server was working on when it ended are lost at once; tasks of other
/// living servers are reported as working. Outcomes are stored in plain text.
#[derive(Debug, Clone)]
pub struct Tasks {
    database: Database,
}

impl Tasks {
    /// Opens the tasks of a database.
    pub fn new(database: &Database) -> Self {
        Self { database: database.clone() }
    }
}

fn begin(tx: &Tx<'_>, task: &StoredTask, most: usize) -> Result<(), TaskStoreError> {
    tx.execute("DELETE FROM tasks WHERE expires_at <= ?1", [tx.now()])?;
    let owner = OwnerDigest::of(&task.owner);
    if tx.usage("tasks", Some(owner))?.entries >= most {
        return Err(TaskStoreError::Full);
    }
    tx.execute(
        "INSERT INTO tasks (id, owner, created_at, expires_at, bytes, claimed_by)
         VALUES (?1, ?2, ?3, ?4, 0, ?5)",
        (&task.id, owner, &task.created_at, millis(task.expires_at), tx.server),
    )?;
    Ok(())
}

struct TaskRow {
    created_at: String,
    claimed_by: Epoch,
    ended: Option<(String, String)>,
}

fn find(tx: &Tx<'_>, owner: OwnerDigest, id: &str) -> Result<Option<FoundTask>, TaskStoreError> {
    let sql = "SELECT created_at, claimed_by, ended_at, outcome FROM tasks
               WHERE id = ?1 AND owner = ?2 AND expires_at > ?3";
    let row = tx.one(sql, (id, owner, tx.now()), |row| {
        let ended_at: Option<String> = row.get(2)?;
        let ended = match ended_at {
            Some(at) => Some((at, row.get(3)?)),
            None => None,
        };
        Ok(TaskRow { created_at: row.get(0)?, claimed_by: row.get(1)?, ended })
    })?;
    let Some(TaskRow { created_at, claimed_by, ended }) = row else { return Ok(None) };
    let state = match ended {
        Some((at, outcome)) => {
            let outcome = serde_json::from_str(&exact::protect(&outcome))
                .map_err(|error| TaskStoreError::Failed(format!("a task is damaged: {error}")))?;
            FoundTaskState::Ended(EndedTask { at, outcome })
        }
        // A server does not look up its own running tasks here.
        None if claimed_by == tx.server => return Ok(None),
        None if tx.is_alive(claimed_by)? => FoundTaskState::Working,
        None => FoundTaskState::Lost,
    };
    Ok(Some(FoundTask { created_at, state }))
}

impl TaskStore for Tasks {
    fn begin<'a>(
        &'a self,
        task: &'a StoredTask,
        most: usize,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        let task = task.clone();
        Box::pin(self.database.write(move |tx| begin(tx, &task, most)))
    }

    fn end<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
        ended: &'a EndedTask,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        let (owner, id, at) = (OwnerDigest::of(owner), id.to_owned(), ended.at.clone());
        let outcome = ended.outcome.to_string();
        let outcome = exact::restore(&outcome).into_owned();
        let end = move |tx: &Tx<'_>| -> Result<(), TaskStoreError> {
            let bytes = i64::try_from(outcome.len()).unwrap_or(i64::MAX);
            tx.execute(
                "UPDATE tasks SET ended_at = ?1, outcome = ?2, bytes = ?3
                 WHERE id = ?4 AND owner = ?5 AND claimed_by = ?6 AND ended_at IS NULL",
                (at, outcome, bytes, id, owner, tx.server),
            )?;
            Ok(())
        };
        Box::pin(self.database.write(end))
    }

    fn forget<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), TaskStoreError>> {
        let (owner, id) = (OwnerDigest::of(owner), id.to_owned());
        let forget = move |tx: &Tx<'_>| -> Result<(), TaskStoreError> {
            let sql = "DELETE FROM tasks WHERE id = ?1 AND owner = ?2 AND claimed_by = ?3";
            tx.execute(sql, (id, owner, tx.server))?;
            Ok(())
        };
        Box::pin(self.database.write(forget))
    }

    fn find<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<FoundTask>, TaskStoreError>> {
        let (owner, id) = (OwnerDigest::of(owner), id.to_owned());
        Box::pin(self.database.read(move |tx| find(tx, owner, &id)))
    }
}

impl From<DatabaseError> for TaskStoreError {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error.to_string())
    }
}
