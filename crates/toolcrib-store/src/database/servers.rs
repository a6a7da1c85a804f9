//! Which servers have the database open: each holds a lock as long as it lives, and the number under
//! which it claims rows.

use std::fs::{File, TryLockError};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use toolcrib_core::clock::Timestamp;
use toolcrib_core::unguessable;

use crate::error::DatabaseError;
use crate::folder::place::{Place, file_failure};
use crate::millis;

/// The number of a server among all that ever opened a database. A later one has a higher number, and
/// none is used again, so a row that names it can be taken over without its late writes being believed.
pub(crate) type Epoch = i64;

/// This server's own registration.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) epoch: Epoch,
    id: String,
    /// Held until the server ends, however it ends.
    lock: Option<File>,
}

impl Server {
    /// Registers a server, and forgets those that are gone.
    pub(crate) fn register(
        connection: &mut Connection,
        place: &Place,
        now: Timestamp,
    ) -> Result<Self, DatabaseError> {
        let failed = |error| place.failure(error);
        let id = unguessable::<8>().map_err(|error| DatabaseError::Failed {
            place: place.to_string(),
            problem: error.to_string(),
        })?;
        // Under the database's write lock nobody else registers or clears up.
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        clear_up(&transaction, place)?;
        // A row without its lock held would be taken for a dead server's: the lock comes first.
        let lock = match place.servers() {
            None => None,
            Some((servers, path)) => {
                let held = |lock: File| lock.lock().map(|()| lock);
                let lock = servers.and_then(|servers| servers.file(&lock_name(&id)).and_then(held));
                Some(lock.map_err(|error| file_failure(&path, &error))?)
            }
        };
        transaction
            .execute(
                "INSERT INTO servers (id, pid, started_at) VALUES (?1, ?2, ?3)",
                params![id, std::process::id(), millis(now)],
            )
            .map_err(failed)?;
        let epoch = transaction.last_insert_rowid();
        transaction.commit().map_err(failed)?;
        Ok(Self { epoch, id, lock })
    }

    /// Ends the registration. What it had claimed is free; the calls that it had taken have their
    /// answers, since it has come to its end.
    pub(crate) fn end(self, connection: &Connection, place: &Place) {
        let _ = connection.execute("DELETE FROM taken WHERE claimed_by = ?1", [self.epoch]);
        let gone = connection.execute("DELETE FROM servers WHERE epoch = ?1", [self.epoch]);
        // Without its lock it counts as dead, and the next server removes what is left of it.
        drop(self.lock);
        if gone.is_ok() {
            remove_lock(place, &self.id);
        }
    }
}

/// Whether the server of that number has the database open.
pub(crate) fn is_alive(
    connection: &Connection,
    place: &Place,
    own: Epoch,
    epoch: Epoch,
) -> Result<bool, DatabaseError> {
    if epoch == own {
        return Ok(true);
    }
    let id: Option<String> = connection
        .prepare_cached("SELECT id FROM servers WHERE epoch = ?1")
        .and_then(|mut query| query.query_row([epoch], |row| row.get(0)).optional())
        .map_err(|error| place.failure(error))?;
    Ok(id.is_some_and(|id| is_locked(place, &id)))
}

/// Whether the lock of a server is held. What cannot be found out counts as held: taking over from a
/// server that lives would be worse than waiting for one that does not.
fn is_locked(place: &Place, id: &str) -> bool {
    let Some((servers, folder)) = place.servers() else { return false };
    match servers.and_then(|servers| servers.existing(&lock_name(id))) {
        Ok(None) => false,
        Ok(Some(file)) => match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => {
                tracing::warn!(folder = %folder.display(), %error, "a server's lock cannot be tried");
                true
            }
        },
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "a server's lock cannot be opened");
            true
        }
    }
}

/// The name of the file whose lock a server holds as long as it lives.
fn lock_name(id: &str) -> String {
    format!("{id}.lock")
}

fn remove_lock(place: &Place, id: &str) {
    // One that stays is in nobody's way.
    if let Some((Ok(servers), _)) = place.servers() {
        let _ = servers.remove(&lock_name(id));
    }
}

/// Removes the rows and locks of servers that are gone.
fn clear_up(connection: &Connection, place: &Place) -> Result<(), DatabaseError> {
    let failed = |error| place.failure(error);
    let mut query = connection.prepare("SELECT epoch, id FROM servers").map_err(failed)?;
    let servers = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect::<Result<Vec<(Epoch, String)>, _>>)
        .map_err(failed)?;
    for (epoch, id) in servers.iter().filter(|(_, id)| !is_locked(place, id)) {
        connection.execute("DELETE FROM servers WHERE epoch = ?1", [epoch]).map_err(failed)?;
        remove_lock(place, id);
    }
    Ok(())
}
