//! Events.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::{
    CallId, Content, ErrorKind, StatusUpdate, ToolDefinition, ToolName, ToolResult,
};

use super::outcome;
use crate::cache::size;

/// The stage of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// It is about to run.
    Prepare,
    /// It runs and reports its status.
    Processing,
    /// It runs and emits a part of its output.
    Output,
    /// It has ended.
    Completed,
}

impl Stage {
    /// The stable word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Processing => "processing",
            Self::Output => "output",
            Self::Completed => "completed",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a result, under their names")]
pub struct Completion {
    /// Whether it succeeded.
    pub success: bool,
    /// Why it failed.
    pub error: Option<ErrorKind>,
    /// Its duration.
    pub duration: Duration,
    /// Whether the answer came from an earlier call.
    pub cached: bool,
    /// Whether the answer came from the same concurrent call.
    pub skipped: bool,
    /// Whether the content was cut to fit its budget.
    pub truncated: bool,
    /// The result, masked and bounded: `{output?, data?, error?, cut?}`. `cut` is true where a text was
    /// shortened to 4,096 characters or data of more than 16 KiB left out. `None` for hidden tools, and
    /// for calls that were dropped.
    pub result: Option<Arc<Value>>,
}

impl From<&ToolResult> for Completion {
    fn from(result: &ToolResult) -> Self {
        Self {
            success: result.is_success(),
            error: result.error_kind(),
            duration: result.duration(),
            cached: result.cached(),
            skipped: result.skipped(),
            truncated: result.truncated(),
            result: Some(Arc::new(outcome::shown(result))),
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Payload {
    /// The call was accepted and is about to run. Stage `prepare`.
    Prepare {
        /// The arguments, redacted; `None` if they are not shown.
        arguments: Option<Value>,
    },
    /// The status of the call: all its status updates so far, merged. Stage `processing`.
    Status(StatusUpdate),
    /// The call is suspended; it may be resumed much later. Stage `processing`.
    Suspended {
        /// What it waits for, for example `approval`.
        reason: String,
    },
    /// A part of the output, ahead of the result. Stage `output`.
    Output(Content),
    /// The call has ended and its result is recorded. Stage `completed`.
    Completed(Completion),
    /// A tool is paused for an identity after repeated timeouts.
    Paused {
        /// The tool's name.
        tool: String,
        /// For whom.
        identity: String,
    },
    /// The reader was too slow: events are missing here.
    Lagged {
        /// How many.
        lost: u64,
    },
    /// The reader was too slow and gets no more events. This is its last one.
    Detached {
        /// How many events it did not get.
        unread: u64,
    },
}

/// The call an event belongs to, created once per call.
#[derive(Debug, PartialEq)]
pub(crate) struct Subject {
    pub(crate) call_id: CallId,
    pub(crate) tool: ToolName,
    pub(crate) hidden: bool,
    pub(crate) final_output: bool,
    /// The identity: tenant and user as one text.
    pub(crate) identity: Arc<str>,
}

impl Subject {
    pub(crate) fn new(
        call_id: &CallId,
        definition: &ToolDefinition,
        identity: &Arc<str>,
    ) -> Arc<Self> {
        Arc::new(Self {
            identity: Arc::clone(identity),
            call_id: call_id.clone(),
            tool: definition.tool_name().clone(),
            hidden: definition.hidden(),
            final_output: definition.final_output(),
        })
    }
}

/// An [`Event`] before a stream gives it a number.
#[derive(Debug, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) subject: Option<Arc<Subject>>,
    pub(crate) payload: Payload,
}

impl Occurrence {
    /// An event that does not belong to a call.
    pub(crate) fn of_host(payload: Payload) -> Arc<Self> {
        Arc::new(Self { subject: None, payload })
    }

    /// Its approximate size in memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match &self.payload {
                Payload::Prepare { arguments } => arguments.as_ref().map_or(0, size::of_value),
                Payload::Status(status) => {
                    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                    text(&status.tip)
                        + text(&status.error)
                        + status.result.as_ref().map_or(0, size::of_value)
                        + size::of_members(&status.params)
                        + size::of_members(&status.metadata)
                }
                Payload::Suspended { reason } => reason.len(),
                Payload::Output(part) => size::of_part(part),
                Payload::Paused { tool, identity } => tool.len() + identity.len(),
                Payload::Completed(completion) => {
                    completion.result.as_deref().map_or(0, size::of_value)
                }
                Payload::Lagged { .. } | Payload::Detached { .. } => 0,
            }
    }
}

/// One event of one stream. Cloning it is cheap.
///
/// Which call it belongs to is absent on events of the host and of the stream itself
/// ([`Payload::Paused`], [`Payload::Lagged`], [`Payload::Detached`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    sequence: u64,
    occurrence: Arc<Occurrence>,
}

impl Event {
    pub(crate) fn new(sequence: u64, occurrence: Arc<Occurrence>) -> Self {
        Self { sequence, occurrence }
    }

    /// Its sequence number in the stream it was read from: 1, 2, 3 and so on. The same event has
    /// different numbers in different streams.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The call it belongs to.
    pub fn call_id(&self) -> Option<&CallId> {
        self.occurrence.subject.as_ref().map(|subject| &subject.call_id)
    }

    /// The tool that was called.
    pub fn tool(&self) -> Option<&str> {
        self.occurrence.subject.as_ref().map(|subject| subject.tool.as_str())
    }

    /// The identity that made the call, or for which a tool is paused: tenant and user as one text,
    /// empty if the host names neither, like
    /// [`Owner::identity`](crate::output::spill::Owner::identity) has it. `None` if the event does
    /// not belong to an identity.
    pub fn identity(&self) -> Option<&str> {
        match self.payload() {
            Payload::Paused { identity, .. } => Some(identity),
            _ => self.occurrence.subject.as_ref().map(|subject| &*subject.identity),
        }
    }

    /// Whether the tool is hidden from people. Such events are only on the bus.
    pub fn hidden(&self) -> bool {
        self.occurrence.subject.as_ref().is_some_and(|subject| subject.hidden)
    }

    /// Whether the tool's output is the assistant's message.
    pub fn final_output(&self) -> bool {
        self.occurrence.subject.as_ref().is_some_and(|subject| subject.final_output)
    }

    /// What happened.
    pub fn payload(&self) -> &Payload {
        &self.occurrence.payload
    }

    /// The stage of the call; `None` if the event does not belong to a call.
    pub fn stage(&self) -> Option<Stage> {
        match self.payload() {
            Payload::Prepare { .. } => Some(Stage::Prepare),
            Payload::Status(_) | Payload::Suspended { .. } => Some(Stage::Processing),
            Payload::Output(_) => Some(Stage::Output),
            Payload::Completed(_) => Some(Stage::Completed),
            Payload::Paused { .. } | Payload::Lagged { .. } | Payload::Detached { .. } => None,
        }
    }

    /// Its stable name, for example as the event name of a server-sent event: `call.prepare`,
    /// `call.status`, `call.suspended`, `call.output`, `call.completed`, `task.paused`,
    /// `stream.lagged` or `stream.detached`.
    pub fn name(&self) -> &'static str {
        match self.payload() {
            Payload::Prepare { .. } => "call.prepare",
            Payload::Status(_) => "call.status",
            Payload::Suspended { .. } => "call.suspended",
            Payload::Output(_) => "call.output",
            Payload::Completed(_) => "call.completed",
            Payload::Paused { .. } => "task.paused",
            Payload::Lagged { .. } => "stream.lagged",
            Payload::Detached { .. } => "stream.detached",
        }
    }
}
