//! Stores answers to requests with an `Idempotency-Key` as rows.

use toolcrib_core::bounds::Full;
use toolcrib_core::run::RunId;
use toolcrib_http::{AnswerError, AnswerKey, AnswerLimits, AnswerStore, Claim, StoredResponse};
use toolcrib_tool::BoxFuture;

use crate::database::Database;
use crate::database::servers::Epoch;
use crate::database::transaction::Tx;
use crate::error::DatabaseError;
use crate::retention::sweep::ANSWER_HAS_EXPIRED;
use crate::tables::owner::OwnerDigest;
use crate::tables::suspensions::SWEEP_LIMIT;

/// Stores the answers to requests with an `Idempotency-Key`. Servers that share the database see each other's answers,
/// and no two of them work on one key. If a server ends while it works on a request, that answer counts as lost at
/// once.
///
/// Answers contain results in plain text.
#[derive(Debug, Clone)]
pub struct Answers {
    database: Database,
    limits: AnswerLimits,
}

impl Answers {
    /// The answers of a database, within limits.
    pub fn within(database: &Database, limits: AnswerLimits) -> Self {
        Self { database: database.clone(), limits }
    }
}

/// The stored row of a key.
struct AnswerRow {
    claimed_by: Epoch,
    request: String,
    run: Option<String>,
    answer: Option<(u16, String, String)>,
}

impl AnswerRow {
    fn of(tx: &Tx<'_>, key: &str) -> Result<Option<Self>, DatabaseError> {
        let sql =
            "SELECT claimed_by, request, status, headers, body, run FROM answers WHERE key = ?1";
        tx.one(sql, [key], |row| {
            let status: Option<u16> = row.get(2)?;
            let answer = match status {
                Some(status) => Some((status, row.get(3)?, row.get(4)?)),
                None => None,
            };
            let (claimed_by, request, run) = (row.get(0)?, row.get(1)?, row.get(5)?);
            Ok(Self { claimed_by, request, run, answer })
        })
    }

    fn claim(self, tx: &Tx<'_>) -> Result<Claim, AnswerError> {
        let Self { claimed_by, request, run, answer } = self;
        if let Some((status, headers, body)) = answer {
            let headers = serde_json::from_str(&headers)
                .map_err(|error| AnswerError::Failed(format!("an answer is damaged: {error}")))?;
            return Ok(Claim::Answered {
                request,
                answer: StoredResponse { status, headers, body },
            });
        }
        // A server never claims a key twice. If the claim is this server's own, the request was abandoned.
        if claimed_by != tx.server && tx.is_alive(claimed_by)? {
            return Ok(Claim::Working { request });
        }
        Ok(Claim::Lost { request, run })
    }
}

fn claim(
    tx: &Tx<'_>,
    key: &str,
    owner: OwnerDigest,
    request: &str,
    limits: &AnswerLimits,
) -> Result<Claim, AnswerError> {
    let now = tx.now();
    let cutoff = tx.cutoff(tx.retention.answers);
    let own = format!("DELETE FROM answers WHERE key = ?3 AND {ANSWER_HAS_EXPIRED}");
    tx.execute(&own, (now, cutoff, key))?;
    let others = format!(
        "DELETE FROM answers WHERE key IN
             (SELECT key FROM answers WHERE {ANSWER_HAS_EXPIRED} LIMIT {SWEEP_LIMIT})"
    );
    tx.execute(&others, (now, cutoff))?;
    if let Some(known) = AnswerRow::of(tx, key)? {
        return known.claim(tx);
    }
    let own = tx.usage("answers", Some(owner))?;
    let all = tx.usage("answers", None)?.entries;
    if let Err(full) = limits.admit(own.entries, own.bytes, all) {
        return Err(with_retry_after(tx, owner, full)?.into());
    }
    let expires_at = tx.expiry(Some(limits.kept)).min(tx.expiry(tx.retention.answers));
    tx.execute(
        "INSERT INTO answers (key, owner, created_at, expires_at, bytes, claimed_by, request)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6)",
        (key, owner, now, expires_at, tx.server, request),
    )?;
    Ok(Claim::New)
}

/// Adds the time at which the client's oldest key expires.
fn with_retry_after(tx: &Tx<'_>, owner: OwnerDigest, full: Full) -> Result<Full, DatabaseError> {
    let sql = "SELECT min(expires_at) FROM answers WHERE owner = ?1";
    let oldest = tx.one(sql, [owner], |row| row.get::<_, Option<i64>>(0))?.flatten();
    let oldest = oldest.filter(|at| *at != i64::MAX);
    let left = oldest.and_then(|at| u64::try_from(at - tx.now()).ok());
    Ok(match left {
        Some(left) => full.with_retry_after(std::time::Duration::from_millis(left)),
        None => full,
    })
}

impl AnswerStore for Answers {
    fn claim<'a>(
        &'a self,
        key: &'a AnswerKey,
        request: &'a str,
    ) -> BoxFuture<'a, Result<Claim, AnswerError>> {
        Box::pin(async move {
            let owner = OwnerDigest::of(key.client());
            let (key, request) = (key.digest(), request.to_owned());
            let limits = self.limits;
            self.database.write(move |tx| claim(tx, &key, owner, &request, &limits)).await
        })
    }

    fn settle<'a>(
        &'a self,
        key: &'a AnswerKey,
        answer: &'a StoredResponse,
    ) -> BoxFuture<'a, Result<(), AnswerError>> {
        Box::pin(async move {
            let (key, answer) = (key.digest(), answer.clone());
            let settle = move |tx: &Tx<'_>| -> Result<(), AnswerError> {
                let bytes = i64::try_from(answer.size()).unwrap_or(i64::MAX);
                let headers = serde_json::to_string(&answer.headers)
                    .map_err(|error| AnswerError::Failed(error.to_string()))?;
                let settled = tx.execute(
                    "UPDATE answers SET status = ?1, headers = ?2, body = ?3, bytes = ?4
                     WHERE key = ?5 AND claimed_by = ?6",
                    (answer.status, headers, &answer.body, bytes, &key, tx.server),
                )?;
                match settled {
                    0 => {
                        Err(AnswerError::Failed("another server has taken over the key".to_owned()))
                    }
                    _ => Ok(()),
                }
            };
            self.database.write(settle).await
        })
    }

    fn note_run<'a>(
        &'a self,
        key: &'a AnswerKey,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<(), AnswerError>> {
        Box::pin(async move {
            let (key, run) = (key.digest(), run.to_string());
            let note = move |tx: &Tx<'_>| -> Result<(), AnswerError> {
                let sql = "UPDATE answers SET run = ?1 WHERE key = ?2 AND claimed_by = ?3";
                tx.execute(sql, (run, key, tx.server))?;
                Ok(())
            };
            self.database.write(note).await
        })
    }

    fn release<'a>(&'a self, key: &'a AnswerKey) -> BoxFuture<'a, Result<(), AnswerError>> {
        Box::pin(async move {
            let key = key.digest();
            let release = move |tx: &Tx<'_>| -> Result<(), AnswerError> {
                let sql = "DELETE FROM answers
                           WHERE key = ?1 AND claimed_by = ?2 AND status IS NULL";
                tx.execute(sql, (key, tx.server))?;
                Ok(())
            };
            self.database.write(release).await
        })
    }
}

impl From<DatabaseError> for AnswerError {
    fn from(error: DatabaseError) -> Self {
        let text = error.to_string();
        match error {
            DatabaseError::DiskFull { .. }
            | DatabaseError::Disk { .. }
            | DatabaseError::ReadOnly { .. }
            | DatabaseError::Locked { .. } => Self::Unavailable(text),
            _ => Self::Failed(text),
        }
    }
}
