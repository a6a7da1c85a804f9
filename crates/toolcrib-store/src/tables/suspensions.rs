//! Stores suspended calls as rows: waiting calls, taken calls, and their outcomes.

use std::time::Duration;

use rusqlite::{Row, params_from_iter};
use serde::de::DeserializeOwned;
use toolcrib_core::bounds::{BoundScope, Bounds};
use toolcrib_core::clock::Timestamp;
use toolcrib_core::suspension::{
    Outcome, Resolved, Settled, StoreError, Suspension, SuspensionId, SuspensionStore,
};
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::database::servers::Epoch;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::millis;
use crate::run_quota::RunEffect;
use crate::tables::history::{History, ResolvedRow};
use crate::tables::owner::OwnerDigest;
use crate::tables::record::{one, parse, readable, size, text_of};

/// What errors about a full store call the things counted here.
pub(crate) const WHAT: &str = "calls that wait";

/// How many expired rows a change removes in passing.
pub(crate) const SWEEP_LIMIT: i64 = 16;

/// Finds how a call was resolved.
const RESOLVED: &str = "SELECT record FROM resolved WHERE id = ?1";

/// Stores suspended calls. Of all processes, exactly one can take a call.
///
/// Each identity has its own share. When it is full, expired calls are removed. The outcome of a call that somebody
/// else decided on is kept for a day. If a server dies before it has stored the outcome of a call that it took, the
/// outcome is known at once: that the call was refused, or that it is unknown whether it ran. Records contain
/// arguments in plain text.
#[derive(Debug, Clone)]
pub struct Suspensions {
    database: Database,
    bounds: Bounds,
}

impl Suspensions {
    /// Opens the suspended calls of a database with [the default bounds](Bounds::default).
    pub fn new(database: &Database) -> Self {
        Self::within(database, Bounds::default())
    }

    /// Opens the suspended calls of a database with other bounds. They limit the waiting calls and, separately, the
    /// outcomes that wait for their callers.
    pub fn within(database: &Database, bounds: Bounds) -> Self {
        Self { database: database.clone(), bounds }
    }

    fn place(&self) -> impl Fn(&str) -> String + Send + 'static {
        self.database.naming("the suspended call")
    }

    /// What a statement finds under the id of a call.
    async fn record<T: DeserializeOwned + Send + 'static>(
        &self,
        sql: &'static str,
        id: &SuspensionId,
    ) -> Result<Option<T>, StoreError> {
        let (key, place) = (id.to_string(), self.place());
        self.database.read(move |tx| one(tx, sql, &key, place)).await
    }

    /// All that a statement finds: of one owner, or of all.
    async fn records<T: DeserializeOwned + Send + 'static>(
        &self,
        sql: &'static str,
        owner: Option<OwnerDigest>,
    ) -> Result<Vec<T>, StoreError> {
        let place = self.place();
        let list = move |tx: &Tx<'_>| -> Result<_, StoreError> {
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            Ok(readable(tx.all(sql, params_from_iter(owner), row)?, place))
        };
        self.database.read(list).await
    }

    /// Takes a call out and remembers who decided on it. `keep` stores the call, and gets its text too.
    async fn take_and(
        &self,
        id: &SuspensionId,
        resolved: &Resolved,
        keep: impl FnOnce(&Tx<'_>, &Suspension, String) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<Option<Suspension>, StoreError> {
        let (key, place, bounds) = (id.to_string(), self.place(), self.bounds);
        let resolved = ResolvedRow::of(&key, resolved)?;
        let take = move |tx: &Tx<'_>| -> Result<_, StoreError> {
            let sql = "DELETE FROM suspensions WHERE id = ?1 RETURNING record";
            let found = tx.one(sql, [&key], |row| row.get::<_, String>(0))?;
            let Some(text) = found else { return Ok(None) };
            // One that cannot be read is an error, so nothing is removed.
            let taken: Suspension = parse(&text, || place(&key))?;
            resolved.keep(tx, bounds)?;
            keep(tx, &taken, text)?;
            Ok(Some(taken))
        };
        self.database.write(take).await
    }
}

impl SuspensionStore for Suspensions {
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (row, bounds) = (WaitingRow::of(suspension)?, self.bounds);
            self.database.write(move |tx| row.put(tx, bounds)).await
        })
    }

    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(self.record("SELECT record FROM suspensions WHERE id = ?1", id))
    }

    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(self.take_and(id, resolved, keep_taken))
    }

    fn take_for_caller<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        let (at, bounds) = (resolved.at(), self.bounds);
        Box::pin(self.take_and(id, resolved, move |tx, taken, _| {
            SettledRow::of(&Settled::running(taken.clone(), at))?.settle(tx, bounds)
        }))
    }

    fn resolved<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Resolved>, StoreError>> {
        Box::pin(self.record(RESOLVED, id))
    }

    fn waits_elsewhere<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        Box::pin(async move {
            let key = id.to_string();
            self.database.read(move |tx| waits_elsewhere(tx, &key)).await
        })
    }

    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>> {
        let sql = "SELECT id, record FROM suspensions WHERE owner = ?1 ORDER BY created_at, id";
        Box::pin(self.records(sql, Some(OwnerDigest::of(identity))))
    }

    fn same_call<'a>(
        &'a self,
        call: &'a Suspension,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>> {
        Box::pin(async move {
            let (id, key, place) = (call.id().to_string(), call.call_key(), self.place());
            let (key, now) = (key.to_string(), millis(now));
            let look = move |tx: &Tx<'_>| same_call(tx, &id, &key, now, place);
            self.database.read(look).await
        })
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>> {
        Box::pin(self.records("SELECT id, record FROM suspensions ORDER BY created_at, id", None))
    }

    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (row, bounds) = (SettledRow::of(settled)?, self.bounds);
            self.database.write(move |tx| row.settle(tx, bounds)).await
        })
    }

    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        Box::pin(async move {
            let (key, place) = (id.to_string(), self.place());
            let look = move |tx: &Tx<'_>| CallState::look(tx, &key, &place);
            match self.database.read(look).await? {
                CallState::Nothing => Ok(None),
                CallState::Known(settled) => Ok(Some(*settled)),
                CallState::Lost => {
                    let (key, place) = (id.to_string(), self.place());
                    self.database.write(move |tx| take_over(tx, &key, &place)).await
                }
            }
        })
    }

    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>> {
        Box::pin(async move {
            let (key, place) = (id.to_string(), self.place());
            let sql = "DELETE FROM settled WHERE id = ?1 RETURNING record";
            self.database.write(move |tx| one(tx, sql, &key, place)).await
        })
    }

    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>> {
        let sql = "SELECT id, record FROM settled WHERE owner = ?1 ORDER BY decided_at, id";
        Box::pin(self.records(sql, Some(OwnerDigest::of(identity))))
    }
}

/// A row of a waiting call.
struct WaitingRow {
    id: String,
    owner: OwnerDigest,
    created_at: i64,
    expires_at: i64,
    call_key: Option<String>,
    text: String,
}

/// The key by which an equal call finds this one, if equal calls may join.
fn call_key(suspension: &Suspension) -> Option<String> {
    suspension.caller().is_joinable().then(|| suspension.call_key().to_string())
}

impl WaitingRow {
    fn of(suspension: &Suspension) -> Result<Self, StoreError> {
        Ok(Self {
            id: suspension.id().to_string(),
            owner: OwnerDigest::of(suspension.identity()),
            created_at: millis(suspension.created_at()),
            expires_at: millis(suspension.expires_at()),
            call_key: call_key(suspension),
            text: text_of(suspension)?,
        })
    }

    fn put(self, tx: &Tx<'_>, bounds: Bounds) -> Result<(), StoreError> {
        self.make_room(tx, bounds)?;
        let Self { id, owner, created_at, expires_at, call_key, text } = self;
        let bytes = size(&text)?;
        tx.execute(
            "INSERT INTO suspensions
                 (id, owner, created_at, expires_at, bytes, record, waits_in, call_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (id) DO UPDATE SET bytes = ?5, record = ?6",
            (id, owner, created_at, expires_at, bytes, text, tx.server, call_key),
        )?;
        Ok(())
    }
}

impl WaitingRow {
    fn make_room(&self, tx: &Tx<'_>, bounds: Bounds) -> Result<(), StoreError> {
        let admit = || -> Result<_, StoreError> {
            let own = tx.usage("suspensions", Some(self.owner))?.entries;
            Ok(bounds.admit(WHAT, own, tx.usage("suspensions", None)?.entries))
        };
        let Err(full) = admit()? else { return Ok(()) };
        // The newest call's creation time is the best known time.
        let now = self.created_at;
        if full.scope == BoundScope::All {
            tx.execute("DELETE FROM suspensions WHERE expires_at <= ?1", [now])?
        } else {
            let sql = "DELETE FROM suspensions WHERE owner = ?1 AND expires_at <= ?2";
            tx.execute(sql, (self.owner, now))?
        };
        let Err(full) = admit()? else { return Ok(()) };
        let read = |row: &Row<'_>| row.get::<_, Option<i64>>(0);
        let next = if full.scope == BoundScope::All {
            tx.one("SELECT min(expires_at) FROM suspensions", [], read)?
        } else {
            let sql = "SELECT min(expires_at) FROM suspensions WHERE owner = ?1";
            tx.one(sql, [self.owner], read)?
        };
        let never = millis(Timestamp::NEVER);
        let wait = next.flatten().filter(|at| *at != never).map(|at| at.saturating_sub(now));
        Err(match wait.and_then(|wait| u64::try_from(wait).ok()) {
            Some(wait) => full.with_retry_after(Duration::from_millis(wait)).into(),
            None => full.into(),
        })
    }
}

/// The process id of the other server in which a call waits, as long as that server lives.
fn waits_elsewhere(tx: &Tx<'_>, id: &str) -> Result<Option<u32>, StoreError> {
    let sql = "SELECT epoch, pid FROM servers
               WHERE epoch = (SELECT waits_in FROM suspensions WHERE id = ?1)";
    let row = |row: &Row<'_>| Ok((row.get::<_, Epoch>(0)?, row.get::<_, u32>(1)?));
    let Some((epoch, process)) = tx.one(sql, [id], row)? else { return Ok(None) };
    Ok((epoch != tx.server && tx.is_alive(epoch)?).then_some(process))
}

/// Finds an earlier equal call: its outcome, or its suspension.
fn same_call(
    tx: &Tx<'_>,
    id: &str,
    key: &str,
    now: i64,
    place: impl Fn(&str) -> String,
) -> Result<Option<Suspension>, StoreError> {
    let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let sql = "SELECT id, record FROM settled
               WHERE call_key = ?1 AND id <> ?2 AND expires_at >= ?3
               ORDER BY decided_at, id LIMIT 1";
    if let Some((found, text)) = tx.one(sql, (key, id, now), row)? {
        let settled: Settled = parse(&text, || place(&found))?;
        return Ok(Some(settled.suspension().clone()));
    }
    let sql = "SELECT id, record FROM suspensions
               WHERE call_key = ?1 AND id <> ?2 AND expires_at > ?3
               ORDER BY created_at, id LIMIT 1";
    let Some((found, text)) = tx.one(sql, (key, id, now), row)? else { return Ok(None) };
    Ok(Some(parse(&text, || place(&found))?))
}

/// Records that this server has taken a call.
fn keep_taken(tx: &Tx<'_>, taken: &Suspension, text: String) -> Result<(), StoreError> {
    let now = tx.now();
    let (owner, bytes) = (OwnerDigest::of(taken.identity()), size(&text)?);
    let expires_at = tx.expiry(tx.retention.decisions);
    tx.execute(
        "INSERT OR REPLACE INTO taken (id, owner, taken_at, expires_at, bytes, claimed_by, record)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (taken.id().to_string(), owner, now, expires_at, bytes, tx.server, text),
    )?;
    Ok(())
}

/// A row with the outcome of a call.
struct SettledRow {
    id: String,
    owner: OwnerDigest,
    decided_at: i64,
    call_key: Option<String>,
    outcome: RunEffect,
    text: String,
}

impl SettledRow {
    fn of(settled: &Settled) -> Result<Self, StoreError> {
        let suspension = settled.suspension();
        Ok(Self {
            id: suspension.id().to_string(),
            owner: OwnerDigest::of(suspension.identity()),
            decided_at: millis(settled.decided_at()),
            call_key: call_key(suspension),
            outcome: RunEffect::of(settled.outcome()),
            text: text_of(settled)?,
        })
    }

    /// Stores the row, unless another server has taken the call over since.
    fn settle(self, tx: &Tx<'_>, bounds: Bounds) -> Result<(), StoreError> {
        let claims = "SELECT claimed_by FROM settled WHERE id = ?1
                      UNION ALL SELECT claimed_by FROM taken WHERE id = ?1";
        let claims = tx.all(claims, [&self.id], |row| row.get::<_, Epoch>(0))?;
        if claims.iter().any(|claimed_by| *claimed_by != tx.server) {
            return Err(StoreError::Conflict);
        }
        tx.execute("DELETE FROM taken WHERE id = ?1", [&self.id])?;
        tx.execute("DELETE FROM settled WHERE id = ?1", [&self.id])?;
        History::SETTLED.make_room(tx, self.owner, self.decided_at, bounds)?;
        self.keep(tx)?;
        Ok(())
    }

    fn keep(self, tx: &Tx<'_>) -> Result<(), DatabaseError> {
        let Self { id, owner, decided_at, call_key, outcome, text } = self;
        outcome.apply_to_run(tx, &id)?;
        let (expires_at, bytes) = (tx.expiry(tx.retention.decisions), size(&text)?);
        tx.execute(
            "INSERT OR REPLACE INTO settled
                 (id, owner, decided_at, expires_at, bytes, claimed_by, record, call_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (id, owner, decided_at, expires_at, bytes, tx.server, text, call_key),
        )?;
        Ok(())
    }
}

/// The state of a call that no longer waits.
enum CallState {
    Nothing,
    Known(Box<Settled>),
    /// The server that took it died before it stored an outcome.
    Lost,
}

impl CallState {
    fn look(tx: &Tx<'_>, id: &str, place: &impl Fn(&str) -> String) -> Result<Self, StoreError> {
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Epoch>(1)?));
        let sql = "SELECT record, claimed_by FROM settled WHERE id = ?1";
        if let Some((text, claimed_by)) = tx.one(sql, [id], row)? {
            let settled: Settled = parse(&text, || place(id))?;
            let is_lost = *settled.outcome() == Outcome::Running && !tx.is_alive(claimed_by)?;
            return Ok(if is_lost { Self::Lost } else { Self::Known(Box::new(settled)) });
        }
        let sql = "SELECT claimed_by FROM taken WHERE id = ?1";
        let Some(claimed_by) = tx.one(sql, [id], |row| row.get(0))? else {
            return Ok(Self::Nothing);
        };
        // As long as the server that took it lives, that server stores the outcome.
        Ok(if tx.is_alive(claimed_by)? { Self::Nothing } else { Self::Lost })
    }
}

/// Takes over a call whose server died, and stores an outcome: that it was refused, if it was denied or cancelled or has
/// expired, or else that it is unknown whether it ran.
fn take_over(
    tx: &Tx<'_>,
    id: &str,
    place: &impl Fn(&str) -> String,
) -> Result<Option<Settled>, StoreError> {
    // Another server may have been faster.
    match CallState::look(tx, id, place)? {
        CallState::Nothing => return Ok(None),
        CallState::Known(settled) => return Ok(Some(*settled)),
        CallState::Lost => {}
    }
    let sql = "DELETE FROM taken WHERE id = ?1 RETURNING record, taken_at";
    let taken = tx.one(sql, [id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)))?;
    let settled = if let Some((text, at)) = taken {
        let suspension: Suspension = parse(&text, || place(id))?;
        Settled::running(suspension, Timestamp::from_unix_millis(at))
    } else {
        let sql = "SELECT record FROM settled WHERE id = ?1";
        let Some(settled) = one(tx, sql, id, place)? else { return Ok(None) };
        settled
    };
    let resolved = one(tx, RESOLVED, id, place)?;
    let lost = settled.lost(resolved.as_ref());
    SettledRow::of(&lost)?.keep(tx)?;
    Ok(Some(lost))
}
