//! The steps of a run, as its journal stores them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::Toolset;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::run::Seq;
use toolcrib_core::suspension::{ResolutionKind, Suspension};
use toolcrib_tool::{CallId, ToolResult};
use toolcrib_wire::model::{Item, ModelItem, StopReason, Usage, View};

use crate::budget::{Budget, Cost, Limit};
use crate::request::ClientRequest;
use crate::run::Outcome;
use crate::sub_agents::{ParentCall, SubAgentEnd};

/// The version of the journal's format that this program writes. It reads this one and earlier ones.
pub const FORMAT: u32 = 1;

/// One row of a run, which its journal stores as the body of a [step](toolcrib_core::run::RunStep).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalRow {
    /// When it was written.
    pub at: Timestamp,
    /// The step.
    pub entry: JournalEntry,
    /// What a client had been shown of the run before, where that is [counted](crate::AgentBuilder::counted_by).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<ShownEvents>,
}

/// The events of a run that a client was shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownEvents {
    /// How many there were.
    pub count: u64,
    /// The numbers of those that ended items and that no earlier row has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<u64>,
}

impl JournalRow {
    /// A row that was written at this time.
    pub fn new(at: Timestamp, entry: JournalEntry) -> Self {
        Self { at, entry, shown: None }
    }

    /// The row as everybody may read it: without arguments that tools declare sensitive, and without what a waiting call
    /// needs to go on. A run cannot go on from such rows.
    #[must_use]
    pub fn for_readers(self) -> Self {
        Self { entry: self.entry.for_readers(), ..self }
    }

    /// The identity whose run it begins, and whether a server's client has begun it.
    pub(crate) fn begun_by(&self) -> Option<(&str, bool)> {
        match &self.entry {
            JournalEntry::Started { identity, for_client, .. } => Some((identity, *for_client)),
            _ => None,
        }
    }

    /// The toolset to which the run that it begins is limited.
    pub(crate) fn toolset(&self) -> Option<&Toolset> {
        match &self.entry {
            JournalEntry::Started { toolset, .. } => toolset.as_ref(),
            _ => None,
        }
    }

    /// Whose sub-agent's run it begins.
    pub(crate) fn parent(&self) -> Option<&ParentCall> {
        match &self.entry {
            JournalEntry::Started { parent, .. } => parent.as_deref(),
            _ => None,
        }
    }
}

/// A step of a run. Later versions may add kinds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum JournalEntry {
    /// The run began.
    Started {
        /// The version of the journal's format.
        format: u32,
        /// The identity on whose behalf it runs; empty if the host named none.
        identity: String,
        /// The name of the agent.
        agent: String,
        /// The limits of the run.
        budget: Budget,
        /// Tools that may be called repeatedly with the same arguments and the same result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        poll_tools: Vec<String>,
        /// The call of another run that started it as a sub-agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Box<ParentCall>>,
        /// The toolset of whoever began it. It limits the run for good; that of the agent is not among it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        toolset: Option<Toolset>,
        /// Whether a client of a server began it, rather than the owner.
        #[serde(default, skip_serializing_if = "is_false")]
        for_client: bool,
        /// What whoever began it noted about it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, String>,
        /// What happens to calls whose outcome is unknown.
        #[serde(default, skip_serializing_if = "LostCalls::is_default")]
        lost_calls: LostCalls,
    },
    /// Somebody said something to the model.
    Input {
        /// What was said.
        items: Vec<Item>,
    },
    /// A client asked something, with its own tools and wishes, which hold until its next request. It has the results of
    /// the calls that were handed to it.
    Requested(Box<ClientRequest>),
    /// The client removed one of its requests, with what came of it. The model still knows it.
    RequestRemoved {
        /// The row of the request.
        row: Seq,
    },
    /// Calls of the client's own tools were handed to it. Its next request has their results.
    CallsHandedOver {
        /// The calls.
        calls: Vec<CallId>,
    },
    /// Somebody said something to a run that goes on by itself or waits. The model is told as soon as no call is without
    /// an answer.
    Steered {
        /// What was said.
        items: Vec<Item>,
    },
    /// The model was told that a limit is near.
    BudgetNotice {
        /// The limit.
        limit: Limit,
        /// What it was told.
        item: Item,
    },
    /// A request is about to be sent.
    ModelRequested {
        /// The round, from 1.
        round: u32,
        /// The attempt in this round, from 1.
        attempt: u32,
        /// The model, as its requests name their source: another one than before if that has failed.
        model: String,
        /// The limit that makes this the last round, in which the model has to answer without calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Limit>,
    },
    /// The request failed, or its answer was lost. Nothing of the answer counts.
    ModelLost {
        /// The reason.
        reason: String,
        /// Whether the answer had begun.
        began: bool,
        /// How many characters of it viewers have seen.
        shown_chars: u64,
        /// Whether the provider refused the conversation as too long for the model.
        #[serde(default, skip_serializing_if = "is_false")]
        context_exceeded: bool,
    },
    /// The model answered completely.
    ModelAnswered {
        /// What it said.
        items: Vec<ModelItem>,
        /// The tokens, if the provider counted them.
        usage: Option<Usage>,
        /// Their cost, if the prices are known.
        cost: Option<Cost>,
        /// Why it stopped.
        stop: StopReason,
        /// The tools' own names by the provider's names for them, where the two differ.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        names: BTreeMap<String, String>,
        /// By the ids of calls whose tools declare arguments sensitive: the arguments as everybody may read them. Rows
        /// [for readers](JournalRow::for_readers) have them in the calls themselves.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        hidden: BTreeMap<String, String>,
    },
    /// The model answered in words although its answer has a schema, and was told so.
    AnswerRefused {
        /// What it was told.
        item: Item,
    },
    /// The request of a summary is about to be sent, so that the conversation becomes shorter.
    SummaryRequested {
        /// The round that it precedes, from 1.
        round: u32,
        /// The attempt before this round, from 1.
        attempt: u32,
        /// The model.
        model: String,
    },
    /// The conversation became shorter.
    Compacted(Compacted),
    /// Calls are about to run.
    CallsStarted {
        /// The calls.
        calls: Vec<StartedCall>,
    },
    /// One of several calls ended whose tool is neither read-only nor idempotent. Its final answer follows when all have
    /// ended, and may be shorter. If the process ends before, this is the answer.
    CallEnded {
        /// The answer.
        result: Box<ToolResult>,
    },
    /// A call got its final answer.
    CallFinished {
        /// The answer.
        result: Box<ToolResult>,
        /// Whether the call was not run because it repeats earlier calls.
        #[serde(default, skip_serializing_if = "is_false")]
        repetition: bool,
    },
    /// A call was suspended.
    CallSuspended {
        /// What it waits for.
        suspension: Box<Suspension>,
    },
    /// A waiting call was resolved. Its answer, or what it waits for next, follows.
    CallResolved {
        /// The call.
        call: CallId,
        /// How.
        kind: ResolutionKind,
        /// By whom: a client, an operator, or a name that the host gave.
        by: String,
        /// The arguments with which it was approved, if they were changed. Sensitive values are masked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// A sub-agent ended. The call that started it has its answer when all its sub-agents have ended.
    ChildFinished {
        /// That call.
        call: CallId,
        /// How it ended.
        end: Box<SubAgentEnd>,
    },
    /// The run was paused. It continues when it is resumed.
    Paused {
        /// The reason.
        reason: String,
    },
    /// A process continues the run, after a pause, a wait, or the end of another process.
    Resumed,
    /// The run ended. Further input continues it.
    Finished {
        /// How it ended.
        outcome: Outcome,
    },
}

/// What happens to calls that are neither read-only nor idempotent, and ran when the process of their run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LostCalls {
    /// The model is told that their outcome is unknown.
    #[default]
    Tell,
    /// Somebody is asked whether they may run again. Whoever denies that leaves the model with the unknown outcome.
    Ask,
}

impl LostCalls {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a conversation became shorter. Groups are counted from 0 in the conversation as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compacted {
    /// Outputs that became short. They can be read by their handles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedOutput>,
    /// Groups of messages whose pictures, sounds and files became lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_media: Vec<usize>,
    /// The summary of what was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The size of the conversation before, in tokens.
    pub before: u64,
    /// Its size after that, in tokens.
    pub after: u64,
    /// The tokens of the summary's request, if the provider counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Their cost, if the prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An output that became short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShortenedOutput {
    /// The group of its result.
    pub group: usize,
    /// The call.
    pub call: CallId,
    /// The handle under which the whole output can be read.
    pub handle: String,
    /// The text that stays.
    pub text: String,
}

/// A summary that replaces a part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The groups that it replaces.
    pub left_out: Vec<usize>,
    /// The message with the summary.
    pub item: Item,
}

impl JournalEntry {
    /// The entry of a [row for readers](JournalRow::for_readers).
    pub(crate) fn for_readers(self) -> Self {
        match self {
            Self::ModelAnswered { mut items, usage, cost, stop, names, mut hidden } => {
                for item in &mut items {
                    if let View::Call(call) = item.view()
                        && let Some(shown) = hidden.remove(call.id.as_str())
                    {
                        *item = item.with_arguments(&shown);
                    }
                }
                Self::ModelAnswered { items, usage, cost, stop, names, hidden: BTreeMap::new() }
            }
            Self::CallSuspended { suspension } => {
                Self::CallSuspended { suspension: Box::new(suspension.for_readers()) }
            }
            other => other,
        }
    }

    /// The stable word for its kind, for example `model_answered`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Input { .. } => "input",
            Self::Requested(_) => "requested",
            Self::RequestRemoved { .. } => "request_removed",
            Self::CallsHandedOver { .. } => "calls_handed_over",
            Self::Steered { .. } => "steered",
            Self::BudgetNotice { .. } => "budget_notice",
            Self::ModelRequested { .. } => "model_requested",
            Self::ModelLost { .. } => "model_lost",
            Self::ModelAnswered { .. } => "model_answered",
            Self::AnswerRefused { .. } => "answer_refused",
            Self::SummaryRequested { .. } => "summary_requested",
            Self::Compacted(_) => "compacted",
            Self::CallsStarted { .. } => "calls_started",
            Self::CallEnded { .. } => "call_ended",
            Self::CallFinished { .. } => "call_finished",
            Self::CallSuspended { .. } => "call_suspended",
            Self::CallResolved { .. } => "call_resolved",
            Self::ChildFinished { .. } => "child_finished",
            Self::Paused { .. } => "paused",
            Self::Resumed => "resumed",
            Self::Finished { .. } => "finished",
        }
    }
}

/// A call that is about to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartedCall {
    /// Its id.
    pub id: CallId,
    /// Whether it may run again if its answer is lost: the tool is read-only or idempotent.
    pub repeatable: bool,
    /// Whether its success ends the run ([`ToolDefinition::terminal`](toolcrib_tool::ToolDefinition::terminal)), or its
    /// output is the answer ([`ToolDefinition::final_output`](toolcrib_tool::ToolDefinition::final_output)).
    #[serde(default, skip_serializing_if = "is_false")]
    pub terminal: bool,
    /// The fingerprint of the tool's definition; `None` if there is no such tool.
    pub definition: Option<Fingerprint>,
    /// Whether it ran when a process ended, and somebody is asked whether it may run again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A call to run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlannedCall {
    /// Its id.
    pub id: CallId,
    /// The tool's own name.
    pub tool: Arc<str>,
    /// The arguments as JSON text.
    pub arguments: String,
    /// How it was started before, if a process ended while it ran. It may run again only if its tool is the same and
    /// still [repeatable](StartedCall::repeatable).
    pub lost: Option<StartedCall>,
}

impl PlannedCall {
    pub(crate) fn new(
        id: CallId,
        tool: Arc<str>,
        arguments: String,
        lost: Option<StartedCall>,
    ) -> Self {
        Self { id, tool, arguments, lost }
    }
}
