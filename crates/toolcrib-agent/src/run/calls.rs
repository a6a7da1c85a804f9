//! The calls of one round.

use std::sync::Arc;

use toolcrib_core::suspension::Suspension;
use toolcrib_tool::{CallId, ToolResult};

use crate::entry::{PlannedCall, StartedCall};
use crate::sub_agents::SubAgentEnd;

/// A call of the current round.
#[derive(Debug, Clone)]
pub(super) struct RoundCall {
    pub(super) id: CallId,
    /// The tool's own name.
    pub(super) tool: Arc<str>,
    pub(super) arguments: String,
    pub(super) state: CallState,
    /// Whether its tool is the client's.
    pub(super) is_for_client: bool,
    /// How it was started last.
    pub(super) started: Option<StartedCall>,
    /// Whether it was not run because it repeats earlier calls.
    pub(super) is_repetition: bool,
    /// The sub-agents that have ended, of a call that waits for some.
    pub(super) ends: Vec<SubAgentEnd>,
}

/// How far a call has come.
#[derive(Debug, Clone)]
pub(super) enum CallState {
    /// It was not started.
    Planned,
    /// It was started; nothing is known of it since.
    Started,
    /// It has ended, and others of its round have not: its final answer may become shorter.
    Ended(Box<ToolResult>),
    /// The client has it, and answers with its next request.
    HandedOver,
    /// It waits.
    Waiting(Box<Suspension>),
    /// It has its answer.
    Done(Box<ToolResult>),
}

impl RoundCall {
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, CallState::Done(_))
    }

    /// Whether its tool is read-only or idempotent.
    pub(super) fn is_repeatable(&self) -> bool {
        self.started.as_ref().is_some_and(|started| started.repeatable)
    }

    /// Whether its success ends the run.
    pub(super) fn is_terminal(&self) -> bool {
        self.started.as_ref().is_some_and(|started| started.terminal)
    }

    /// The call, if it may have to be run.
    pub(super) fn to_plan(&self) -> Option<PlannedCall> {
        let lost = match &self.state {
            CallState::Planned => None,
            CallState::Started => self.started.clone(),
            CallState::Ended(_)
            | CallState::HandedOver
            | CallState::Waiting(_)
            | CallState::Done(_) => return None,
        };
        Some(PlannedCall::new(
            self.id.clone(),
            Arc::clone(&self.tool),
            self.arguments.clone(),
            lost,
        ))
    }
}
