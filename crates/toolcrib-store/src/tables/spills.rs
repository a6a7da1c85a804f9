//! Stores long outputs as rows.

use std::time::Duration;

use toolcrib_core::spill::{
    Handle, Owner as SpillOwner, Page, SpillError, SpillFormat, SpillKey, SpillLimits, SpillStore,
    Spilled,
};
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::retention::sweep::{remember, was_removed};
use crate::tables::owner::OwnerDigest;
use crate::tables::record::size;
use crate::tables::suspensions::SWEEP_LIMIT;

/// How long an output that was read is kept for its reader, whatever its age and however much is stored.
const READING_MILLIS: i64 = 10 * 60 * 1_000;

/// How often at most the reading of an output is noted.
const MARK_MILLIS: i64 = 60 * 1_000;

/// What removed outputs are called in the table of removed things.
const OUTPUT: &str = "output";

/// Stores long outputs, limited by bytes, number and age: by these limits, and by [`Retention`](crate::Retention). When
/// the store is full, the oldest output of the identity that uses most is removed.
///
/// The key of an output is a digest of its handle and its owner ([`SpillKey`]), so another identity's handle finds
/// nothing. Outputs are stored in plain text. A power failure may lose the last ones; the end of a process does not.
#[derive(Debug, Clone)]
pub struct Spills {
    database: Database,
    limits: SpillLimits,
}

impl Spills {
    /// Opens the outputs of a database.
    pub fn new(database: &Database, limits: SpillLimits) -> Self {
        Self { database: database.clone(), limits }
    }

    /// Default limits for a disk: 256 MiB in total, 64 MiB for one identity, 10,000 outputs of up to 8 MiB each, kept
    /// for one day.
    pub fn disk_limits() -> SpillLimits {
        let mut limits = SpillLimits::default();
        limits.max_bytes = 256 * 1024 * 1024;
        limits.max_owner_bytes = 64 * 1024 * 1024;
        limits.max_entries = 10_000;
        limits.ttl = Duration::from_secs(24 * 60 * 60);
        limits
    }
}

impl SpillStore for Spills {
    fn put<'a>(
        &'a self,
        owner: &'a SpillOwner,
        spilled: Spilled,
    ) -> BoxFuture<'a, Result<Handle, SpillError>> {
        Box::pin(async move {
            self.limits.admit(spilled.text.len())?;
            let handle = Handle::random()?;
            let key = SpillKey::of(owner, &handle).to_string();
            let (owner, limits) = (OwnerDigest::of(owner.identity()), self.limits);
            self.database.write_relaxed(move |tx| put(tx, key, owner, spilled, limits)).await?;
            Ok(handle)
        })
    }

    fn read<'a>(
        &'a self,
        owner: &'a SpillOwner,
        handle: &'a Handle,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, SpillError>> {
        Box::pin(async move {
            let key = SpillKey::of(owner, handle).to_string();
            let asked = key.clone();
            let read = move |tx: &Tx<'_>| {
                let page = read(tx, &asked, offset, limit)?;
                let known = "SELECT 1 FROM reading WHERE key = ?1 AND read_at BETWEEN ?2 AND ?3";
                let (now, recent) = (tx.now(), tx.now().saturating_sub(MARK_MILLIS));
                let is_marked = tx.one(known, (&asked, recent, now), |_| Ok(()))?.is_some();
                Ok::<_, SpillError>((page, is_marked))
            };
            let (page, is_marked) = self.database.read(read).await?;
            if !is_marked {
                let mark = move |tx: &Tx<'_>| {
                    let sql = "INSERT OR REPLACE INTO reading (key, read_at)
                               SELECT key, ?2 FROM spills WHERE key = ?1";
                    tx.execute(sql, (&key, tx.now())).map(drop)
                };
                // Without it the output is only kept for its age. The page is right in any case.
                let marked: Result<(), DatabaseError> = self.database.write_relaxed(mark).await;
                if let Err(error) = marked {
                    tracing::debug!(%error, "the reading of an output was not noted");
                }
            }
            Ok(page)
        })
    }
}

fn put(
    tx: &Tx<'_>,
    key: String,
    owner: OwnerDigest,
    spilled: Spilled,
    limits: SpillLimits,
) -> Result<(), SpillError> {
    let now = tx.now();
    remove_expired(tx, SWEEP_LIMIT)?;
    let bytes = spilled.text.len();
    if let Some(limit) = tx.retention.outputs.max_bytes {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if bytes > limit {
            return Err(SpillError::TooLarge { bytes, limit });
        }
        while tx.usage("spills", None)?.bytes.saturating_add(bytes) > limit {
            if remove_largest(tx)? == 0 {
                break;
            }
        }
    }
    while tx.usage("spills", Some(owner))?.bytes.saturating_add(bytes) > limits.max_owner_bytes {
        let own = "SELECT key FROM spills WHERE owner = ?1 ORDER BY created_at, rowid LIMIT 1";
        if remove(tx, own, [owner])? == 0 {
            break;
        }
    }
    loop {
        let all = tx.usage("spills", None)?;
        if all.entries < limits.max_entries && all.bytes.saturating_add(bytes) <= limits.max_bytes {
            break;
        }
        // Removes from the identity that uses most, so that no identity pushes out another's outputs.
        let has_too_many = all.entries >= limits.max_entries;
        let oldest = "SELECT key FROM spills WHERE owner = (
                    SELECT owner FROM usage WHERE kind = 'spills' AND owner <> x''
                    ORDER BY iif(?1, entries, bytes) DESC, entries DESC LIMIT 1)
                ORDER BY created_at, rowid LIMIT 1";
        if remove(tx, oldest, [has_too_many])? == 0 {
            break;
        }
    }
    let expires_at = tx.expiry(Some(limits.ttl)).min(tx.expiry(tx.retention.outputs.age));
    let (format, bytes) = (spilled.format.as_str(), size(&spilled.text)?);
    let omitted = i64::try_from(spilled.omitted_bytes).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO spills (key, owner, created_at, expires_at, bytes, format, omitted_bytes, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (key, owner, now, expires_at, bytes, format, omitted, spilled.text),
    )?;
    Ok(())
}

/// Removes some outputs that are too old and that nobody reads now.
pub(crate) fn remove_expired(tx: &Tx<'_>, limit: i64) -> Result<usize, DatabaseError> {
    let (from, to) = reading(tx);
    let expired = "SELECT key FROM spills WHERE (expires_at <= ?1 OR created_at <= ?2)
                     AND key NOT IN (SELECT key FROM reading WHERE read_at BETWEEN ?3 AND ?4)
                   LIMIT ?5";
    remove(tx, expired, (tx.now(), tx.cutoff(tx.retention.outputs.age), from, to, limit))
}

/// Removes the oldest output of the identity that uses most, one that is being read only if there is no other.
pub(crate) fn remove_largest(tx: &Tx<'_>) -> Result<usize, DatabaseError> {
    let (from, to) = reading(tx);
    let oldest = "SELECT key FROM spills
         WHERE owner = (SELECT owner FROM usage WHERE kind = 'spills' AND owner <> x''
                        ORDER BY bytes DESC, owner LIMIT 1)
         ORDER BY key IN (SELECT key FROM reading WHERE read_at BETWEEN ?1 AND ?2), created_at
         LIMIT 1";
    remove(tx, oldest, (from, to))
}

/// Between which times an output was read that somebody still reads. A time in the future comes from a clock that was
/// set back.
fn reading(tx: &Tx<'_>) -> (i64, i64) {
    let now = tx.now();
    (now.saturating_sub(READING_MILLIS), now.saturating_add(READING_MILLIS))
}

/// Removes the outputs whose keys a statement finds, and remembers that they were removed.
fn remove(tx: &Tx<'_>, keys: &str, params: impl rusqlite::Params) -> Result<usize, DatabaseError> {
    let keys = tx.all(keys, params, |row| row.get::<_, String>(0))?;
    for key in &keys {
        remember(tx, OUTPUT, key)?;
        tx.execute("DELETE FROM spills WHERE key = ?1", [key])?;
    }
    Ok(keys.len())
}

fn read(tx: &Tx<'_>, key: &str, offset: usize, limit: usize) -> Result<Page, SpillError> {
    let sql = "SELECT text, format, omitted_bytes FROM spills
               WHERE key = ?1 AND ((expires_at > ?2 AND created_at > ?3)
                   OR key IN (SELECT key FROM reading WHERE read_at BETWEEN ?4 AND ?5))";
    let (oldest, (from, to)) = (tx.cutoff(tx.retention.outputs.age), reading(tx));
    let found = tx.one(sql, (key, tx.now(), oldest, from, to), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, u64>(2)?))
    })?;
    let Some((text, format, omitted_bytes)) = found else {
        let row = tx.one("SELECT 1 FROM spills WHERE key = ?1", [key], |_| Ok(()))?;
        let is_expired = row.is_some() || was_removed(tx, OUTPUT, key)?;
        return Err(if is_expired { SpillError::Expired } else { SpillError::NotFound });
    };
    let mut whole = Spilled::text(text).with_omitted_bytes(omitted_bytes);
    whole.format = SpillFormat::from_word(&format)
        .ok_or_else(|| SpillError::Failed(format!("an output has the unknown format {format}")))?;
    Ok(Page::of(&whole, offset, limit))
}
