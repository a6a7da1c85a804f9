//! The servers that have the database open. Each holds a lock as long as it lives, and claims rows under its own
//! number.

use std::fs::{File, TryLockError};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use toolcrib_core::clock::Timestamp;
use toolcrib_core::unguessable;

use crate::database::connect;
use crate::error::DatabaseError;
use crate::folder::location::{DatabaseLocation, file_failure};
use crate::millis;

/// The number of a server among all that ever opened a database. Numbers increase and are never reused, so another
/// server can take over a row, and a late write under the old number is refused.
pub(crate) type Epoch = i64;

/// The number that no server has.
pub(crate) const NO_SERVER: Epoch = 0;

/// This server's own registration.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) epoch: Epoch,
    id: String,
    /// Held until the server ends, in whatever way.
    lock: Option<File>,
}

impl Server {
    /// Registers a server, and removes the rows of servers that are gone.
    pub(crate) fn register(
        connection: &mut Connection,
        place: &DatabaseLocation,
        now: Timestamp,
    ) -> Result<Self, DatabaseError> {
        let failed = |error| place.failure(error);
        let id = unguessable::<8>().map_err(|error| DatabaseError::Failed {
            place: place.to_string(),
            problem: error.to_string(),
        })?;
        // The database's write lock keeps other servers from registering or cleaning up now.
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        clear_up(&transaction, place)?;
        // Take the lock first: a row without a held lock would look like a dead server's.
        let lock = match place.servers() {
            None => None,
            Some((servers, path)) => {
                let held = |lock: File| lock.lock().map(|()| lock);
                let lock = servers.and_then(|servers| servers.file(&lock_name(&id)).and_then(held));
                Some(lock.map_err(|error| file_failure(&path, &error))?)
            }
        };
        let entered = transaction
            .execute(
                "INSERT INTO servers (id, pid, started_at) VALUES (?1, ?2, ?3)",
                params![id, std::process::id(), millis(now)],
            )
            .and_then(|_| {
                let epoch = transaction.last_insert_rowid();
                transaction.commit().map(|()| epoch)
            });
        match entered {
            Ok(epoch) => Ok(Self { epoch, id, lock }),
            Err(error) => {
                remove_lock(place, &id);
                Err(failed(error))
            }
        }
    }

    /// Ends the registration and frees the server's claims. The server ends in order, so the calls it had taken have
    /// their answers.
    pub(crate) fn end(self, connection: &Connection, place: &DatabaseLocation) {
        let _ = connection.execute("DELETE FROM taken WHERE claimed_by = ?1", [self.epoch]);
        let gone = connection.execute("DELETE FROM servers WHERE epoch = ?1", [self.epoch]);
        // Without its lock it counts as dead; the next server removes what is left of it.
        drop(self.lock);
        if gone.is_ok() {
            remove_lock(place, &self.id);
        }
    }
}

/// Whether the server with this number has the database open.
pub(crate) fn is_alive(
    connection: &Connection,
    place: &DatabaseLocation,
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

/// The process of a server that has the database of a folder open, if there is one; 0 if that is not known.
pub(crate) fn living(place: &DatabaseLocation) -> Result<Option<u32>, DatabaseError> {
    let Some((_, folder)) = place.servers() else { return Ok(None) };
    let failed = |error: std::io::Error| file_failure(&folder, &error);
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".lock"));
        let Some(id) = id.filter(|id| is_locked(place, id)) else { continue };
        // The database may be damaged.
        let process = connect(place).ok().and_then(|connection| {
            let sql = "SELECT pid FROM servers WHERE id = ?1";
            connection.query_row(sql, [id], |row| row.get(0)).ok()
        });
        return Ok(Some(process.unwrap_or_default()));
    }
    Ok(None)
}

/// Whether the lock of a server is held. If that cannot be found out, the answer is yes: taking over from a living
/// server would be worse than waiting for a dead one.
fn is_locked(place: &DatabaseLocation, id: &str) -> bool {
    let Some((servers, folder)) = place.servers() else { return false };
    match servers.and_then(|servers| servers.existing(&lock_name(id))) {
        Ok(None) => false,
        Ok(Some(file)) => match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => {
                tracing::warn!(folder = %folder.display(), %error, "cannot test the lock of a \
                     server");
                true
            }
        },
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "cannot open the lock of a server");
            true
        }
    }
}

/// The name of the file whose lock a server holds as long as it lives.
fn lock_name(id: &str) -> String {
    format!("{id}.lock")
}

fn remove_lock(place: &DatabaseLocation, id: &str) {
    // A lock file that cannot be removed does no harm.
    if let Some((Ok(servers), _)) = place.servers() {
        let _ = servers.remove(&lock_name(id));
    }
}

/// Removes the rows and locks of servers that are gone, inside a transaction that writes.
pub(crate) fn clear_up(
    connection: &Connection,
    place: &DatabaseLocation,
) -> Result<(), DatabaseError> {
    // A database in memory has one server and no locks.
    if matches!(place, DatabaseLocation::Memory) {
        return Ok(());
    }
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
