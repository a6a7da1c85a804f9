//! A run as data.

use serde::{Deserialize, Serialize};
use toolcrib_tool::{CallId, ToolResult};

use super::lost;
use crate::storage::clock::Timestamp;
use crate::suspension::{Suspension, SuspensionId};

/// The id of a run: like that of a suspension, 32 hexadecimal digits that nobody can guess.
pub type RunId = SuspensionId;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunState {
    /// Calls wait for somebody.
    RequiresAction,
    /// Every call has its answer, and none was cancelled or expired while it waited.
    Completed,
    /// It was cancelled while calls waited.
    Cancelled,
    /// The time of calls that waited ran out.
    Expired,
}

impl RunState {
    /// The stable word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequiresAction => "requires_action",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// All there is to know of a run. Serialise it, and another process can go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    id: RunId,
    identity: String,
    created_at: Timestamp,
    /// The last entry of its journal that it knows; 0: never saved.
    pub(super) version: u64,
    pub(super) slots: Vec<RunCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ending: Option<Ending>,
}

/// One call of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunCall {
    /// It has its final answer.
    Done(Box<ToolResult>),
    /// It waits.
    Waiting(Box<Suspension>),
}

/// What ended a run before its calls were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// Its calls were cancelled while they waited.
    Cancelled,
    /// The time of calls that waited ran out.
    Expired,
}

impl RunRecord {
    pub(super) fn new(
        id: RunId,
        identity: &str,
        created_at: Timestamp,
        slots: Vec<RunCall>,
    ) -> Self {
        Self { id, identity: identity.to_owned(), created_at, version: 0, slots, ending: None }
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// On whose behalf it runs; empty where the host named nobody.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Since when.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The last entry of its [`Journal`](super::Journal) that it knows, 0 if it was never saved: a
    /// [`RunStore`](super::RunStore) accepts only a record that knows all of them.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The same record as of that version, for stores.
    #[must_use]
    pub fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// Whether nothing of it waits any more at that time: every call has its answer, or has expired.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.outstanding().all(|waiting| waiting.is_expired(now))
    }

    /// How far it has come.
    pub fn state(&self) -> RunState {
        if self.outstanding().next().is_some() {
            return RunState::RequiresAction;
        }
        match self.ending {
            None => RunState::Completed,
            Some(Ending::Cancelled) => RunState::Cancelled,
            Some(Ending::Expired) => RunState::Expired,
        }
    }

    /// The calls that wait, in the order of the calls.
    pub fn outstanding(&self) -> impl Iterator<Item = &Suspension> {
        self.slots.iter().filter_map(|slot| match slot {
            RunCall::Done(_) => None,
            RunCall::Waiting(suspension) => Some(&**suspension),
        })
    }

    /// The ids of the calls that have their answer.
    pub(super) fn answered(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| match slot {
            RunCall::Done(result) => Some(result.call_id().as_str()),
            RunCall::Waiting(_) => None,
        })
    }

    /// Answers a call that nobody can resolve any more.
    pub(super) fn give_up(&mut self, id: &SuspensionId, now: Timestamp) {
        for slot in &mut self.slots {
            if let RunCall::Waiting(suspension) = slot
                && suspension.id() == id
            {
                let waited = now.since(suspension.created_at());
                let call = CallId::new(suspension.call_id());
                let result = ToolResult::failure(call, suspension.called_tool(), lost(), waited);
                *slot = RunCall::Done(Box::new(result));
            }
        }
    }

    /// Takes over what another process has saved of the same run.
    pub(super) fn merge(&mut self, theirs: Self) {
        self.version = theirs.version;
        self.ending = theirs.ending.or(self.ending);
        for (ours, theirs) in self.slots.iter_mut().zip(theirs.slots) {
            match (&*ours, &theirs) {
                // They resolved it: at most one of us can have.
                (_, RunCall::Done(_)) => *ours = theirs,
                // We resolved the one they still see, or both see the same.
                (RunCall::Done(_), RunCall::Waiting(_)) => {}
                // It went on and waits again; the later one is what waits now.
                (RunCall::Waiting(one), RunCall::Waiting(other)) => {
                    if other.created_at() > one.created_at() {
                        *ours = theirs;
                    }
                }
            }
        }
    }
}
