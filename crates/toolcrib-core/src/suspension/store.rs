//! Stores of suspended calls.

use std::fmt;

use toolcrib_tool::BoxFuture;

use super::{Resolved, Settled, Suspension, SuspensionId};
use crate::storage::bounds::Full;
use crate::storage::clock::Timestamp;

/// Stores suspended calls until they are resolved. It is shared by everything that may resolve
/// them.
///
/// [`MemorySuspensions`](super::MemorySuspensions) stores calls in memory, for hosts without the
/// facade. The crate `toolcrib-store` stores them in a database, which processes can share.
pub trait SuspensionStore: Send + Sync {
    /// Stores a suspension. When this returns, other processes can find it.
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Finds a suspension without taking it.
    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// Takes a suspension and, atomically, stores how it was resolved, for a day. Of all concurrent
    /// takers of one id, in all processes, exactly one gets it.
    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// The same for a call whose answer goes to its caller rather than to the taker: atomically, it
    /// also stores that the call is [running](Settled::running), like [`settle`](Self::settle).
    fn take_for_caller<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// Who did what with a call that waits no more, as far as that is still known.
    fn resolved<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Resolved>, StoreError>>;

    /// The process of another live server in which a call waits. `None` if the call waits in this
    /// one, or if that is unknown.
    fn waits_elsewhere<'a>(
        &'a self,
        _id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// The waiting calls of an identity, oldest first.
    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>>;

    /// The same call made earlier ([`Suspension::call_key`]), other than `call` itself, that [can
    /// be joined](super::Caller::is_joinable): one with an outcome that is not
    /// [old](Settled::is_old), else a waiting one that has not expired; the oldest of several.
    /// Stores should use an index instead of reading all calls of the identity.
    fn same_call<'a>(
        &'a self,
        call: &'a Suspension,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// All waiting calls, oldest first.
    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>>;

    /// Stores the outcome of a call that somebody else has decided on, and replaces an earlier one.
    /// [Old](Settled::is_old) outcomes may be removed.
    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The outcome of a call.
    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>>;

    /// Takes the outcome of a call. Exactly one of several callers gets it.
    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>>;

    /// The outcomes of an identity's calls that were not taken, oldest first.
    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>>;
}

/// Errors of stores.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A bound was reached, of one identity or in total.
    Full(Full),
    /// A record cannot be read. It is left unchanged for inspection.
    Corrupt {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The record was changed since it was read.
    Conflict,
    /// Another process has claimed the run.
    Claimed {
        /// That process.
        process: u32,
    },
    /// The claim is no longer valid: it was released, or the run was claimed again.
    ClaimLost,
    /// The run was removed: it was older than runs are kept, or made room for newer ones.
    Expired,
    /// The run exceeds a limit.
    TooLarge {
        /// What the limit counts, as a plural.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The store's own medium failed.
    Failed {
        /// The failed operation, with its location.
        action: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(full) => write!(f, "{full}: resolve or cancel some first"),
            Self::Corrupt { place, problem } => {
                write!(f, "{place} cannot be read and is left as it is: {problem}")
            }
            Self::Conflict => f.write_str("somebody else has changed it since it was read"),
            Self::Claimed { process } => {
                write!(
                    f,
                    "the process {process} works on the run: wait until it has finished, or cancel the run"
                )
            }
            Self::ClaimLost => f.write_str(
                "the claim on the run was released, or has passed to another: claim it again",
            ),
            Self::Expired => f.write_str(
                "the run has expired: it was older than the server keeps runs (`state.keep.runs`), or made \
                 room for newer ones",
            ),
            Self::TooLarge { what, limit } => {
                write!(f, "the run would have more than {limit} {what}, and no more are kept")
            }
            Self::Failed { action, source } => write!(f, "cannot {action}: {source}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

impl From<Full> for StoreError {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}
