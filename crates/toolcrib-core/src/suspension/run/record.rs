//! A run as data.

use serde::{Deserialize, Serialize};
use toolcrib_tool::{CallId, ToolResult};

use super::lost;
use crate::storage::clock::Timestamp;
use crate::suspension::{ResolutionKind, Suspension, SuspensionId};

/// The id of a run: like that of a suspension, 32 hexadecimal digits that nobody can guess.
pub type RunId = SuspensionId;

/// How far a run of calls or of an agent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// An agent's run can go on: its model is asked, or calls run.
    InProgress,
    /// Calls wait for somebody.
    RequiresAction,
    /// Calls of an agent wait for sub-agents, of which none waits for somebody.
    WaitingForSubtask,
    /// An agent's run was paused.
    Paused,
    /// Every call has its answer, and none was cancelled or expired; or the agent's model gave its final answer.
    Completed,
    /// An agent's run failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// Waiting calls expired.
    Expired,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::InProgress,
        Self::RequiresAction,
        Self::WaitingForSubtask,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Whether a run in this state has ended.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Expired)
    }

    /// The stable word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::RequiresAction => "requires_action",
            Self::WaitingForSubtask => "waiting_for_subtask",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

/// The complete, serializable state of a run, with which another process can continue it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    id: RunId,
    identity: String,
    created_at: Timestamp,
    /// The number of the last journal entry that it includes; 0 if it was never saved.
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

/// How a run ended before its calls were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// Its calls were cancelled while they waited.
    Cancelled,
    /// Waiting calls expired.
    Expired,
}

impl Ending {
    /// How a run ends whose last waiting call was resolved in this way; `None` if that completes it.
    pub(super) fn of(kind: ResolutionKind) -> Option<Self> {
        match kind {
            ResolutionKind::Cancelled => Some(Self::Cancelled),
            ResolutionKind::Expired => Some(Self::Expired),
            _ => None,
        }
    }
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

    /// The identity on whose behalf it runs; empty if the host named none.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// When it began.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// The number of the last [`Journal`](super::Journal) entry that it includes; 0 if it was never
    /// saved. A [`RunStore`](super::RunStore) accepts only a record that includes all of them.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Sets the version, for stores.
    #[must_use]
    pub fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// Whether every call has its answer or has expired at that time.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.outstanding().all(|waiting| waiting.is_expired(now))
    }

    /// Its state.
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

    /// The waiting calls, in call order.
    pub fn outstanding(&self) -> impl Iterator<Item = &Suspension> {
        self.slots.iter().filter_map(|slot| match slot {
            RunCall::Done(_) => None,
            RunCall::Waiting(suspension) => Some(&**suspension),
        })
    }

    /// The ids of the answered calls.
    pub(super) fn answered(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| match slot {
            RunCall::Done(result) => Some(result.call_id().as_str()),
            RunCall::Waiting(_) => None,
        })
    }

    /// Answers a call that can no longer be resolved.
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

    /// Merges the record that another process has saved.
    pub(super) fn merge(&mut self, theirs: Self) {
        self.version = theirs.version;
        self.ending = theirs.ending.or(self.ending);
        for (ours, theirs) in self.slots.iter_mut().zip(theirs.slots) {
            match (&*ours, &theirs) {
                // They resolved it; at most one process can.
                (_, RunCall::Done(_)) => *ours = theirs,
                // We resolved it, or both have the same answer.
                (RunCall::Done(_), RunCall::Waiting(_)) => {}
                // It was resumed and waits again; the later suspension is current.
                (RunCall::Waiting(one), RunCall::Waiting(other)) => {
                    if other.created_at() > one.created_at() {
                        *ours = theirs;
                    }
                }
            }
        }
    }
}
