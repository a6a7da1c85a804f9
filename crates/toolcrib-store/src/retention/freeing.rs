//! Gives freed space back to the file system.

use rusqlite::Connection;

use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::folder::location::DatabaseLocation;

/// Free pages that stay in the file for new data, 1 MiB of 4 KiB each.
pub(crate) const SPARE_PAGES: i64 = 256;

/// Pages that one step gives back. A step that has to move all of them fits into the reserved space.
pub(crate) const STEP_PAGES: i64 = 128;

/// The largest database that is rewritten once so that its space can be given back in steps.
const CONVERT_BYTES: i64 = 64 * 1024 * 1024;

/// SQLite's number for giving pages back in steps.
const INCREMENTAL: i64 = 2;

/// Lets a database give space back in steps. Has an effect before its first table, and on a database that is rewritten.
pub(crate) fn allow(
    connection: &Connection,
    place: &DatabaseLocation,
) -> Result<(), DatabaseError> {
    let mode = connection.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0));
    let allowed = mode.and_then(|mode| match mode {
        // Setting it again would write to the file, for which a full disk has no room.
        INCREMENTAL => Ok(()),
        _ => connection.pragma_update(None, "auto_vacuum", INCREMENTAL),
    });
    allowed.map_err(|error| place.failure(error))
}

/// Rewrites a small database of an earlier version, which could give no space back. If that fails, for example because
/// the disk is full, everything but giving space back works.
pub(crate) fn convert(connection: &Connection) {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let is_small =
        || Ok::<_, rusqlite::Error>(number("page_count")? * number("page_size")? <= CONVERT_BYTES);
    let converted = number("auto_vacuum").and_then(|mode| {
        if mode != INCREMENTAL && is_small()? {
            return connection.execute_batch("VACUUM");
        }
        Ok(())
    });
    if let Err(error) = converted {
        tracing::warn!(%error, "the database was not rewritten, so it gives no free space back to the file system");
    }
}

/// How many pages of the file are free.
pub(crate) fn free_pages(tx: &Tx<'_>) -> Result<i64, DatabaseError> {
    let free = tx.one("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(free.unwrap_or_default())
}

/// Gives back some pages.
pub(crate) fn remove_pages(tx: &Tx<'_>, pages: i64) -> Result<(), DatabaseError> {
    let step = || -> rusqlite::Result<()> {
        let mut query = tx.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = query.query([])?;
        // Each row is one page.
        while rows.next()?.is_some() {}
        Ok(())
    };
    step().map_err(|error| tx.failure(error))
}

/// Copies what is in the write-ahead log into the file, which becomes shorter by the pages that were given back. Waits
/// for nobody. Outside a transaction.
pub(crate) fn checkpoint(tx: &Tx<'_>) -> Result<(), DatabaseError> {
    let done = tx.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    done.map_err(|error| tx.failure(error))
}
