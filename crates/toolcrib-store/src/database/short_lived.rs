//! One-off access to a database, for a read by a program that stores nothing or a change by one that ends at once:
//! without threads, and without registration as a server.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use toolcrib_core::clock::{Clock as _, SystemClock};

use crate::database::schema::is_current;
use crate::database::servers::NO_SERVER;
use crate::database::transaction::Tx;
use crate::database::{connect, make};
use crate::error::DatabaseError;
use crate::folder::location::{DatabaseLocation, is_there};
use crate::retention::Retention;

fn tx<'c>(connection: &'c Connection, place: &'c DatabaseLocation) -> Tx<'c> {
    let (now, retention) = (SystemClock.now(), Retention::default());
    Tx { connection, place, server: NO_SERVER, now, retention, trouble: None }
}

/// Reads from the database of a folder; `None` if there is none. An older database is migrated first.
pub(crate) fn read_once<T>(
    dir: &Path,
    work: impl FnOnce(&Tx<'_>) -> Result<T, DatabaseError>,
) -> Result<Option<T>, DatabaseError> {
    let place = DatabaseLocation::Folder(dir.to_owned());
    if !is_there(dir)? {
        return Ok(None);
    }
    let mut connection = connect(&place)?;
    if !is_current(&connection, &place)? {
        (_, connection) = make(dir)?;
    }
    work(&tx(&connection, &place)).map(Some)
}

/// Changes the database of a folder, creating it if necessary. When this returns, the change is durable, even across a
/// power failure.
pub(crate) fn write_once<T>(
    dir: &Path,
    work: impl FnOnce(&Tx<'_>) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let (place, mut connection) = make(dir)?;
    let failed = |error| place.failure(error);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let done = work(&tx(&transaction, &place))?;
    transaction.commit().map_err(failed)?;
    Ok(done)
}
