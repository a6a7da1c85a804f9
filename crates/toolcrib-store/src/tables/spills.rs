//! Stores long outputs as rows.

use std::time::Duration;

use toolcrib_core::spill::{
    Handle, Owner as SpillOwner, Page, SpillError, SpillFormat, SpillKey, SpillLimits, SpillStore,
    Spilled,
};
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::database::transaction::Tx;
use crate::millis;
use crate::tables::owner::OwnerDigest;
use crate::tables::record::size;

/// Stores long outputs, limited by bytes, number and age. When the store is full, the oldest output of the identity
/// that uses most is removed.
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
            self.database.read(move |tx| read(tx, &key, offset, limit)).await
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
    tx.execute("DELETE FROM spills WHERE expires_at <= ?1", [now])?;
    let bytes = spilled.text.len();
    while tx.usage("spills", Some(owner))?.bytes.saturating_add(bytes) > limits.max_owner_bytes {
        let own = "DELETE FROM spills WHERE rowid =
                   (SELECT rowid FROM spills WHERE owner = ?1 ORDER BY created_at, rowid LIMIT 1)";
        if tx.execute(own, [owner])? == 0 {
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
        let oldest = "DELETE FROM spills WHERE rowid = (
                SELECT rowid FROM spills WHERE owner = (
                    SELECT owner FROM usage WHERE kind = 'spills' AND owner <> x''
                    ORDER BY iif(?1, entries, bytes) DESC, entries DESC LIMIT 1)
                ORDER BY created_at, rowid LIMIT 1)";
        if tx.execute(oldest, [has_too_many])? == 0 {
            break;
        }
    }
    let expires_at = millis(tx.now.after(limits.ttl));
    let (format, bytes) = (spilled.format.as_str(), size(&spilled.text)?);
    let omitted = i64::try_from(spilled.omitted_bytes).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO spills (key, owner, created_at, expires_at, bytes, format, omitted_bytes, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (key, owner, now, expires_at, bytes, format, omitted, spilled.text),
    )?;
    Ok(())
}

fn read(tx: &Tx<'_>, key: &str, offset: usize, limit: usize) -> Result<Page, SpillError> {
    let sql = "SELECT text, format, omitted_bytes FROM spills WHERE key = ?1 AND expires_at > ?2";
    let found = tx.one(sql, (key, tx.now()), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, u64>(2)?))
    })?;
    let (text, format, omitted_bytes) = found.ok_or(SpillError::NotFound)?;
    let mut whole = Spilled::text(text).with_omitted_bytes(omitted_bytes);
    whole.format = SpillFormat::from_word(&format)
        .ok_or_else(|| SpillError::Failed(format!("an output has the unknown format {format}")))?;
    Ok(Page::of(&whole, offset, limit))
}
