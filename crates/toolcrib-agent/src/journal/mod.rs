//! Stores of journals.

mod memory;

use toolcrib_core::run::{Claim, RunCursor, RunId, Seq};
use toolcrib_core::suspension::StoreError;
use toolcrib_tool::BoxFuture;

use crate::JournalRow;

pub use memory::MemoryJournal;

/// Stores the journals of agents' runs. A journal is append-only and is removed with its run. Rows are masked before
/// they get here.
pub trait Journal: Send + Sync {
    /// Appends rows after row number `after` and returns the number of the last one. Either all of them are stored or
    /// none. When this returns, they outlive the process. If `after` is 0, the run begins: its first row has to be
    /// [`Started`](crate::JournalEntry::Started).
    ///
    /// Fails with [`StoreError::Conflict`] if `after` is not the last row, with [`StoreError::Claimed`] if a live
    /// process has claimed the run and `claim` is `None`, and with [`StoreError::ClaimLost`] if `claim` is no longer
    /// valid.
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        rows: &'a [JournalRow],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>>;

    /// Up to `limit` rows after row number `after`, in order, at least one if there is any; `None` if there is no such
    /// run. The caller must check the identity that the first row names.
    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Vec<JournalRow>>, StoreError>>;

    /// Up to `limit` runs of an identity, oldest first, from the beginning or after a cursor.
    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>>;

    /// Claims a run: until the claim is released or its process ends, only its holder can append. `None` if there is
    /// no such run. Fails with [`StoreError::Claimed`] if another live process has claimed it. A second claim by the
    /// same process invalidates the first.
    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>>;

    /// Releases a claim. An invalid claim is not an error.
    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes a run and its journal, if it exists. Fails with [`StoreError::Claimed`] if it is claimed.
    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;
}
