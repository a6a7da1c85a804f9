//! Stores of runs.

use std::fmt;
use std::str::FromStr;

use toolcrib_tool::BoxFuture;

use super::journal::{Journal, JournalEntry};
use super::{RunId, RunRecord};
use crate::storage::clock::Timestamp;
use crate::suspension::{StoreError, SuspensionId};

/// Stores the records of batches of calls. Several processes may continue one run; none overwrites
/// changes that it has not seen. Runs of agents in the same journals do not exist here.
///
/// Every [`Journal`] is such a store: saving a record appends the missing entries.
pub trait RunStore: Send + Sync {
    /// Stores a record and returns its new version. Fails with [`StoreError::Conflict`] if the
    /// stored record has another version.
    fn save<'a>(&'a self, record: &'a RunRecord) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// The record of a run. The caller must check its [`identity`](RunRecord::identity).
    fn load<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>>;

    /// The ids under which calls of a run have waited, oldest first.
    fn suspended<'a>(
        &'a self,
        id: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<SuspensionId>, StoreError>>;

    /// Removes a run, if it exists.
    fn remove<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Up to `limit` runs of an identity, oldest first, from the beginning or after a cursor. A run
    /// that cannot be read is skipped and logged.
    fn page<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>>;
}

/// Entries that are read at a time.
const PAGE: usize = 256;

/// Folds the journal of a batch; `None` if there is no such run, or if it is another kind of run.
async fn folded(
    journal: &(impl Journal + ?Sized),
    id: &RunId,
) -> Result<Option<RunRecord>, StoreError> {
    let mut record: Option<RunRecord> = None;
    loop {
        let known = record.as_ref().map_or(0, RunRecord::version);
        let Some(page) = journal.read(id, known, PAGE).await? else { return Ok(None) };
        let corrupt = |problem| StoreError::Corrupt { place: format!("the run {id}"), problem };
        if page.entries.is_empty() && page.last != known {
            return Err(corrupt(format!("entry {} is missing", known + 1)));
        }
        let last = page.last;
        if let (None, Some((1, JournalEntry::Step(_)))) = (&record, page.entries.first()) {
            return Ok(None);
        }
        for (seq, entry) in page.entries {
            record = Some(RunRecord::followed_by(record, id, seq, entry).map_err(corrupt)?);
        }
        if record.as_ref().map_or(0, RunRecord::version) >= last {
            return Ok(record);
        }
    }
}

impl<J: Journal + ?Sized> RunStore for J {
    fn save<'a>(&'a self, record: &'a RunRecord) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let kept = match record.version() {
                0 => None,
                _ => folded(self, record.id()).await?,
            };
            if kept.as_ref().map_or(0, RunRecord::version) != record.version() {
                return Err(StoreError::Conflict);
            }
            let lacking = record.lacking(kept.as_ref());
            if lacking.is_empty() {
                return Ok(record.version());
            }
            self.append(record.id(), record.version(), &lacking, None).await
        })
    }

    fn load<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        Box::pin(folded(self, id))
    }

    fn suspended<'a>(
        &'a self,
        id: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<SuspensionId>, StoreError>> {
        Box::pin(async move {
            let (mut ids, mut known) = (Vec::new(), 0);
            while let Some(page) = self.read(id, known, PAGE).await? {
                for (seq, entry) in &page.entries {
                    known = *seq;
                    ids.extend(entry.waits().and_then(|(_, one)| one).map(|(id, _)| id.clone()));
                }
                if page.entries.is_empty() || known >= page.last {
                    break;
                }
            }
            Ok(ids)
        })
    }

    fn remove<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.erase(id)
    }

    fn page<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>> {
        Box::pin(async move {
            let mut records = Vec::new();
            let mut last = after.cloned();
            while records.len() < limit {
                let wanted = limit - records.len();
                let runs = self.list(identity, last.as_ref(), wanted).await?;
                let is_last = runs.len() < wanted;
                for run in &runs {
                    match folded(self, run.id()).await {
                        Ok(record) => records.extend(record),
                        // It was removed since it was listed.
                        Err(StoreError::Expired) => {}
                        Err(error @ StoreError::Corrupt { .. }) => {
                            tracing::warn!(%error, "a run was passed over");
                        }
                        Err(error) => return Err(error),
                    }
                }
                if is_last {
                    break;
                }
                last = runs.into_iter().last();
            }
            Ok(records)
        })
    }
}

/// A position in the list of an identity's runs. It stays valid when its run is removed.
///
/// ```
/// use toolcrib_core::run::RunCursor;
///
/// let text = "1700000000000-00112233445566778899aabbccddeeff";
/// assert_eq!(text.parse::<RunCursor>().map(|cursor| cursor.to_string()), Ok(text.to_owned()));
/// assert!("yesterday".parse::<RunCursor>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunCursor {
    created_at: Timestamp,
    id: RunId,
}

impl RunCursor {
    /// The position of a run with this id and creation time.
    pub fn new(created_at: Timestamp, id: RunId) -> Self {
        Self { created_at, id }
    }

    /// The position of a run.
    pub fn of(record: &RunRecord) -> Self {
        Self::new(record.created_at(), record.id().clone())
    }

    /// When the run at this place was made.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The id of the run at this place.
    pub fn id(&self) -> &RunId {
        &self.id
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.created_at.unix_millis(), self.id)
    }
}

/// The error for an invalid [`RunCursor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCursor;

impl fmt::Display for NoCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not a place in a list of runs")
    }
}

impl std::error::Error for NoCursor {}

impl FromStr for RunCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (millis, id) = text.split_once('-').ok_or(NoCursor)?;
        let created_at = Timestamp::from_unix_millis(millis.parse().map_err(|_| NoCursor)?);
        Ok(Self { created_at, id: id.parse().map_err(|_| NoCursor)? })
    }
}
