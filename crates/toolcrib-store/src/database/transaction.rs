//! A piece of work's view of the database.

use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use toolcrib_core::clock::Timestamp;

use crate::database::servers;
use crate::database::servers::Epoch;
use crate::error::DatabaseError;
use crate::folder::location::DatabaseLocation;
use crate::millis;
use crate::retention::Retention;
use crate::retention::trouble::Trouble;
use crate::tables::owner::OwnerDigest;

/// A connection inside a transaction, borrowed by one piece of work.
pub(crate) struct Tx<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) place: &'c DatabaseLocation,
    pub(crate) server: Epoch,
    pub(crate) now: Timestamp,
    pub(crate) retention: Retention,
    /// Where failures of the disk are noted, in a server.
    pub(crate) trouble: Option<&'c Trouble>,
}

/// How many rows and bytes of one kind are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

impl Tx<'_> {
    /// Runs a statement and returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, DatabaseError> {
        let done = self.connection.prepare_cached(sql).and_then(|mut query| query.execute(params));
        done.map_err(|error| self.failure(error))
    }

    /// The first row of the result, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, DatabaseError> {
        let found = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut query| query.query_row(params, read).optional());
        found.map_err(|error| self.failure(error))
    }

    /// All rows of the result.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, DatabaseError> {
        let found = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut query| query.query_map(params, read)?.collect());
        found.map_err(|error| self.failure(error))
    }

    /// How much of a table belongs to an owner, or to all owners together. Takes constant time.
    pub(crate) fn usage(
        &self,
        kind: &str,
        owner: Option<OwnerDigest>,
    ) -> Result<Usage, DatabaseError> {
        let sql = "SELECT entries, bytes FROM usage WHERE kind = ?1 AND owner = ?2";
        let read = |row: &Row<'_>| {
            let count = |place| row.get(place).map(|n: i64| usize::try_from(n).unwrap_or(0));
            Ok(Usage { entries: count(0)?, bytes: count(1)? })
        };
        let found = match owner {
            Some(owner) => self.one(sql, (kind, owner), read),
            None => self.one(sql, (kind, &b""[..]), read),
        };
        found.map(Option::unwrap_or_default)
    }

    /// The owner with the most rows in a table. When the table is full, this owner's rows are removed first.
    pub(crate) fn largest_holder(&self, kind: &str) -> Result<Option<OwnerDigest>, DatabaseError> {
        let sql = "SELECT owner FROM usage WHERE kind = ?1 AND owner <> x''
                   ORDER BY entries DESC, owner LIMIT 1";
        self.one(sql, [kind], |row| row.get(0))
    }

    /// Whether the server that claimed a row still has the database open.
    pub(crate) fn is_alive(&self, epoch: Epoch) -> Result<bool, DatabaseError> {
        servers::is_alive(self.connection, self.place, self.server, epoch)
    }

    /// Translates an SQLite error, and notes it if the disk has failed.
    pub(crate) fn failure(&self, error: rusqlite::Error) -> DatabaseError {
        let error = self.place.failure(error);
        if let Some(trouble) = self.trouble {
            trouble.note(&error);
        }
        error
    }

    /// The latest time that is over by this age; the beginning of time for things that are kept for ever.
    pub(crate) fn cutoff(&self, age: Option<std::time::Duration>) -> i64 {
        let age = age.and_then(|age| i64::try_from(age.as_millis()).ok());
        age.map_or(i64::MIN, |age| self.now().saturating_sub(age))
    }

    /// When something that is stored now expires at this age.
    pub(crate) fn expiry(&self, age: Option<std::time::Duration>) -> i64 {
        let age = age.and_then(|age| i64::try_from(age.as_millis()).ok());
        age.map_or(i64::MAX, |age| self.now().saturating_add(age))
    }

    /// The current time of the database's clock, as it is stored.
    pub(crate) fn now(&self) -> i64 {
        millis(self.now)
    }
}
