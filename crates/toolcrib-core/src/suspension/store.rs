//! Where suspended calls wait.

use std::fmt;

use toolcrib_tool::BoxFuture;

use super::{Resolved, Settled, Suspension, SuspensionId};
use crate::storage::bounds::Full;
use crate::storage::clock::Timestamp;

/// Keeps suspended calls until they are resolved. Shared by all who may resolve them.
///
/// [`MemorySuspensions`](super::MemorySuspensions) is for hosts without the facade and forgets with its
/// process. The store of the crate `toolcrib-store` keeps calls in a database, which processes share.
pub trait SuspensionStore: Send + Sync {
    /// Keeps a suspension. When this returns, another process may find it.
    fn put<'a>(&'a self, suspension: &'a Suspension) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Looks at one without taking it.
    fn find<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// Takes one out and, in the same step, keeps who did what with it, for a day. Of all who ask for
    /// one id, in all processes, exactly one gets it.
    fn take<'a>(
        &'a self,
        id: &'a SuspensionId,
        resolved: &'a Resolved,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// Does the same for a call whose answer goes to its caller rather than to whoever takes it: in the
    /// same step it keeps, as [`settle`](Self::settle) does, that the call is
    /// [being worked on](Settled::running).
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

    /// The process of another server in which a call waits, as long as that server lives. `None` where the
    /// call waits in this one or nobody knows: a store of one process has no other.
    fn waits_elsewhere<'a>(
        &'a self,
        _id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// All that wait on behalf of an identity, the oldest first.
    fn list<'a>(&'a self, identity: &'a str) -> BoxFuture<'a, Result<Vec<Suspension>, StoreError>>;

    /// The same call made earlier ([`Suspension::call_key`]), other than `call` itself, that
    /// [can be joined](super::Caller::is_joinable): one that has an outcome that is not
    /// [old](Settled::is_old), else one that waits and has not expired; the oldest of several. Stores
    /// look it up; they do not read all calls of the identity.
    fn same_call<'a>(
        &'a self,
        call: &'a Suspension,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Suspension>, StoreError>>;

    /// All that wait, whoever made the calls, the oldest first.
    fn all(&self) -> BoxFuture<'_, Result<Vec<Suspension>, StoreError>>;

    /// Keeps what became of a call that somebody else has decided on, in place of what was kept of
    /// it before. What is [old](Settled::is_old) may be forgotten.
    fn settle<'a>(&'a self, settled: &'a Settled) -> BoxFuture<'a, Result<(), StoreError>>;

    /// What became of a call.
    fn settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>>;

    /// Takes out what became of a call. Of all who ask, exactly one gets it.
    fn take_settled<'a>(
        &'a self,
        id: &'a SuspensionId,
    ) -> BoxFuture<'a, Result<Option<Settled>, StoreError>>;

    /// What became of the calls of an identity, as far as it was not taken, the oldest first.
    fn list_settled<'a>(
        &'a self,
        identity: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Settled>, StoreError>>;
}

/// Why a store could not do its work.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// It holds as much as it may, of one identity or of all.
    Full(Full),
    /// What it holds cannot be read. It is left as it is, for somebody to look at.
    Corrupt {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Somebody else has changed it since it was read.
    Conflict,
    /// Another process has claimed the run and works on it.
    Claimed {
        /// That process.
        process: u32,
    },
    /// The claim under which it was to be changed holds no more: it was released, or somebody has claimed
    /// the run since.
    ClaimLost,
    /// It is larger than is kept of one run.
    TooLarge {
        /// What there is too much of, as a plural.
        what: &'static str,
        /// How much is kept.
        limit: usize,
    },
    /// The store's own medium failed.
    Failed {
        /// What was tried, with the place.
        action: String,
        /// What came of it.
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
                    "the server with process {process} works on the run: wait until it has finished"
                )
            }
            Self::ClaimLost => f.write_str(
                "the claim on the run was released, or has passed to another: claim it again",
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
