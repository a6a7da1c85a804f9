//! Where runs are kept while their calls wait.

use std::fmt;
use std::str::FromStr;

use toolcrib_tool::BoxFuture;

use super::{RunId, RunRecord};
use crate::clock::Timestamp;
use crate::suspension::StoreError;

/// Keeps the records of runs. Several processes may go on with one run; none overwrites what it has
/// not seen.
pub trait RunStore: Send + Sync {
    /// Keeps a record and returns its new version. Fails with [`StoreError::Conflict`] if the one
    /// kept is not of the record's own version.
    fn save<'a>(&'a self, record: &'a RunRecord) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// The record of a run. Whoever asks must be of its [`identity`](RunRecord::identity).
    fn load<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>>;

    /// Forgets a run. One that is not there is no error.
    fn remove<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Up to `limit` runs of an identity, the oldest first: from the beginning, or those behind a cursor.
    fn page<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>>;
}

/// A place in the list of an identity's runs. It stays good when the run that it was made of is gone.
///
/// ```
/// use toolcrib_core::run::RunCursor;
///
/// let text = "1700000000000-00112233445566778899aabbccddeeff";
/// assert_eq!(text.parse::<RunCursor>().map(|cursor| cursor.to_string()), Ok(text.to_owned()));
/// assert!("yesterday".parse::<RunCursor>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    created_at: Timestamp,
    id: RunId,
}

impl RunCursor {
    /// The place of a run.
    pub fn of(record: &RunRecord) -> Self {
        Self { created_at: record.created_at(), id: record.id().clone() }
    }

    /// When the run at this place was made.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The id of the run at this place.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Whether a run comes behind it.
    pub fn is_before(&self, record: &RunRecord) -> bool {
        (self.created_at, &self.id) < (record.created_at(), record.id())
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.created_at.unix_millis(), self.id)
    }
}

/// A text that is not a [`RunCursor`].
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
