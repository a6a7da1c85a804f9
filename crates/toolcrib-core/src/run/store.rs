//! Where runs are kept while their calls wait.

use toolcrib_tool::BoxFuture;

use super::{RunId, RunRecord};
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

    /// All runs of an identity, the oldest first.
    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreError>>;
}
