//! The journal of a run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcrib_tool::{BoxFuture, ToolResult};

use super::record::Ending;
use super::step::RunStep;
use super::{RunCursor, RunId, RunRecord};
use crate::storage::bounds::{BoundScope, Bounds, Full};
use crate::storage::clock::Timestamp;
use crate::suspension::{StoreError, Suspension, SuspensionId};

/// The number of an entry in the journal of its run: 1 for the first, without gaps.
pub type Seq = u64;

/// The version of the journal's format that this program writes. It reads this one and earlier ones.
pub(super) const FORMAT: u32 = 1;

/// Stores the journals of runs: of batches of calls, and of agents, whose entries are
/// [steps](JournalEntry::Step). A journal is append-only and is removed with its run.
///
/// Every journal is a [`RunStore`](super::RunStore): the record of a batch is computed from its
/// journal and not stored separately; runs of agents do not exist there. [`MemoryRuns`](super::MemoryRuns) stores
/// journals in memory, for hosts without the facade. The crate `toolcrib-store` stores them in a database, which
/// processes can share.
pub trait Journal: Send + Sync {
    /// Appends entries after the entry `after` and returns the number of the last one. Either all
    /// of them are stored or none. When this returns, they outlive the process, if the store does. If
    /// `after` is 0, the run begins: its first entry has to say so
    /// ([`JournalEntry::begins`]), and no later one may.
    ///
    /// Fails with [`StoreError::Conflict`] if `after` is not the journal's last entry, so that only
    /// one of several concurrent appends succeeds. Fails with [`StoreError::Claimed`] if a live
    /// server has claimed the run and `claim` is `None`, and with [`StoreError::ClaimLost`] if
    /// `claim` is no longer valid. An entry that [takes up](JournalEntry::takes) a message removes it; if it was
    /// withdrawn, this fails with [`StoreError::Conflict`].
    fn append<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        entries: &'a [JournalEntry],
        claim: Option<&'a Claim>,
    ) -> BoxFuture<'a, Result<Seq, StoreError>>;

    /// Up to `limit` entries after the entry `after`, in order; fewer if they are large, but at
    /// least one if there is any. `None` if there is no such run. The caller must check the
    /// identity that the first entry names.
    fn read<'a>(
        &'a self,
        run: &'a RunId,
        after: Seq,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<JournalPage>, StoreError>>;

    /// Up to `limit` runs of an identity, oldest first, from the beginning or after a cursor.
    fn list<'a>(
        &'a self,
        identity: &'a str,
        after: Option<&'a RunCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunCursor>, StoreError>>;

    /// Claims a run: until the claim is released or its server ends, only its holder can append.
    /// `None` if there is no such run. Fails with [`StoreError::Claimed`] if another live server
    /// has claimed it. A second claim by the same server invalidates the first.
    fn claim<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Claim>, StoreError>>;

    /// Releases a claim. An invalid claim is not an error.
    fn release<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Asks whoever works on a run to cancel it. The request stays until the run is over. Returns whether it was stored:
    /// a run that is over, or that does not exist, is not asked.
    fn ask_to_cancel<'a>(
        &'a self,
        run: &'a RunId,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Leaves a message for whoever works on a run, which takes it up with a [step](super::RunStep::taking). Secrets in
    /// it must be masked. `None` if the run is over or does not exist. Fails with [`StoreError::Full`] if too many wait.
    fn leave_message<'a>(
        &'a self,
        run: &'a RunId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<MessageNumber>, StoreError>>;

    /// Withdraws a message. Returns whether it was still there: if not, a step has taken it up.
    fn withdraw_message<'a>(
        &'a self,
        run: &'a RunId,
        message: MessageNumber,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// What others want of whoever works on a run.
    fn requests<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunRequests, StoreError>>;

    /// The process of the other live server that has claimed a run, if one has.
    fn claimed_elsewhere<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<u32>, StoreError>>;

    /// Removes a run and its journal, if it exists. Fails with [`StoreError::Claimed`] if a live
    /// server has claimed it.
    fn erase<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The number of a message that was left for whoever works on a run. Later ones have higher numbers.
pub type MessageNumber = i64;

/// What others want of whoever works on a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRequests {
    /// Why somebody has asked to cancel it.
    pub cancel: Option<String>,
    /// The messages that no step has taken up, oldest first.
    pub messages: Vec<(MessageNumber, String)>,
}

/// How many messages wait for whoever works on a run, at most.
pub const MESSAGES_MAX: usize = 64;

/// The error for one more message, for stores.
pub fn too_many_messages() -> StoreError {
    let full = Full::new("messages for a run", BoundScope::Identity, MESSAGES_MAX);
    StoreError::Full(full.with_retry_after(Duration::from_secs(1)))
}

/// A step of a run. Later versions may add kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum JournalEntry {
    /// The run began. Its calls follow, each with its first state.
    Started {
        /// The version of the journal's format.
        format: u32,
        /// The identity on whose behalf it runs; empty if the host named none.
        identity: String,
        /// When it began.
        created_at: Timestamp,
    },
    /// A run that was imported from a version without journals.
    Imported(Box<RunRecord>),
    /// A call was suspended.
    CallSuspended {
        /// The index of the call in the run.
        call: usize,
        /// The suspension.
        suspension: Box<Suspension>,
    },
    /// A call got its final answer.
    CallFinished {
        /// The index of the call in the run.
        call: usize,
        /// Its answer.
        result: Box<ToolResult>,
    },
    /// Waiting calls were cancelled or expired. The first of these entries determines how the run
    /// ends.
    Ended {
        /// Which of the two.
        ending: Ending,
    },
    /// A step of a run that is not a batch of calls, such as an agent's.
    Step(RunStep),
}

impl JournalEntry {
    /// The identity and start time from a first entry; `None` for all other entries.
    pub fn begins(&self) -> Option<(&str, Timestamp)> {
        match self {
            Self::Started { identity, created_at, .. } => Some((identity, *created_at)),
            Self::Imported(record) => Some((record.identity(), record.created_at())),
            Self::Step(step) => step.begins(),
            _ => None,
        }
    }

    /// The index of the call that this entry is about, and as what and until when it waits, if it
    /// does; `None` for other entries.
    pub fn waits(&self) -> Option<(usize, Option<(&SuspensionId, Timestamp)>)> {
        match self {
            Self::CallSuspended { call, suspension } => {
                Some((*call, Some((suspension.id(), suspension.expires_at()))))
            }
            Self::CallFinished { call, .. } => Some((*call, None)),
            Self::Step(step) => step.waits(),
            _ => None,
        }
    }

    /// Whether the run can go on after this entry although none of its calls waits: a
    /// [step](Self::Step) that does not end it.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Step(step) if !step.is_over())
    }

    /// Whether no call of the run waits after this entry.
    pub fn ends(&self) -> bool {
        matches!(self, Self::Step(step) if step.is_over())
    }

    /// The message that this entry takes up.
    pub fn takes(&self) -> Option<MessageNumber> {
        match self {
            Self::Step(step) => step.takes(),
            _ => None,
        }
    }

    /// The stored form of the entry with this number, for stores. Fails unless the first entry, and
    /// only that, begins the run.
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
    /// The number of the journal's last entry, which need not be on this page.
    pub last: Seq,
}

impl JournalPage {
    /// A page, for stores.
    pub fn new(entries: Vec<(Seq, JournalEntry)>, last: Seq) -> Self {
        Self { entries, last }
    }
}

/// The exclusive right to append to a run. It is valid in the process that claimed the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    run: RunId,
    term: u64,
}

impl Claim {
    /// A claim with this term, for stores. The terms of a run increase with each claim.
    pub fn new(run: RunId, term: u64) -> Self {
        Self { run, term }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The claim's term.
    pub fn term(&self) -> u64 {
        self.term
    }
}

/// Limits for runs. A run that has begun can always continue: only its length and the size of its
/// entries are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLimits {
    /// How many runs there are.
    pub runs: Bounds,
    /// How many bytes the runs of one identity may use before it begins another. Default 256 MiB.
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
    /// Fails if there is no room for one more run, if the identity has `own` runs of `own_bytes`
    /// bytes, and all identities have `all` runs.
    pub fn room(&self, own: usize, own_bytes: usize, all: usize) -> Result<(), Full> {
        self.runs.admit("runs", own, all)?;
        if own_bytes >= self.identity_bytes {
            return Err(Full::new("bytes of runs", BoundScope::Identity, self.identity_bytes));
        }
        Ok(())
    }

    /// Fails if an entry of this many bytes is too large, or if there are too many entries.
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
