//! The statements that remove what is too old or too much, a few rows at a time.

use std::fmt;

use crate::database::servers::clear_up;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::tables::spills;

/// How many rows one step removes, so that no call waits long for the step's transaction.
pub(crate) const STEP_ROWS: usize = 32;

/// How many removed things are remembered, and for how long.
const REMEMBERED: i64 = 100_000;
const REMEMBERED_MILLIS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// What removed runs are called in the table of removed things.
pub(crate) const RUN: &str = "run";

/// Calls that another server or this one is running now: taken, without an outcome.
const RUNNING: &str = "SELECT id FROM taken WHERE claimed_by IN (SELECT epoch FROM servers)
     UNION ALL SELECT id FROM settled
               WHERE claimed_by IN (SELECT epoch FROM servers)
                 AND json_extract(record, '$.outcome') = 'running'";

/// Which answers have expired, given the present time and the cutoff of their age. A request that is being worked on keeps
/// its key.
pub(crate) const ANSWER_HAS_EXPIRED: &str = "(expires_at <= ?1 OR created_at <= ?2)
     AND NOT (status IS NULL AND claimed_by IN (SELECT epoch FROM servers))";

/// How much was removed because of its age or to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Runs.
    pub runs: usize,
    /// Long outputs.
    pub outputs: usize,
    /// Answers under an `Idempotency-Key`.
    pub answers: usize,
    /// Waiting calls that had expired, and records of calls that others decided on.
    pub decisions: usize,
    /// Tasks of MCP clients.
    pub tasks: usize,
}

impl Swept {
    /// The number of removed things.
    pub fn total(&self) -> usize {
        self.runs + self.outputs + self.answers + self.decisions + self.tasks
    }
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, outputs, answers, decisions, tasks } = self;
        write!(
            f,
            "runs: {runs}, outputs: {outputs}, answers: {answers}, decisions: {decisions}, tasks: {tasks}"
        )
    }
}

/// What a step removes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Runs,
    Outputs,
    Answers,
    Tasks,
    Suspensions,
    Taken,
    Settled,
    Resolved,
    Remembered,
}

impl Part {
    pub(crate) const ALL: [Self; 9] = [
        Self::Outputs,
        Self::Runs,
        Self::Answers,
        Self::Tasks,
        Self::Suspensions,
        Self::Taken,
        Self::Settled,
        Self::Resolved,
        Self::Remembered,
    ];

    /// Removes a few rows, at most [`STEP_ROWS`], and returns how many; 0 if none are left.
    pub(crate) fn step(self, tx: &Tx<'_>) -> Result<usize, DatabaseError> {
        let (now, kept) = (tx.now(), tx.retention);
        match self {
            Self::Runs => runs(tx),
            Self::Outputs => outputs(tx),
            Self::Answers => tx.execute(
                &format!(
                    "DELETE FROM answers WHERE key IN
                         (SELECT key FROM answers WHERE {ANSWER_HAS_EXPIRED} LIMIT {STEP_ROWS})"
                ),
                (now, tx.cutoff(kept.answers)),
            ),
            Self::Tasks => tx.execute(
                &format!(
                    "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks
                         WHERE expires_at <= ?1
                           AND NOT (ended_at IS NULL AND claimed_by IN (SELECT epoch FROM servers))
                         LIMIT {STEP_ROWS})"
                ),
                [now],
            ),
            Self::Suspensions => tx.execute(
                &format!(
                    "DELETE FROM suspensions WHERE id IN
                         (SELECT id FROM suspensions WHERE expires_at <= ?1 LIMIT {STEP_ROWS})"
                ),
                [tx.cutoff(kept.decisions)],
            ),
            Self::Taken => tx.execute(
                &format!(
                    "DELETE FROM taken WHERE id IN (SELECT id FROM taken
                         WHERE (expires_at <= ?1 OR taken_at <= ?2)
                           AND claimed_by NOT IN (SELECT epoch FROM servers)
                         LIMIT {STEP_ROWS})"
                ),
                (now, tx.cutoff(kept.decisions)),
            ),
            Self::Settled => tx.execute(
                &format!(
                    "DELETE FROM settled WHERE id IN (SELECT id FROM settled
                         WHERE (expires_at <= ?1 OR decided_at <= ?2) AND id NOT IN ({RUNNING})
                         LIMIT {STEP_ROWS})"
                ),
                (now, tx.cutoff(kept.decisions)),
            ),
            Self::Resolved => tx.execute(
                &format!(
                    "DELETE FROM resolved WHERE id IN (SELECT id FROM resolved
                         WHERE expires_at <= ?1 OR resolved_at <= ?2 LIMIT {STEP_ROWS})"
                ),
                (now, tx.cutoff(kept.decisions)),
            ),
            Self::Remembered => remembered(tx),
        }
    }

    /// Adds removed rows to what is reported.
    pub(crate) fn count(self, swept: &mut Swept, rows: usize) {
        match self {
            Self::Runs => swept.runs += rows,
            Self::Outputs => swept.outputs += rows,
            Self::Answers => swept.answers += rows,
            Self::Tasks => swept.tasks += rows,
            Self::Suspensions | Self::Taken | Self::Settled | Self::Resolved => {
                swept.decisions += rows;
            }
            Self::Remembered => {}
        }
    }
}

/// Whether more bytes of a kind are kept than its limit.
fn is_over(tx: &Tx<'_>, kind: &str, max_bytes: Option<u64>) -> Result<bool, DatabaseError> {
    let Some(max) = max_bytes else { return Ok(false) };
    let bytes = tx.usage(kind, None)?.bytes;
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX) > max)
}

/// Remembers that something was removed.
pub(crate) fn remember(tx: &Tx<'_>, kind: &str, id: &str) -> Result<(), DatabaseError> {
    let sql = "INSERT OR REPLACE INTO removed (kind, id, removed_at) VALUES (?1, ?2, ?3)";
    tx.execute(sql, (kind, id, tx.now())).map(drop)
}

/// Whether something was removed because of its age or to make room.
pub(crate) fn was_removed(tx: &Tx<'_>, kind: &str, id: &str) -> Result<bool, DatabaseError> {
    let sql = "SELECT 1 FROM removed WHERE kind = ?1 AND id = ?2";
    Ok(tx.one(sql, (kind, id), |_| Ok(()))?.is_some())
}

/// Removes runs that are over: none of whose calls waits or runs, and that no living server has claimed.
fn runs(tx: &Tx<'_>) -> Result<usize, DatabaseError> {
    let is_over_and_done = format!(
        "expires_at <= ?1 AND claimed_by NOT IN (SELECT epoch FROM servers)
         AND NOT EXISTS (SELECT 1 FROM waiting_calls
                         WHERE run = runs.id AND suspension IN ({RUNNING}))"
    );
    let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let old = format!(
        "SELECT id FROM runs WHERE changed_at <= ?2 AND {is_over_and_done}
         ORDER BY changed_at LIMIT {STEP_ROWS}"
    );
    let now = tx.now();
    let mut ids = tx.all(&old, (now, tx.cutoff(tx.retention.runs.age)), read)?;
    if ids.is_empty() && is_over(tx, "runs", tx.retention.runs.max_bytes)? {
        let oldest = format!(
            "SELECT id FROM runs
             WHERE owner = (SELECT owner FROM usage WHERE kind = 'runs' AND owner <> x'' AND EXISTS
                                (SELECT 1 FROM runs WHERE owner = usage.owner AND {is_over_and_done})
                            ORDER BY bytes DESC, owner LIMIT 1)
               AND {is_over_and_done}
             ORDER BY changed_at LIMIT 1"
        );
        ids = tx.all(&oldest, [now], read)?;
    }
    for id in &ids {
        remember(tx, RUN, id)?;
        tx.execute("DELETE FROM runs WHERE id = ?1", [id])?;
    }
    Ok(ids.len())
}

fn outputs(tx: &Tx<'_>) -> Result<usize, DatabaseError> {
    let removed = spills::remove_expired(tx, i64::try_from(STEP_ROWS).unwrap_or(1))?;
    if removed == 0 && is_over(tx, "spills", tx.retention.outputs.max_bytes)? {
        return spills::remove_largest(tx);
    }
    Ok(removed)
}

/// Forgets what was removed long ago, and the oldest if there are too many.
fn remembered(tx: &Tx<'_>) -> Result<usize, DatabaseError> {
    let old = tx.now().saturating_sub(REMEMBERED_MILLIS);
    let all: Option<i64> = tx.one("SELECT count(*) FROM removed", [], |row| row.get(0))?;
    let too_many = all.unwrap_or_default().saturating_sub(REMEMBERED);
    let step = i64::try_from(STEP_ROWS).unwrap_or(1);
    if too_many > 0 {
        let sql = "DELETE FROM removed WHERE (kind, id) IN
                       (SELECT kind, id FROM removed ORDER BY removed_at LIMIT ?1)";
        return tx.execute(sql, [too_many.min(step)]);
    }
    let sql = "DELETE FROM removed WHERE (kind, id) IN
                   (SELECT kind, id FROM removed WHERE removed_at <= ?1 LIMIT ?2)";
    tx.execute(sql, (old, step))
}

/// Takes the turn to sweep: false if another living server has swept in the last interval.
pub(crate) fn take_turn(tx: &Tx<'_>, interval_millis: i64) -> Result<bool, DatabaseError> {
    let sql = "SELECT server, began_at FROM sweeps WHERE only_row = 1";
    let last = tx.one(sql, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    if let Some((server, began_at)) = last {
        // A time in the future comes from a clock that was set back.
        let is_recent = (0..interval_millis).contains(&tx.now().saturating_sub(began_at));
        if server != tx.server && is_recent && tx.is_alive(server)? {
            return Ok(false);
        }
    }
    // What servers that were killed had claimed is not in use.
    clear_up(tx.connection, tx.place)?;
    let sql = "INSERT OR REPLACE INTO sweeps (only_row, server, began_at) VALUES (1, ?1, ?2)";
    tx.execute(sql, (tx.server, tx.now()))?;
    Ok(true)
}
