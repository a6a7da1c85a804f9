//! Quotas for runs: which runs count against their identity's share, and when they stop counting.

use rusqlite::Row;
use toolcrib_core::bounds::{BoundScope, Full};
use toolcrib_core::run::RunLimits;
use toolcrib_core::suspension::{Outcome, StoreError};

use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::millis;
use crate::retention::sweep::{RUN, remember};
use crate::tables::owner::OwnerDigest;

/// What errors about a full store call the things counted here.
const WHAT: &str = "runs";

/// Sets when a run is over: when the last of its waiting calls expires, or at once if none waits. One that can go on
/// without that is over when it has not changed for as long as runs are kept.
pub(crate) fn update_expiry(tx: &Tx<'_>, run: &str, is_unread: bool) -> Result<(), DatabaseError> {
    let sql = "UPDATE runs SET is_unread = ?2, changed_at = ?3, expires_at = max(
                   coalesce((SELECT max(until) FROM waiting_calls WHERE run = ?1), created_at),
                   iif(is_open, ?4, created_at))
               WHERE id = ?1";
    let open_until = tx.expiry(tx.retention.runs.age);
    tx.execute(sql, (run, is_unread, tx.now(), open_until)).map(drop)
}

/// How an outcome of a suspended call changes the run that the call belongs to.
pub(crate) enum RunEffect {
    Nothing,
    /// The call no longer waits.
    Answered,
    /// It waits as another suspended call, until this time.
    WaitsAs(String, i64),
}

impl RunEffect {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done(_) => Self::Answered,
            Outcome::Waits(next) => Self::WaitsAs(next.id().to_string(), millis(next.expires_at())),
            _ => Self::Nothing,
        }
    }

    /// Applies the effect to the run of a suspended call. A run that no longer waits stops counting before anybody
    /// reads it.
    pub(crate) fn apply_to_run(self, tx: &Tx<'_>, suspension: &str) -> Result<(), DatabaseError> {
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
        run.map_or(Ok(()), |run| update_expiry(tx, &run, true))
    }
}

/// Counts runs that have their answers but that nobody has read since, of one owner or of all.
fn unread(tx: &Tx<'_>, owner: Option<OwnerDigest>, now: i64) -> Result<usize, DatabaseError> {
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

/// Removes the oldest finished run of an owner, or of the owner with the most runs, so that no identity pushes out
/// another's. Runs that a living server has claimed stay.
fn remove_oldest(
    tx: &Tx<'_>,
    owner: Option<OwnerDigest>,
    is_unread: bool,
    now: i64,
) -> Result<bool, DatabaseError> {
    let largest = "SELECT owner FROM usage WHERE kind = 'runs' AND owner <> x'' AND EXISTS (
                       SELECT 1 FROM runs
                       WHERE owner = usage.owner AND is_unread = ?1 AND expires_at <= ?2
                         AND claimed_by NOT IN (SELECT epoch FROM servers))
                   ORDER BY entries DESC, owner LIMIT 1";
    let owner = match owner {
        None => tx.one(largest, (is_unread, now), |row| row.get::<_, OwnerDigest>(0))?,
        owner => owner,
    };
    let Some(owner) = owner else { return Ok(false) };
    let sql = "SELECT id FROM runs
               WHERE owner = ?1 AND is_unread = ?2 AND expires_at <= ?3
                 AND claimed_by NOT IN (SELECT epoch FROM servers)
               ORDER BY expires_at LIMIT 1";
    let row = |row: &Row<'_>| row.get::<_, String>(0);
    let Some(run) = tx.one(sql, (owner, is_unread, now), row)? else { return Ok(false) };
    remember(tx, RUN, &run)?;
    Ok(tx.execute("DELETE FROM runs WHERE id = ?1", [run])? > 0)
}

/// Makes room for one more run of an owner. Unread answers do not count against the quota for runs; a second quota of
/// the same size limits them.
pub(crate) fn make_room(
    tx: &Tx<'_>,
    owner: OwnerDigest,
    now: i64,
    limits: &RunLimits,
) -> Result<(), StoreError> {
    let of = |full: &Full| (full.scope == BoundScope::Identity).then_some(owner);
    loop {
        let (own, all) = (tx.usage("runs", Some(owner))?, tx.usage("runs", None)?);
        let own_unread = unread(tx, Some(owner), now)?;
        let all_unread = unread(tx, None, now)?;
        // At most as many unread answers as the limit allows.
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
