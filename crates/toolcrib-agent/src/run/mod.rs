//! A run as the sum of its journal, and what comes next in it.

mod apply;
mod calls;
mod compaction;
mod context;
#[cfg(test)]
mod histories;
mod next;
mod outcome;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use toolcrib_core::Toolset;
use toolcrib_core::clock::Timestamp;
use toolcrib_core::run::Seq;
use toolcrib_core::suspension::{Answer, Suspension, Waiting};
use toolcrib_tool::CallId;
use toolcrib_wire::model::Item;

use crate::JournalEntry;
use crate::budget::{Budget, Limit, Spent};
use crate::entry::{LostCalls, PlannedCall, StartedCall};
use crate::guard::LoopGuard;
use crate::request::RequestSettings;
use crate::retry::LostAttempts;
use crate::sub_agents::{ParentCall, SubAgentEnd};
use calls::{CallState, RoundCall};
use compaction::Compactions;
use context::Context;

pub use apply::InvalidRow;
pub use compaction::CompactionPlan;
pub(crate) use compaction::{ContextLimits, WrittenSummary, short_text};
pub(crate) use next::{after_asking, lost};
pub use outcome::{FailureReason, Outcome};
pub use toolcrib_core::run::RunState;

/// The state of a run: what the rows of its journal add up to.
///
/// It has no clock, no randomness and does no I/O, so the same rows always give the same state, in the process that wrote
/// them and in any later one. [`next`](Self::next) says what comes next, and whoever does it [applies](Self::apply) the
/// rows that result.
#[derive(Debug, Clone)]
pub struct AgentRun {
    identity: String,
    agent: String,
    budget: Budget,
    poll_tools: Vec<String>,
    parent: Option<Box<ParentCall>>,
    toolset: Option<Toolset>,
    for_client: bool,
    metadata: BTreeMap<String, String>,
    lost_calls: LostCalls,
    version: Seq,
    created_at: Timestamp,
    last_at: Timestamp,
    /// The conversation as the model sees it.
    context: Context,
    /// What was said and is not in the conversation yet.
    steered: Vec<Vec<Item>>,
    compactions: Compactions,
    phase: Phase,
    paused: Option<String>,
    outcome: Option<Outcome>,
    /// Complete answers of the model, over all inputs.
    rounds: u32,
    spent: Spent,
    /// What was used until it last continued after its end.
    spent_before: Spent,
    /// The model that was asked last.
    model: Option<String>,
    lost: LostAttempts,
    /// The ids of all calls so far.
    call_ids: Arc<HashSet<CallId>>,
    guard: LoopGuard,
    /// Consecutive rounds in which every call repeated earlier ones.
    repetitions: u32,
    /// Consecutive answers in words that were refused.
    refused_answers: u32,
    /// The limits that the model was told about.
    noticed: HashSet<Limit>,
    /// What the last request of a client asks of the model.
    request: Option<Arc<LastRequest>>,
    /// The rows of all requests that are not removed.
    requests: BTreeSet<Seq>,
}

/// The last request of a client.
#[derive(Debug)]
struct LastRequest {
    /// The number of its row.
    row: Seq,
    settings: RequestSettings,
    /// Complete answers of the model before it.
    rounds_before: u32,
}

/// What the run is doing.
#[derive(Debug, Clone)]
enum Phase {
    /// The model can be asked.
    Ready,
    /// A request was sent in this attempt.
    Asking { attempt: u32, last: Option<Limit> },
    /// The request of a summary was sent.
    Summarizing { attempt: u32 },
    /// Calls of the last answer have no answer yet.
    Calling { calls: Vec<RoundCall>, refusal: Option<Refusal> },
    /// The last answer is words without calls, and complete. `last` is the limit that made its round the last one.
    Said { text: String, last: Option<Limit> },
    /// The last answer ends the run.
    Ending(Outcome),
}

/// Why no call of an answer runs.
#[derive(Debug, Clone, Copy)]
enum Refusal {
    /// The answer was stopped before it was complete.
    Incomplete,
    /// It was the last answer that the budget allows.
    LastRound(Limit),
}

/// What comes next in a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// These entries follow from the journal alone.
    Append(Vec<JournalEntry>),
    /// Ask the model.
    Ask {
        /// The round, from 1.
        round: u32,
        /// The attempt in this round, from 1.
        attempt: u32,
        /// The limit that makes this the last round: the model has to answer without calls.
        last: Option<Limit>,
    },
    /// Make the conversation shorter before the model is asked.
    Compact {
        /// The round that it precedes.
        round: u32,
        /// The attempt before this round, from 1.
        attempt: u32,
        /// How.
        plan: CompactionPlan,
    },
    /// Run these calls.
    Call(Vec<PlannedCall>),
    /// Calls wait for somebody. See [`AgentRun::waiting`].
    Wait,
    /// It is paused until somebody resumes it.
    Paused,
    /// It has ended. Input would continue it.
    Over,
}

impl AgentRun {
    /// On whose behalf it runs; empty if the host named nobody.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Whose sub-agent it is.
    pub fn parent(&self) -> Option<&ParentCall> {
        self.parent.as_deref()
    }

    /// The toolset of whoever began it, which limits it for good.
    pub fn toolset(&self) -> Option<&Toolset> {
        self.toolset.as_ref()
    }

    /// Whether a client of a server began it, rather than the owner.
    pub fn is_for_client(&self) -> bool {
        self.for_client
    }

    /// The complete answer without calls that is about to end the run, with the limit that made its round the last one.
    pub(crate) fn said(&self) -> Option<(&str, Option<Limit>)> {
        match &self.phase {
            Phase::Said { text, last } if self.outcome.is_none() => Some((text, *last)),
            _ => None,
        }
    }

    /// Consecutive answers in words that were refused.
    pub(crate) fn refused_answers(&self) -> u32 {
        self.refused_answers
    }

    /// What whoever began it noted about it.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Why it is paused, if it is.
    pub fn pause_reason(&self) -> Option<&str> {
        self.paused.as_deref()
    }

    /// How a sub-agent of a waiting call has ended, if it has.
    pub(crate) fn child_end(&self, call: &CallId, index: usize) -> Option<&SubAgentEnd> {
        let call = self.calls().iter().find(|one| one.id == *call)?;
        call.ends.iter().find(|end| end.index == index)
    }

    /// The limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The number of the last row it includes.
    pub fn version(&self) -> Seq {
        self.version
    }

    /// When it began.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// When its last row was written.
    pub fn last_at(&self) -> Timestamp {
        self.last_at
    }

    /// What it has used since it was started or continued by input after its end.
    pub fn spent(&self) -> &Spent {
        &self.spent
    }

    /// What it has used since it began, over all inputs.
    pub fn spent_in_all(&self) -> Spent {
        let mut all = self.spent_before.clone();
        all.add(&self.spent);
        all
    }

    /// The conversation as its model sees it. What is in one group was said together. The results of a round follow its
    /// calls once every call has one. What a compaction left out is in the journal only.
    pub fn conversation(&self) -> &[Vec<Item>] {
        self.context.groups()
    }

    /// The tokens of the conversation, as the provider counted them last and as estimated since. `head` is the bytes of
    /// instructions and tools, which count until the first answer.
    pub fn context_tokens(&self, head: u64) -> u64 {
        self.context.tokens(head)
    }

    /// How often the conversation became shorter. What was sent before is no prefix of it any more then.
    pub fn compactions(&self) -> u32 {
        self.compactions.count
    }

    /// Why it is paused, if it is.
    pub fn paused(&self) -> Option<&str> {
        self.paused.as_deref()
    }

    /// How it ended, if it did.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Its state.
    pub fn state(&self) -> RunState {
        match &self.outcome {
            Some(Outcome::Completed { .. }) => RunState::Completed,
            Some(Outcome::Failed { .. }) => RunState::Failed,
            Some(Outcome::Cancelled { .. }) => RunState::Cancelled,
            None if self.paused.is_some() => RunState::Paused,
            None if matches!(self.next(), Step::Wait) => RunState::RequiresAction,
            None => RunState::InProgress,
        }
    }

    /// The calls that wait for somebody, in call order.
    pub fn waiting(&self) -> impl Iterator<Item = &Suspension> {
        self.calls().iter().filter_map(|call| match &call.state {
            CallState::Waiting(suspension) => Some(&**suspension),
            _ => None,
        })
    }

    /// The calls of this round that have an answer or wait, as core's runs take them.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        let answer = |call: &RoundCall| match &call.state {
            CallState::Waiting(suspension) => Some(Answer::Suspended(suspension.clone())),
            CallState::Done(result) => Some(Answer::Done((**result).clone())),
            CallState::Planned
            | CallState::Started
            | CallState::Ended(_)
            | CallState::HandedOver => None,
        };
        self.calls().iter().filter_map(answer).collect()
    }

    /// The ids of calls that were started and of which nothing is known since.
    pub(crate) fn lost_calls(&self) -> impl Iterator<Item = &CallId> {
        let lost = |call: &&RoundCall| matches!(call.state, CallState::Started);
        self.calls().iter().filter(lost).map(|call| &call.id)
    }

    /// How a waiting call starts again if its process ended after it was resolved; `None` if it may not.
    pub(crate) fn repeatable_wait(&self, id: &str) -> Option<StartedCall> {
        let waits = |call: &&RoundCall| matches!(call.state, CallState::Waiting(_));
        let call = self.calls().iter().filter(waits).find(|call| call.id.as_str() == id)?;
        let started = call.started.clone()?;
        let again = !started.repeatable;
        (!again || self.asks_about_lost_calls()).then_some(StartedCall { again, ..started })
    }

    /// Whether somebody is asked about calls whose outcome is unknown.
    pub(crate) fn asks_about_lost_calls(&self) -> bool {
        self.lost_calls == LostCalls::Ask
    }

    /// Whether somebody was asked whether a call may run again.
    pub(crate) fn is_asked_again(&self, id: &str) -> bool {
        let mut calls = self.calls().iter().filter(|call| call.id.as_str() == id);
        calls.any(|call| call.started.as_ref().is_some_and(|started| started.again))
    }

    /// Whether a call waits for the client's output.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.waiting().any(|call| matches!(call.waiting(), Waiting::Client))
    }

    /// Whether a call of this round has this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.call_number(id).is_some()
    }

    /// The calls that the client of the last request has and has to answer with its next one, with their tools, in call
    /// order.
    pub fn handed_over(&self) -> impl Iterator<Item = (&CallId, &str)> {
        let has = |call: &&RoundCall| matches!(call.state, CallState::HandedOver);
        self.calls().iter().filter(has).map(|call| (&call.id, &*call.tool))
    }

    /// The arguments of a call of this round, as JSON text.
    pub fn arguments_of(&self, id: &CallId) -> Option<&str> {
        let call = self.calls().iter().find(|call| call.id == *id)?;
        Some(&call.arguments)
    }

    /// The row of the last request of a client, if there was one.
    pub fn last_request(&self) -> Option<Seq> {
        self.request.as_ref().map(|request| request.row)
    }

    /// The names of the tools that the client of the last request runs.
    pub(crate) fn client_tools(&self) -> BTreeSet<String> {
        let tools = self.request.iter().flat_map(|request| &request.settings.tools);
        tools.map(|tool| tool.name.clone()).collect()
    }

    /// The rows of the requests of clients that are not removed.
    pub fn requests(&self) -> impl Iterator<Item = Seq> {
        self.requests.iter().copied()
    }

    /// Whether a client's request in this row was not removed.
    pub fn has_request(&self, row: Seq) -> bool {
        self.requests.contains(&row)
    }

    /// Whether nothing happens until somebody asks for it: it has ended, or its client has calls.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.outcome.is_some()
            || self.handed_over().next().is_some() && self.waiting().next().is_none()
    }

    /// What the last request of a client asks of the model, and whether no answer has followed yet.
    pub(crate) fn request_settings(&self) -> Option<(&RequestSettings, bool)> {
        let request = self.request.as_ref()?;
        Some((&request.settings, request.rounds_before == self.rounds))
    }

    /// Whether the success of a call of this round ends the run.
    pub(crate) fn is_terminal(&self, id: &str) -> bool {
        self.calls().iter().any(|call| call.is_terminal() && call.id.as_str() == id)
    }

    /// The number of a call in this round.
    pub(crate) fn call_number(&self, id: &str) -> Option<usize> {
        self.calls().iter().position(|call| call.id.as_str() == id)
    }

    /// The ids of all calls so far.
    pub(crate) fn call_ids(&self) -> &Arc<HashSet<CallId>> {
        &self.call_ids
    }

    /// The model that was asked last.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    pub(crate) fn lost_attempts(&self) -> LostAttempts {
        self.lost
    }

    /// Whether input can be added now: no call is without an answer.
    pub fn takes_input(&self) -> bool {
        self.outcome.is_some() || !matches!(self.phase, Phase::Calling { .. })
    }

    fn calls(&self) -> &[RoundCall] {
        match &self.phase {
            Phase::Calling { calls, .. } if self.outcome.is_none() => calls,
            _ => &[],
        }
    }
}
