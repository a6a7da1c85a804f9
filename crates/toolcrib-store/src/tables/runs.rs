//! Stores journals of runs as rows.

use rusqlite::Row;
use toolcrib_core::run::{
    Claim, Journal, JournalEntry, JournalPage, MESSAGES_MAX, MessageNumber, RunCursor, RunId,
    RunLimits, RunRequests, Seq, too_many_messages,
};
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::database::servers::Epoch;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::millis;
use crate::retention::sweep::{RUN, was_removed};
use crate::run_quota::{make_room, update_expiry};
use crate::tables::owner::OwnerDigest;
use crate::tables::record::{parse, size};

/// The claim of a run that no server has claimed.
const NO_SERVER: Epoch = 0;

/// A page ends after this many bytes.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Stores the journals of runs, one row for each entry. Only the next entries of a journal are accepted, and only from
/// the server that holds the claim.
///
/// Each identity has its own share. When it is full, the oldest runs that are over, or whose calls have all expired,
/// are removed, but not agents' runs that can go on. A run whose calls others have answered stops counting against the share at once. It can still be read,
/// until a second share of the same size is full of such runs. Entries contain arguments and results in plain text.
#[derive(Debug, Clone)]
pub struct Runs {
    database: Database,
    limits: RunLimits,
}

impl Runs {
    /// Opens the journals of a database with [the default limits](RunLimits::default).
    pub fn new(database: &Database) -> Self {
        Self::within(database, RunLimits::default())
    }

    /// Opens the journals of a database with other limits.
    pub fn within(database: &Database, limits: impl Into<RunLimits>) -> Self {
        Self { database: database.clone(), limits: limits.into() }
    }
}

impl Journal for Runs {
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        entries: &'a [JournalEntry],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>> {
        Box::pin(async move {
            let limits = self.limits;
            let append = Append::of(run, after, entries, claim, &limits)?;
            self.database.write(move |tx| append.run(tx, &limits)).await
        })
    }

    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<JournalPage>, StoreError>> {
        Box::pin(async move {
            let (run, place) = (run.to_string(), self.database.naming("the journal of the run"));
            self.database.read(move |tx| page(tx, &run, after, limit, place)).await
        })
    }

    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>> {
        Box::pin(async move {
            let owner = OwnerDigest::of(identity);
            let (since, id) = match after {
                Some(after) => (millis(after.created_at()), after.id().to_string()),
                None => (i64::MIN, String::new()),
            };
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let list = move |tx: &Tx<'_>| -> Result<_, StoreError> {
                let sql = "SELECT cast(created_at AS TEXT) || '-' || id FROM runs
                           WHERE owner = ?1 AND (created_at, id) > (?2, ?3)
                           ORDER BY created_at, id LIMIT ?4";
                let row = |row: &Row<'_>| row.get::<_, String>(0);
                let rows = tx.all(sql, (owner, since, id, limit), row)?;
                Ok(rows.iter().filter_map(|row| row.parse().ok()).collect())
            };
            self.database.read(list).await
        })
    }

    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>> {
        Box::pin(async move {
            let key = run.to_string();
            let claim = move |tx: &Tx<'_>| -> Result<_, StoreError> {
                let Some(head) = RunHead::of(tx, &key)? else { return Ok(None) };
                if head.claimed_by != tx.server {
                    head.check(tx, None)?;
                }
                let sql = "UPDATE runs SET claimed_by = ?2, term = term + 1 WHERE id = ?1";
                tx.execute(sql, (&key, tx.server))?;
                Ok(Some(head.term + 1))
            };
            let term = self.database.write(claim).await?;
            Ok(term.map(|term| Claim::new(run.clone(), term)))
        })
    }

    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (run, term) = (claim.run().to_string(), claim.term());
            let release = move |tx: &Tx<'_>| -> Result<(), StoreError> {
                let sql = "UPDATE runs SET claimed_by = ?4
                           WHERE id = ?1 AND claimed_by = ?2 AND term = ?3";
                tx.execute(sql, (run, tx.server, term, NO_SERVER))?;
                Ok(())
            };
            self.database.write(release).await
        })
    }

    fn ask_to_cancel<'a>(
        &'a self,
        run: &'a RunId,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (run, reason) = (run.to_string(), reason.to_owned());
            let ask = move |tx: &Tx<'_>| -> Result<bool, StoreError> {
                let sql = "UPDATE runs SET cancel_reason = ?2 WHERE id = ?1 AND is_open = 1";
                Ok(tx.execute(sql, (run, reason))? > 0)
            };
            self.database.write(ask).await
        })
    }

    fn leave_message<'a>(
        &'a self,
        run: &'a RunId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<MessageNumber>, StoreError>> {
        Box::pin(async move {
            self.limits.admit(message.len(), 0)?;
            let (run, message) = (run.to_string(), message.to_owned());
            let leave = move |tx: &Tx<'_>| -> Result<_, StoreError> {
                let sql = "SELECT count(*) FROM run_messages WHERE run = ?1";
                let waiting = tx.one(sql, [&run], |row| row.get::<_, usize>(0))?;
                if waiting.unwrap_or_default() >= MESSAGES_MAX {
                    return Err(too_many_messages());
                }
                let sql = "INSERT INTO run_messages (run, message)
                           SELECT id, ?2 FROM runs WHERE id = ?1 AND is_open = 1
                           RETURNING number";
                Ok(tx.one(sql, (run, message), |row| row.get(0))?)
            };
            self.database.write(leave).await
        })
    }

    fn withdraw_message<'a>(
        &'a self,
        run: &'a RunId,
        message: MessageNumber,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let run = run.to_string();
            self.database.write(move |tx| remove_message(tx, &run, message)).await
        })
    }

    fn requests<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunRequests, StoreError>> {
        Box::pin(async move {
            let run = run.to_string();
            let read = move |tx: &Tx<'_>| -> Result<RunRequests, StoreError> {
                let sql = "SELECT cancel_reason FROM runs WHERE id = ?1";
                let cancel = tx.one(sql, [&run], |row| row.get::<_, Option<String>>(0))?.flatten();
                let sql = "SELECT number, message FROM run_messages WHERE run = ?1 ORDER BY number";
                let messages = tx.all(sql, [&run], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(RunRequests { cancel, messages })
            };
            self.database.read(read).await
        })
    }

    fn claimed_elsewhere<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        Box::pin(async move {
            let run = run.to_string();
            let read = move |tx: &Tx<'_>| -> Result<Option<u32>, StoreError> {
                let Some(head) = RunHead::of(tx, &run)? else { return Ok(None) };
                let is_elsewhere = ![NO_SERVER, tx.server].contains(&head.claimed_by);
                match head.check(tx, None) {
                    Err(StoreError::Claimed { process }) if is_elsewhere => Ok(Some(process)),
                    Ok(()) | Err(StoreError::Claimed { .. }) => Ok(None),
                    Err(error) => Err(error),
                }
            };
            self.database.read(read).await
        })
    }

    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let run = run.to_string();
            let erase = move |tx: &Tx<'_>| -> Result<(), StoreError> {
                if let Some(head) = RunHead::of(tx, &run)? {
                    head.check(tx, None)?;
                    tx.execute("DELETE FROM runs WHERE id = ?1", [run])?;
                }
                Ok(())
            };
            self.database.write(erase).await
        })
    }
}

/// Removes a message to a run. Returns whether it was there.
fn remove_message(tx: &Tx<'_>, run: &str, message: MessageNumber) -> Result<bool, StoreError> {
    let sql = "DELETE FROM run_messages WHERE run = ?1 AND number = ?2";
    Ok(tx.execute(sql, (run, message))? > 0)
}

/// The state of a run, without its entries.
struct RunHead {
    last: Seq,
    claimed_by: Epoch,
    term: u64,
}

impl RunHead {
    fn of(tx: &Tx<'_>, run: &str) -> Result<Option<Self>, DatabaseError> {
        let sql = "SELECT last, claimed_by, term FROM runs WHERE id = ?1";
        tx.one(sql, [run], |row| {
            Ok(Self { last: row.get(0)?, claimed_by: row.get(1)?, term: row.get(2)? })
        })
    }

    /// Fails unless a server with this claim, or without any, may change the run.
    fn check(&self, tx: &Tx<'_>, term: Option<u64>) -> Result<(), StoreError> {
        match term {
            Some(term) if self.claimed_by == tx.server && self.term == term => Ok(()),
            Some(_) => Err(StoreError::ClaimLost),
            None if self.claimed_by == NO_SERVER || !tx.is_alive(self.claimed_by)? => Ok(()),
            None => {
                let sql = "SELECT pid FROM servers WHERE epoch = ?1";
                let process = tx.one(sql, [self.claimed_by], |row| row.get(0))?;
                Err(StoreError::Claimed { process: process.unwrap_or_default() })
            }
        }
    }
}

/// Entries to append to a journal.
struct Append {
    run: String,
    after: Seq,
    term: Option<u64>,
    /// The owner and the creation time, if the entries begin a run.
    begins: Option<(OwnerDigest, i64)>,
    /// Whether the run can go on after the last entry although no call waits.
    is_open: bool,
    rows: Vec<NewRow>,
}

struct NewRow {
    text: String,
    /// The call that the entry is about, and the suspended call as which it waits, with its expiry.
    waits: Option<(i64, Option<(String, i64)>)>,
    /// Whether no call waits after it.
    ends: bool,
    /// The message that it takes up.
    takes: Option<MessageNumber>,
}

impl Append {
    fn of(
        run: &RunId,
        after: Seq,
        entries: &[JournalEntry],
        claim: Option<&Claim>,
        limits: &RunLimits,
    ) -> Result<Self, StoreError> {
        let row = |(entry, seq): (&JournalEntry, Seq)| {
            let text = entry.to_text(seq)?;
            limits.admit(text.len(), seq)?;
            let waits = entry.waits().map(|(call, waits)| {
                let waits = waits.map(|(id, until)| (id.to_string(), millis(until)));
                (i64::try_from(call).unwrap_or(i64::MAX), waits)
            });
            Ok(NewRow { text, waits, ends: entry.ends(), takes: entry.takes() })
        };
        let begins = entries.first().and_then(JournalEntry::begins);
        Ok(Self {
            run: run.to_string(),
            after,
            term: claim.map(Claim::term),
            begins: begins.map(|(identity, at)| (OwnerDigest::of(identity), millis(at))),
            is_open: entries.last().is_some_and(JournalEntry::is_open),
            rows: entries.iter().zip(after + 1..).map(row).collect::<Result<_, StoreError>>()?,
        })
    }

    fn run(self, tx: &Tx<'_>, limits: &RunLimits) -> Result<Seq, StoreError> {
        let Self { run, after, term, begins, is_open, rows } = self;
        match RunHead::of(tx, &run)? {
            Some(head) => {
                head.check(tx, term)?;
                if head.last != after {
                    return Err(StoreError::Conflict);
                }
            }
            None if term.is_some() => return Err(StoreError::ClaimLost),
            None => {
                let (0, Some((owner, created_at))) = (after, begins) else {
                    return Err(StoreError::Conflict);
                };
                make_room(tx, owner, created_at, limits)?;
                let sql = "INSERT INTO runs (id, owner, created_at, expires_at, bytes, last)
                           VALUES (?1, ?2, ?3, ?3, 0, 0)";
                tx.execute(sql, (&run, owner, created_at))?;
            }
        }
        let (mut last, mut bytes) = (after, 0);
        for NewRow { text, waits, ends, takes } in rows {
            last += 1;
            bytes += size(&text)?;
            if let Some(message) = takes
                && !remove_message(tx, &run, message)?
            {
                return Err(StoreError::Conflict);
            }
            let sql = "INSERT INTO journal (run, seq, entry) VALUES (?1, ?2, ?3)";
            tx.execute(sql, (&run, last, text))?;
            match waits {
                Some((call, Some((suspension, until)))) => {
                    let sql = "INSERT OR REPLACE INTO waiting_calls (run, call, suspension, until)
                               VALUES (?1, ?2, ?3, ?4)";
                    tx.execute(sql, (&run, call, suspension, until))?;
                }
                Some((call, None)) => {
                    let sql = "DELETE FROM waiting_calls WHERE run = ?1 AND call = ?2";
                    tx.execute(sql, (&run, call))?;
                }
                None => {}
            }
            if ends {
                tx.execute("DELETE FROM waiting_calls WHERE run = ?1", [&run])?;
                tx.execute("UPDATE runs SET cancel_reason = NULL WHERE id = ?1", [&run])?;
            }
        }
        let sql = "UPDATE runs SET last = ?2, bytes = bytes + ?3, is_open = ?4 WHERE id = ?1";
        tx.execute(sql, (&run, last, bytes, is_open))?;
        update_expiry(tx, &run, false)?;
        Ok(last)
    }
}

fn page(
    tx: &Tx<'_>,
    run: &str,
    after: Seq,
    limit: usize,
    place: impl Fn(&str) -> String,
) -> Result<Option<JournalPage>, StoreError> {
    let Some(RunHead { last, .. }) = RunHead::of(tx, run)? else {
        return if was_removed(tx, RUN, run)? { Err(StoreError::Expired) } else { Ok(None) };
    };
    let (mut known, mut bytes, mut entries) = (after, 0, Vec::new());
    while known < last && entries.len() < limit && bytes < PAGE_BYTES {
        known += 1;
        let sql = "SELECT entry FROM journal WHERE run = ?1 AND seq = ?2";
        let text = tx.one(sql, (run, known), |row| row.get::<_, String>(0))?;
        let text = text.ok_or_else(|| StoreError::Corrupt {
            place: place(run),
            problem: format!("entry {known} of {last} is missing"),
        })?;
        bytes += text.len();
        entries.push((known, parse(&text, || place(run))?));
    }
    Ok(Some(JournalPage::new(entries, last)))
}
