//! The places that runs hold of the share of their identity, and when they give them up.

use rusqlite::Row;
use toolcrib_core::bounds::{Full, Whose};
use toolcrib_core::run::RunLimits;
use toolcrib_core::suspension::{Outcome, StoreError};

use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::millis;
use crate::tables::owner::Owner;

/// What there may be too many of.
const WHAT: &str = "runs";

/// Sets from when on a run is over: when none of its calls waits any more.
pub(crate) fn waits_until(tx: &Tx<'_>, run: &str, is_unread: bool) -> Result<(), DatabaseError> {
    let sql = "UPDATE runs SET is_unread = ?2, expires_at = coalesce(
                   (SELECT max(until) FROM waiting_calls WHERE run = ?1), created_at)
               WHERE id = ?1";
    tx.execute(sql, (run, is_unread)).map(drop)
}

/// What somebody's decision on a call means for the run that the call is part of.
pub(crate) enum Told {
    Nothing,
    /// The call waits no more.
    Answered,
    /// It waits as another suspended call, until then.
    WaitsAs(String, i64),
}

impl Told {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done(_) => Self::Answered,
            Outcome::Waits(next) => Self::WaitsAs(next.id().to_string(), millis(next.expires_at())),
            _ => Self::Nothing,
        }
    }

    /// Tells the run that a suspended call is part of, so that a run that waits no more gives up its place
    /// before somebody reads it.
    pub(crate) fn tell_run(self, tx: &Tx<'_>, suspension: &str) -> Result<(), DatabaseError> {
        let row = |row: &Row<'_>| row.get::<_, String>(0);
        let run = match self {
            Self::Nothing => return Ok(()),
            Self::Answered => {
                let sql = "DELETE FROM waiting_calls WHERE suspension = ?1 RETURNING run";
                tx.one(sql, [suspension], row)?
            }
            Self::WaitsAs(next, until) => {
                let sql = "UPDATE waiting_calls SET suspension = ?2, until = ?3
                           WHERE suspension = ?1 RETURNING run";
                tx.one(sql, (suspension, next, until), row)?
            }
        };
        run.map_or(Ok(()), |run| waits_until(tx, &run, true))
    }
}

/// Runs that were answered and wait no more, but that nobody has read since: of an owner, or of all.
fn unread(tx: &Tx<'_>, owner: Option<Owner>, now: i64) -> Result<usize, DatabaseError> {
    let row = |row: &Row<'_>| row.get::<_, usize>(0);
    let found = match owner {
        Some(owner) => {
            let sql =
                "SELECT count(*) FROM runs WHERE owner = ?1 AND is_unread AND expires_at <= ?2";
            tx.one(sql, (owner, now), row)?
        }
        None => {
            tx.one("SELECT count(*) FROM runs WHERE is_unread AND expires_at <= ?1", [now], row)?
        }
    };
    Ok(found.unwrap_or_default())
}

/// Removes the oldest run that is over, of an owner or of the one that has most, so that nobody's runs are
/// pushed out by another's. What a living server has claimed stays.
fn remove_oldest(
    tx: &Tx<'_>,
    owner: Option<Owner>,
    is_unread: bool,
    now: i64,
) -> Result<bool, DatabaseError> {
    let largest = "SELECT owner FROM usage WHERE kind = 'runs' AND owner <> x'' AND EXISTS (
                       SELECT 1 FROM runs
                       WHERE owner = usage.owner AND is_unread = ?1 AND expires_at <= ?2
                         AND claimed_by NOT IN (SELECT epoch FROM servers))
                   ORDER BY entries DESC, owner LIMIT 1";
    let owner = match owner {
        None => tx.one(largest, (is_unread, now), |row| row.get::<_, Owner>(0))?,
        owner => owner,
    };
    let sql = "DELETE FROM runs WHERE id = (SELECT id FROM runs
                   WHERE owner = ?1 AND is_unread = ?2 AND expires_at <= ?3
                     AND claimed_by NOT IN (SELECT epoch FROM servers)
                   ORDER BY expires_at LIMIT 1)";
    match owner {
        Some(owner) => Ok(tx.execute(sql, (owner, is_unread, now))? > 0),
        None => Ok(false),
    }
}

/// Makes room for one more run of an owner. Runs with answers that nobody has read take no place from
/// others; there may be as many of them again.
pub(crate) fn make_room(
    tx: &Tx<'_>,
    owner: Owner,
    now: i64,
    limits: &RunLimits,
) -> Result<(), StoreError> {
    let of = |full: &Full| (full.whose == Whose::Identity).then_some(owner);
    loop {
        let (own, all) = (tx.usage("runs", Some(owner))?, tx.usage("runs", None)?);
        let own_unread = unread(tx, Some(owner), now)?;
        let all_unread = unread(tx, None, now)?;
        // As many as there may be, and no more.
        let (own_kept, all_kept) = (own_unread.saturating_sub(1), all_unread.saturating_sub(1));
        if let Err(full) = limits.runs.admit(WHAT, own_kept, all_kept)
            && remove_oldest(tx, of(&full), true, now)?
        {
            continue;
        }
        let (entries, all) = (own.entries - own_unread, all.entries - all_unread);
        let Err(full) = limits.room(entries, own.bytes, all) else { return Ok(()) };
        let is_by_size = own.bytes >= limits.identity_bytes;
        let is_removed = remove_oldest(tx, of(&full), false, now)?
            || is_by_size && remove_oldest(tx, of(&full), true, now)?;
        if !is_removed {
            return Err(full.into());
        }
    }
}
