//! A look into a database by a program that keeps nothing in it, and a change by one that ends at once:
//! without threads, and without a registration as a server.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use toolcrib_core::clock::{Clock as _, SystemClock};

use crate::database::schema::is_current;
use crate::database::transaction::Tx;
use crate::database::{connect, make};
use crate::error::DatabaseError;
use crate::folder::place::{Place, is_there};

/// No server has this number.
const NOBODY: i64 = 0;

fn tx<'c>(connection: &'c Connection, place: &'c Place) -> Tx<'c> {
    Tx { connection, place, server: NOBODY, now: SystemClock.now() }
}

/// Reads from the database of a folder; `None` where there is none. One of an earlier version is brought
/// up to date.
pub(crate) fn glance<T>(
    dir: &Path,
    work: impl FnOnce(&Tx<'_>) -> Result<T, DatabaseError>,
) -> Result<Option<T>, DatabaseError> {
    let place = Place::Folder(dir.to_owned());
    if !is_there(dir)? {
        return Ok(None);
    }
    let mut connection = connect(&place)?;
    if !is_current(&connection, &place)? {
        (_, connection) = make(dir)?;
    }
    work(&tx(&connection, &place)).map(Some)
}

/// Changes the database of a folder, which is made if it is not there. The change is kept, also over a
/// loss of power, when this returns.
pub(crate) fn change<T>(
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
