//! Applies rows of a journal to a run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_tool::{CallId, ErrorKind, ToolError, ToolResult};
use toolcrib_wire::model::{Item, ModelItem, StopReason, Usage, View};

use super::calls::{CallState, RoundCall};
use super::compaction::Compactions;
use super::context::Context;
use super::{AgentRun, FailureReason, Outcome, Phase, Refusal};
use crate::budget::{Cost, Limit, Spent};
use crate::entry::{FORMAT, JournalEntry, JournalRow, StartedCall};
use crate::guard::{LoopGuard, call_key};
use crate::retry::LostAttempts;
use crate::sub_agents::SubAgentEnd;

/// The error for a row that cannot follow the rows before it. The run must not be used any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidRow {
    row: u64,
    problem: String,
}

impl InvalidRow {
    pub(crate) fn new(row: u64, problem: String) -> Self {
        Self { row, problem }
    }
}

impl fmt::Display for InvalidRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}: {}", self.row, self.problem)
    }
}

impl std::error::Error for InvalidRow {}

impl AgentRun {
    /// The run at its first row.
    pub fn begin(row: JournalRow) -> Result<Self, InvalidRow> {
        let invalid = |problem: String| InvalidRow { row: 1, problem };
        let JournalRow { at, entry, .. } = row;
        let JournalEntry::Started {
            format,
            identity,
            agent,
            budget,
            poll_tools,
            parent,
            toolset,
            for_client,
            metadata,
            lost_calls,
        } = entry
        else {
            return Err(invalid("it does not begin a run".to_owned()));
        };
        if format > FORMAT {
            return Err(invalid(format!(
                "a newer toolcrib wrote it (format {format}, this program knows up to {FORMAT}): use that version"
            )));
        }
        Ok(Self {
            identity,
            agent,
            budget,
            poll_tools,
            parent,
            toolset,
            for_client,
            metadata,
            lost_calls,
            version: 1,
            created_at: at,
            last_at: at,
            context: Context::default(),
            steered: Vec::new(),
            compactions: Compactions::default(),
            phase: Phase::Ready,
            paused: None,
            outcome: None,
            rounds: 0,
            spent: Spent::default(),
            spent_before: Spent::default(),
            model: None,
            lost: LostAttempts::default(),
            call_ids: Arc::default(),
            guard: LoopGuard::default(),
            repetitions: 0,
            refused_answers: 0,
            noticed: HashSet::new(),
            request: None,
            requests: BTreeSet::new(),
        })
    }

    /// The run at the end of these rows.
    pub fn fold(rows: impl IntoIterator<Item = JournalRow>) -> Result<Self, InvalidRow> {
        let mut rows = rows.into_iter();
        let first = rows.next();
        let first = first.ok_or(InvalidRow { row: 1, problem: "it is missing".to_owned() })?;
        let mut run = Self::begin(first)?;
        for row in rows {
            run.apply(row)?;
        }
        Ok(run)
    }

    /// Applies the next row.
    pub fn apply(&mut self, row: JournalRow) -> Result<(), InvalidRow> {
        let number = self.version + 1;
        let invalid = |problem: &str| InvalidRow { row: number, problem: problem.to_owned() };
        let JournalRow { at, entry, .. } = row;
        let was_active = self.is_active() && !matches!(entry, JournalEntry::Resumed);
        let applied = match entry {
            JournalEntry::RequestRemoved { row } => self.remove_request(row),
            entry => self.apply_entry(entry),
        };
        applied.map_err(invalid)?;
        self.hear();
        if was_active {
            self.spent.time += at.since(self.last_at);
        }
        self.last_at = at;
        self.version = number;
        Ok(())
    }

    /// Whether the run can go on by itself, and time passes for its budget.
    pub(crate) fn is_active(&self) -> bool {
        let waits = |call: &RoundCall| {
            matches!(call.state, CallState::HandedOver | CallState::Waiting(_) | CallState::Done(_))
        };
        let only_waits = !self.calls().is_empty() && self.calls().iter().all(waits);
        self.outcome.is_none() && self.paused.is_none() && !only_waits
    }

    fn apply_entry(&mut self, entry: JournalEntry) -> Result<(), &'static str> {
        let may_continue = matches!(
            entry,
            JournalEntry::Input { .. } | JournalEntry::Requested(_) | JournalEntry::Resumed
        );
        if self.outcome.is_some() && !may_continue {
            return Err("the run has ended");
        }
        let is_about_waits = is_about_waits(&entry);
        if self.paused.is_some() && !may_continue && !is_about_waits {
            return Err("the run is paused");
        }
        match entry {
            JournalEntry::Started { .. } | JournalEntry::RequestRemoved { .. } => {
                return Err("it begins the run again");
            }
            JournalEntry::Input { items } => self.input(items)?,
            JournalEntry::Requested(request) => self.request(*request)?,
            JournalEntry::CallsHandedOver { calls } => self.hand_over(&calls)?,
            JournalEntry::Steered { items } => {
                check_messages(&items)?;
                self.steered.push(items);
            }
            JournalEntry::BudgetNotice { limit, item } => {
                if !matches!(self.phase, Phase::Ready) {
                    return Err("the model cannot be told anything now");
                }
                self.noticed.insert(limit);
                self.context.push(vec![item]);
            }
            JournalEntry::ModelRequested { round, attempt, model, last } => {
                self.begin_request(round)?;
                if self.model.as_ref() != Some(&model) {
                    // Every model has its own attempts.
                    (self.lost.before, self.lost.during) = (0, 0);
                }
                self.model = Some(model);
                self.phase = Phase::Asking { attempt, last };
            }
            JournalEntry::SummaryRequested { round, attempt, .. } => {
                self.begin_request(round)?;
                self.phase = Phase::Summarizing { attempt };
            }
            JournalEntry::ModelLost { began, context_exceeded, reason, .. } => {
                if !matches!(self.phase, Phase::Asking { .. } | Phase::Summarizing { .. }) {
                    return Err("the model was not asked");
                }
                self.lose_attempt(began);
                if context_exceeded {
                    self.compactions.refusal = Some(reason);
                }
                self.phase = Phase::Ready;
            }
            JournalEntry::ModelAnswered { items, usage, cost, stop, names, .. } => {
                self.answer(items, usage, cost, &stop, &names)?;
            }
            JournalEntry::AnswerRefused { item } => {
                if !matches!(self.phase, Phase::Said { .. }) {
                    return Err("there is no answer to refuse");
                }
                self.refused_answers += 1;
                self.phase = Phase::Ready;
                self.context.push(vec![item]);
            }
            JournalEntry::Compacted(compacted) => self.shorten(compacted)?,
            JournalEntry::CallsStarted { calls } => self.start(calls)?,
            JournalEntry::CallEnded { result } => {
                let id = result.call_id().clone();
                if !self.lost_calls().any(|running| *running == id) {
                    return Err("it ends a call that does not run");
                }
                self.update(id.as_str(), CallState::Ended(result))?;
            }
            JournalEntry::CallFinished { result, repetition } => {
                let id = result.call_id().clone();
                self.update(id.as_str(), CallState::Done(result))?.is_repetition = repetition;
                self.end_round();
            }
            JournalEntry::CallSuspended { suspension } => {
                let id = suspension.call_id().to_owned();
                self.update(&id, CallState::Waiting(suspension))?;
            }
            JournalEntry::CallResolved { call, .. } => {
                if !self.waiting().any(|waiting| waiting.call_id() == call.as_str()) {
                    return Err("it resolves a call that does not wait");
                }
            }
            JournalEntry::ChildFinished { call, end } => self.end_child(&call, *end)?,
            JournalEntry::Paused { reason } => self.paused = Some(reason),
            JournalEntry::Resumed => {
                self.paused = None;
                self.repetitions = 0;
                if matches!(self.phase, Phase::Asking { .. } | Phase::Summarizing { .. }) {
                    // Its process ended before the answer came.
                    self.lose_attempt(false);
                    self.phase = Phase::Ready;
                }
            }
            JournalEntry::Finished { outcome } => self.finish(outcome),
        }
        Ok(())
    }

    /// A request is sent. If another one has no answer, its process ended.
    fn begin_request(&mut self, round: u32) -> Result<(), &'static str> {
        if round != self.rounds + 1 {
            return Err("it is not the next round");
        }
        match &self.phase {
            Phase::Ready => Ok(()),
            Phase::Asking { .. } | Phase::Summarizing { .. } => {
                self.lose_attempt(false);
                Ok(())
            }
            _ => Err("the model cannot be asked now"),
        }
    }

    fn answer(
        &mut self,
        items: Vec<ModelItem>,
        usage: Option<Usage>,
        cost: Option<Cost>,
        stop: &StopReason,
        names: &BTreeMap<String, String>,
    ) -> Result<(), &'static str> {
        let Phase::Asking { last, .. } = self.phase else {
            return Err("the model was not asked");
        };
        self.spent.add_answer(usage, cost);
        self.rounds += 1;
        (self.lost.before, self.lost.during) = (0, 0);
        self.compactions.refusal = None;
        let calls = self.calls_of(&items, names)?;
        self.phase = if calls.is_empty() {
            after_words(&items, stop, last)
        } else {
            self.refused_answers = 0;
            let refusal = match last {
                Some(limit) => Some(Refusal::LastRound(limit)),
                None if stop.completes_calls() => None,
                None => Some(Refusal::Incomplete),
            };
            Phase::Calling { calls, refusal }
        };
        if !items.is_empty() {
            self.context.push(items.into_iter().map(Item::from).collect());
        }
        if let Some(usage) = usage {
            self.context.count(&usage);
        }
        Ok(())
    }

    fn input(&mut self, items: Vec<Item>) -> Result<(), &'static str> {
        if !self.takes_input() {
            return Err("calls have no answer yet");
        }
        check_messages(&items)?;
        if matches!(self.phase, Phase::Asking { .. } | Phase::Summarizing { .. }) {
            self.lose_attempt(false);
        }
        if self.outcome.take().is_some() {
            self.begin_budget();
        }
        self.begin_again();
        self.context.push(items);
        Ok(())
    }

    /// Uses the whole budget again.
    pub(super) fn begin_budget(&mut self) {
        self.spent_before.add(&std::mem::take(&mut self.spent));
        self.lost = LostAttempts::default();
        self.compactions.begin_again();
        self.noticed.clear();
    }

    /// The model can be asked, whatever was before.
    pub(super) fn begin_again(&mut self) {
        self.paused = None;
        self.repetitions = 0;
        self.refused_answers = 0;
        self.guard = LoopGuard::default();
        self.phase = Phase::Ready;
    }

    /// Adds what was said meanwhile to the conversation, if nothing is in the way. A run that was about to end goes on,
    /// unless it could not.
    fn hear(&mut self) {
        if self.steered.is_empty() {
            return;
        }
        match &self.phase {
            Phase::Ready => {}
            Phase::Said { .. } => self.phase = Phase::Ready,
            Phase::Ending(outcome) if outcome.may_go_on() => self.phase = Phase::Ready,
            _ => return,
        }
        for items in std::mem::take(&mut self.steered) {
            self.context.push(items);
        }
        self.repetitions = 0;
        self.refused_answers = 0;
        self.guard = LoopGuard::default();
    }

    pub(super) fn lose_attempt(&mut self, began: bool) {
        *if began { &mut self.lost.during } else { &mut self.lost.before } += 1;
        self.lost.all += 1;
        self.spent.unknown_requests += 1;
    }

    /// The calls of an answer.
    fn calls_of(
        &mut self,
        items: &[ModelItem],
        names: &BTreeMap<String, String>,
    ) -> Result<Vec<RoundCall>, &'static str> {
        let calls = items.iter().filter_map(|item| match item.view() {
            View::Call(call) => Some(call),
            _ => None,
        });
        let calls: Vec<_> = calls
            .map(|call| {
                let name = names.get(&call.name).unwrap_or(&call.name);
                let made = call.to_tool_call(name.as_str());
                RoundCall {
                    id: call.id.clone(),
                    tool: Arc::from(name.as_str()),
                    arguments: made.arguments().as_str().to_owned(),
                    state: CallState::Planned,
                    started: None,
                    is_for_client: self
                        .request
                        .as_ref()
                        .is_some_and(|request| request.settings.is_client_tool(name)),
                    is_repetition: false,
                    ends: Vec::new(),
                }
            })
            .collect();
        let ids = Arc::make_mut(&mut self.call_ids);
        for call in &calls {
            if !ids.insert(call.id.clone()) {
                return Err("two calls have the same id");
            }
        }
        Ok(calls)
    }

    fn start(&mut self, started: Vec<StartedCall>) -> Result<(), &'static str> {
        let asks = self.asks_about_lost_calls();
        let Phase::Calling { calls, .. } = &mut self.phase else {
            return Err("there are no calls to start");
        };
        for started in started {
            let call = calls.iter_mut().find(|call| call.id == started.id);
            let Some(call) = call else { return Err("it starts an unknown call") };
            match &call.state {
                CallState::Planned => self.spent.calls += 1,
                CallState::Started => {}
                // Its answer was lost with the process that had resolved it.
                CallState::Waiting(_) if call.is_repeatable() || asks && started.again => {}
                CallState::Waiting(_) => {
                    return Err("it starts a call that waits and cannot be repeated");
                }
                CallState::HandedOver => return Err("it starts a call that the client has"),
                CallState::Ended(_) | CallState::Done(_) => {
                    return Err("it starts a call that has an answer");
                }
            }
            call.state = CallState::Started;
            call.started = Some(started);
        }
        Ok(())
    }

    pub(super) fn update(
        &mut self,
        id: &str,
        state: CallState,
    ) -> Result<&mut RoundCall, &'static str> {
        let Phase::Calling { calls, .. } = &mut self.phase else {
            return Err("no call waits for an answer");
        };
        let call = calls.iter_mut().find(|call| call.id.as_str() == id);
        let Some(call) = call else { return Err("it answers an unknown call") };
        if call.is_done() {
            return Err("it answers a call that has its answer");
        }
        call.state = state;
        Ok(call)
    }

    /// Adds the answer of a sub-agent, and what it has used. Siblings work at the same time, so the longest counts.
    fn end_child(&mut self, id: &CallId, end: SubAgentEnd) -> Result<(), &'static str> {
        let Phase::Calling { calls, .. } = &mut self.phase else {
            return Err("no call waits for sub-agents");
        };
        let call = calls.iter_mut().find(|call| call.id == *id);
        let Some(call) = call.filter(|call| matches!(call.state, CallState::Waiting(_))) else {
            return Err("its call does not wait");
        };
        if call.ends.iter().any(|known| known.index == end.index) {
            return Err("the sub-agent has ended before");
        }
        let longest = call.ends.iter().map(|end| end.spent.time).max().unwrap_or_default();
        self.spent.add_sub_agent(&end.spent);
        let longer = end.spent.time.saturating_sub(longest);
        self.spent.time = self.spent.time.saturating_add(longer);
        call.ends.push(end);
        Ok(())
    }

    /// Ends the round if every call has its answer.
    pub(super) fn end_round(&mut self) {
        let Phase::Calling { calls, refusal } = &mut self.phase else { return };
        if !calls.iter().all(RoundCall::is_done) {
            return;
        }
        let (calls, refusal) = (std::mem::take(calls), *refusal);
        let mut end = None;
        let mut all_repeat = true;
        let mut group = Vec::with_capacity(calls.len());
        for call in calls {
            let is_terminal = call.is_terminal();
            let CallState::Done(result) = call.state else { continue };
            let key = call_key(&call.tool, &call.arguments);
            if call.is_repetition {
                self.guard.record_refused(key);
            } else {
                all_repeat = false;
                let counts = !call.is_for_client
                    && !self.poll_tools.iter().any(|polled| **polled == *call.tool);
                if counts {
                    self.guard.record(key, &result);
                }
            }
            if is_terminal && result.is_success() {
                end.get_or_insert_with(|| result.text().into_owned());
            }
            group.push(Item::Result(result));
        }
        self.context.push(group);
        self.repetitions = if all_repeat { self.repetitions + 1 } else { 0 };
        self.phase = match (end, refusal) {
            (Some(text), _) => Phase::Ending(Outcome::Completed { text }),
            (None, Some(Refusal::LastRound(limit))) => Phase::Ending(Outcome::over_budget(limit)),
            (None, _) => Phase::Ready,
        };
    }

    /// Ends the run. Calls without an answer get one, so that the conversation can be continued.
    fn finish(&mut self, outcome: Outcome) {
        if let Phase::Calling { calls, .. } = &mut self.phase {
            for call in calls {
                if let CallState::Ended(result) = &call.state {
                    call.state = CallState::Done(result.clone());
                }
                if !call.is_done() {
                    let error = ToolError::new(
                        ErrorKind::Cancelled,
                        "the run ended before the call was answered",
                    );
                    let result = ToolResult::failure(
                        call.id.clone(),
                        call.tool.as_ref(),
                        error,
                        Duration::ZERO,
                    );
                    call.state = CallState::Done(Box::new(result));
                }
            }
            self.end_round();
        }
        self.phase = Phase::Ready;
        self.paused = None;
        self.outcome = Some(outcome);
    }
}

/// Whether an entry is about waiting calls, which goes on while a run is paused.
fn is_about_waits(entry: &JournalEntry) -> bool {
    matches!(
        entry,
        JournalEntry::Finished { .. }
            | JournalEntry::CallFinished { .. }
            | JournalEntry::CallSuspended { .. }
            | JournalEntry::CallResolved { .. }
            | JournalEntry::ChildFinished { .. }
            | JournalEntry::Steered { .. }
    )
}

pub(super) fn check_messages(items: &[Item]) -> Result<(), &'static str> {
    let is_message = |item: &Item| matches!(item, Item::Input(_));
    if items.iter().all(is_message) { Ok(()) } else { Err("input has to be messages") }
}

/// What follows an answer without calls.
fn after_words(items: &[ModelItem], stop: &StopReason, last: Option<Limit>) -> Phase {
    let text: String = items
        .iter()
        .filter_map(|item| match item.view() {
            View::Message { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let failed = |reason, message: &str| {
        let text = (!text.is_empty()).then(|| text.clone());
        Phase::Ending(Outcome::Failed { reason, message: message.to_owned(), text })
    };
    match stop {
        StopReason::End | StopReason::Calls => Phase::Said { text, last },
        // The provider wants the conversation again, and goes on.
        StopReason::Paused => Phase::Ready,
        StopReason::ContextExceeded => {
            failed(FailureReason::ContextExceeded, "the conversation fills the model's context")
        }
        StopReason::Filter => {
            failed(FailureReason::Filtered, "a filter of the provider stopped the answer")
        }
        StopReason::Refused => failed(FailureReason::Refused, "the model refused to answer"),
        StopReason::Length => {
            failed(FailureReason::Incomplete, "the answer reached its limit on length")
        }
        StopReason::Other(reason) => {
            failed(FailureReason::Incomplete, &format!("the model stopped: {reason}"))
        }
        _ => failed(FailureReason::Incomplete, "the model stopped early"),
    }
}
