//! The journal of a run: what happened to it, a row for each step.

use serde::{Deserialize, Serialize};
use toolcrib_tool::{BoxFuture, ToolResult};

use super::record::Ending;
use super::{RunCursor, RunId, RunRecord};
use crate::storage::bounds::{Bounds, Full, Whose};
use crate::storage::clock::Timestamp;
use crate::suspension::{StoreError, Suspension};

/// The number of an entry in the journal of its run: 1 for the first, without gaps.
pub type Seq = u64;

/// The version of the journal's format that this program writes. It reads this one and earlier ones.
pub(super) const FORMAT: u32 = 1;

/// Keeps the journals of runs. A journal grows at its end and is never changed; it is removed with its
/// run.
///
/// Every journal is a [`RunStore`](super::RunStore): the record of a run is what its journal adds up to,
/// and is stored nowhere else. [`MemoryRuns`](super::MemoryRuns) is for hosts without the facade and
/// forgets with its process. The store of the crate `toolcrib-store` keeps journals in a database, which
/// processes share.
pub trait Journal: Send + Sync {
    /// Appends entries behind the entry `after` and returns the number of the last one. Either all of
    /// them are kept or none is. Where `after` is 0, the run begins: its first entry has to be
    /// [`Started`](JournalEntry::Started), which no later entry may be.
    ///
    /// Fails with [`StoreError::Conflict`] if `after` is not the journal's last entry, so that of several
    /// that append behind one entry, one succeeds. Fails with [`StoreError::Claimed`] if a living server
    /// has claimed the run and `claim` is `None`, and with [`StoreError::ClaimLost`] if `claim` holds no
    /// more.
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        entries: &'a [JournalEntry],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>>;

    /// Up to `limit` entries behind the entry `after`, in order; fewer where they are large, but at least
    /// one if there is one. `None` if there is no such run. Whoever asks must be of the identity that the
    /// first entry names.
    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<JournalPage>, StoreError>>;

    /// Up to `limit` runs of an identity, the oldest first: from the beginning, or those behind a cursor.
    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>>;

    /// Claims a run: until the claim is released, or its server ends, only whoever has it appends. `None`
    /// if there is no such run. Fails with [`StoreError::Claimed`] if another living server has claimed
    /// it. A server that claims a run again loses its earlier claim.
    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>>;

    /// Gives a claim up. One that holds no more is no error.
    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes a run and its journal. One that is not there is no error. Fails with
    /// [`StoreError::Claimed`] if a living server has claimed it.
    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// A step of a run. Later versions know more kinds of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum JournalEntry {
    /// The run was begun. The calls follow, each with what came of it first.
    Started {
        /// The version of the journal's format.
        format: u32,
        /// On whose behalf it runs; empty where the host named nobody.
        identity: String,
        /// Since when.
        created_at: Timestamp,
    },
    /// A run that a version without journals had kept as one record: all that was known of it then.
    Imported(Box<RunRecord>),
    /// A call waits for somebody.
    CallSuspended {
        /// Which call of the run: 0 for the first.
        call: usize,
        /// What it waits for.
        suspension: Box<Suspension>,
    },
    /// A call has its final answer.
    CallFinished {
        /// Which call of the run: 0 for the first.
        call: usize,
        /// Its answer.
        result: Box<ToolResult>,
    },
    /// Calls that waited were cancelled, or have expired. The first of these entries is how the run ends.
    Ended {
        /// Which of both.
        ending: Ending,
    },
}

impl JournalEntry {
    /// What a first entry says of its run: on whose behalf it runs, and since when. `None` for all other
    /// entries.
    pub fn begins(&self) -> Option<(&str, Timestamp)> {
        match self {
            Self::Started { identity, created_at, .. } => Some((identity, *created_at)),
            Self::Imported(record) => Some((record.identity(), record.created_at())),
            _ => None,
        }
    }

    /// The call that this entry is about, and the suspended call that it waits as from now on, if it
    /// waits. `None` for entries that are about no call.
    pub fn waits(&self) -> Option<(usize, Option<&Suspension>)> {
        match self {
            Self::CallSuspended { call, suspension } => Some((*call, Some(suspension))),
            Self::CallFinished { call, .. } => Some((*call, None)),
            _ => None,
        }
    }

    /// The entry as a journal keeps it under that number, for stores. Fails unless the first entry begins
    /// its run and no other does.
    pub fn to_text(&self, seq: Seq) -> Result<String, StoreError> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| {
            let action = format!("append entry {seq} to the journal of a run");
            StoreError::Failed { action, source }
        };
        if self.begins().is_some() != (seq == 1) {
            return Err(failed("the first entry has to begin the run, and no other may".into()));
        }
        serde_json::to_string(self).map_err(|error| failed(error.into()))
    }
}

/// Entries of a journal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JournalPage {
    /// The entries with their numbers, in order and without gaps.
    pub entries: Vec<(Seq, JournalEntry)>,
    /// The number of the journal's last entry, whether it is on this page or not.
    pub last: Seq,
}

impl JournalPage {
    /// A page, for stores.
    pub fn new(entries: Vec<(Seq, JournalEntry)>, last: Seq) -> Self {
        Self { entries, last }
    }
}

/// The right to append to a run alone. It is good in the process that claimed the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    run: RunId,
    term: u64,
}

impl Claim {
    /// The claim of that number on a run, for stores: each claim on a run has a higher number than those
    /// before.
    pub fn new(run: RunId, term: u64) -> Self {
        Self { run, term }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Its number among all claims on the run.
    pub fn term(&self) -> u64 {
        self.term
    }
}

/// How much is kept of runs. A run that was begun is gone on with, whatever its identity has: only its
/// own length and the size of an entry are bounded then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// How many runs there are.
    pub runs: Bounds,
    /// How many bytes the runs of one identity may have before it begins another. Default 256 MiB.
    pub identity_bytes: usize,
    /// How many bytes an entry has at most. Default 64 MiB.
    pub entry_bytes: usize,
    /// How many entries a run has at most. Default 100,000.
    pub entries: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Bounds::default().into()
    }
}

impl From<Bounds> for RunLimits {
    fn from(runs: Bounds) -> Self {
        const MIB: usize = 1024 * 1024;
        Self { runs, identity_bytes: 256 * MIB, entry_bytes: 64 * MIB, entries: 100_000 }
    }
}

impl RunLimits {
    /// Fails if there is no room for one run more, where one identity has `own` runs of `own_bytes` bytes,
    /// and all identities have `all` runs.
    pub fn room(&self, own: usize, own_bytes: usize, all: usize) -> Result<(), Full> {
        self.runs.admit("runs", own, all)?;
        if own_bytes >= self.identity_bytes {
            return Err(Full::new("bytes of runs", Whose::Identity, self.identity_bytes));
        }
        Ok(())
    }

    /// Fails if an entry, as text of so many bytes, is too large, or if so many entries are too many.
    pub fn admit(&self, bytes: usize, entries: Seq) -> Result<(), StoreError> {
        if bytes > self.entry_bytes {
            return Err(StoreError::TooLarge {
                what: "bytes of an entry",
                limit: self.entry_bytes,
            });
        }
        if entries > self.entries {
            let limit = usize::try_from(self.entries).unwrap_or(usize::MAX);
            return Err(StoreError::TooLarge { what: "entries", limit });
        }
        Ok(())
    }
}
