//! Runs as rows.

use toolcrib_core::bounds::{Bounds, Whose};
use toolcrib_core::run::{RunCursor, RunId, RunRecord, RunStore};
use toolcrib_core::suspension::{StoreError, Suspension};
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::millis;
use crate::owner::Owner;
use crate::record::{parse, readable, size, text_of};
use crate::tx::Tx;

/// What there may be too many of.
const WHAT: &str = "runs";

/// Keeps the records of runs. None that another process has saved is overwritten unseen.
///
/// Each identity has a share of its own. When it is full, the oldest of its runs that are over, or
/// whose calls have all expired, make room. Records hold arguments and results in plain text.
#[derive(Debug, Clone)]
pub struct Runs {
    database: Database,
    place: String,
    bounds: Bounds,
}

impl Runs {
    /// The runs of a database, within [the default bounds](Bounds::default).
    pub fn new(database: &Database) -> Self {
        Self::within(database, Bounds::default())
    }

    /// The runs of a database, within other bounds.
    pub fn within(database: &Database, bounds: Bounds) -> Self {
        Self { database: database.clone(), place: database.name(), bounds }
    }

    fn place(&self) -> impl Fn(&str) -> String + Send + 'static {
        let place = self.place.clone();
        move |id| format!("the run {id} in {place}")
    }
}

impl RunStore for Runs {
    fn save<'a>(&'a self, record: &'a RunRecord) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let row = Row::of(record)?;
            let (version, bounds) = (row.version, self.bounds);
            self.database.write(move |tx| row.save(tx, bounds)).await?;
            Ok(version)
        })
    }

    fn load<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        Box::pin(async move {
            let (key, place) = (id.to_string(), self.place());
            let load = move |tx: &Tx<'_>| {
                let sql = "SELECT record FROM runs WHERE id = ?1";
                let found = tx.one(sql, [&key], |row| row.get::<_, String>(0))?;
                found.map(|text| parse(&text, || place(&key))).transpose()
            };
            self.database.read(load).await
        })
    }

    fn remove<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let id = id.to_string();
            let remove = move |tx: &Tx<'_>| -> Result<_, StoreError> {
                Ok(tx.execute("DELETE FROM runs WHERE id = ?1", [id])?)
            };
            self.database.write(remove).await.map(drop)
        })
    }

    fn page<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>> {
        Box::pin(async move {
            let (owner, place) = (Owner::of(identity), self.place());
            let (since, id) = match after {
                Some(after) => (millis(after.created_at()), after.id().to_string()),
                None => (i64::MIN, String::new()),
            };
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let page = move |tx: &Tx<'_>| -> Result<_, StoreError> {
                let sql = "SELECT id, record FROM runs
                           WHERE owner = ?1 AND (created_at, id) > (?2, ?3)
                           ORDER BY created_at, id LIMIT ?4";
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
                let rows = tx.all(sql, (owner, since, id, limit), row)?;
                Ok(readable(rows, place))
            };
            self.database.read(page).await
        })
    }
}

struct Row {
    id: String,
    owner: Owner,
    created_at: i64,
    /// From when on it is over. If it is already, then since it was made, so that the oldest goes first.
    over_at: i64,
    version: u64,
    text: String,
}

impl Row {
    fn of(record: &RunRecord) -> Result<Self, StoreError> {
        let version = record.version() + 1;
        let waits_until = record.outstanding().map(Suspension::expires_at).max();
        Ok(Self {
            id: record.id().to_string(),
            owner: Owner::of(record.identity()),
            created_at: millis(record.created_at()),
            over_at: millis(waits_until.unwrap_or(record.created_at())),
            version,
            text: text_of(&record.clone().with_version(version))?,
        })
    }

    fn save(self, tx: &Tx<'_>, bounds: Bounds) -> Result<(), StoreError> {
        let sql = "SELECT version FROM runs WHERE id = ?1";
        let kept = tx.one(sql, [&self.id], |row| row.get::<_, u64>(0))?.unwrap_or_default();
        if kept + 1 != self.version {
            return Err(StoreError::Conflict);
        }
        if kept == 0 {
            self.make_room(tx, bounds)?;
        }
        let Self { id, owner, created_at, over_at, version, text } = self;
        let bytes = size(&text)?;
        tx.execute(
            "INSERT INTO runs (id, owner, created_at, expires_at, bytes, version, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (id) DO UPDATE
                 SET expires_at = ?4, bytes = ?5, version = ?6, record = ?7",
            (id, owner, created_at, over_at, bytes, version, text),
        )?;
        Ok(())
    }

    fn make_room(&self, tx: &Tx<'_>, bounds: Bounds) -> Result<(), StoreError> {
        loop {
            let own = tx.usage("runs", Some(self.owner))?.entries;
            let all = tx.usage("runs", None)?.entries;
            let Err(full) = bounds.admit(WHAT, own, all) else { return Ok(()) };
            // The newest one knows what time it is.
            let now = self.created_at;
            let removed = if full.whose == Whose::All {
                // Of the owner that has most, so that nobody's runs are pushed out by another's.
                let sql = "DELETE FROM runs WHERE id = (SELECT id FROM runs
                               WHERE expires_at <= ?1 AND owner = (SELECT owner FROM usage
                                   WHERE kind = 'runs' AND owner <> x'' AND EXISTS (SELECT 1
                                       FROM runs WHERE owner = usage.owner AND expires_at <= ?1)
                                   ORDER BY entries DESC, owner LIMIT 1)
                               ORDER BY expires_at LIMIT 1)";
                tx.execute(sql, [now])?
            } else {
                let sql = "DELETE FROM runs WHERE id = (SELECT id FROM runs
                               WHERE owner = ?2 AND expires_at <= ?1 ORDER BY expires_at LIMIT 1)";
                tx.execute(sql, (now, self.owner))?
            };
            if removed == 0 {
                return Err(full.into());
            }
        }
    }
}
