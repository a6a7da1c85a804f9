//! Tables of past calls, in which the oldest rows make room for new ones.

use toolcrib_core::bounds::{BoundScope, Bounds};
use toolcrib_core::suspension::{Resolved, StoreError};

use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::millis;
use crate::tables::owner::OwnerDigest;
use crate::tables::record::{size, text_of};
use crate::tables::suspensions::{SWEEP_LIMIT, WHAT};

/// A row that records who resolved a waiting call and how.
pub(crate) struct ResolvedRow {
    id: String,
    owner: OwnerDigest,
    at: i64,
    text: String,
}

impl ResolvedRow {
    pub(crate) fn of(id: &str, resolved: &Resolved) -> Result<Self, StoreError> {
        Ok(Self {
            id: id.to_owned(),
            owner: OwnerDigest::of(resolved.identity()),
            at: millis(resolved.at()),
            text: text_of(resolved)?,
        })
    }

    pub(crate) fn keep(self, tx: &Tx<'_>, bounds: Bounds) -> Result<(), DatabaseError> {
        let Self { id, owner, at, text } = self;
        History::RESOLVED.make_room(tx, owner, at, bounds)?;
        let (expires_at, bytes) = (tx.expiry(tx.retention.decisions), size(&text)?);
        tx.execute(
            "INSERT OR REPLACE INTO resolved (id, owner, resolved_at, expires_at, bytes, record)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (id, owner, at, expires_at, bytes, text),
        )?;
        Ok(())
    }
}

/// A table of past calls in which the oldest rows are removed to make room.
pub(crate) struct History {
    table: &'static str,
    /// Removes up to a number of rows that expired before a time.
    forget: &'static str,
    remove_oldest_of_owner: &'static str,
}

impl History {
    pub(crate) const SETTLED: Self = Self {
        table: "settled",
        forget: "DELETE FROM settled WHERE id IN
                     (SELECT id FROM settled WHERE expires_at < ?1
                        AND claimed_by NOT IN (SELECT epoch FROM servers) LIMIT ?2)",
        remove_oldest_of_owner: "DELETE FROM settled WHERE id = (SELECT id FROM settled
                                     WHERE owner = ?1 ORDER BY decided_at, id LIMIT 1)",
    };
    pub(crate) const RESOLVED: Self = Self {
        table: "resolved",
        forget: "DELETE FROM resolved WHERE id IN
                     (SELECT id FROM resolved WHERE expires_at < ?1 LIMIT ?2)",
        remove_oldest_of_owner: "DELETE FROM resolved WHERE id = (SELECT id FROM resolved
                                     WHERE owner = ?1 ORDER BY resolved_at, id LIMIT 1)",
    };

    /// Makes room for one more row of an owner. Outcomes that nobody fetched are removed from the owner's own share.
    pub(crate) fn make_room(
        &self,
        tx: &Tx<'_>,
        owner: OwnerDigest,
        now: i64,
        bounds: Bounds,
    ) -> Result<(), DatabaseError> {
        tx.execute(self.forget, (now, SWEEP_LIMIT))?;
        loop {
            let own = tx.usage(self.table, Some(owner))?.entries;
            let all = tx.usage(self.table, None)?.entries;
            let Err(full) = bounds.admit(WHAT, own, all) else { return Ok(()) };
            let owner = match full.scope {
                BoundScope::All => tx.largest_holder(self.table)?,
                _ => Some(owner),
            };
            let Some(owner) = owner else { return Ok(()) };
            if tx.execute(self.remove_oldest_of_owner, [owner])? == 0 {
                return Ok(());
            }
        }
    }
}
