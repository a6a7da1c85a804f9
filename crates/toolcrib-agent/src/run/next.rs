//! What comes next in a run.

use std::time::Duration;

use toolcrib_tool::{Content, ErrorKind, ToolError, ToolResult};
use toolcrib_wire::model::{Input, Item, Role};

use super::calls::{CallState, RoundCall};
use super::compaction::ContextLimits;
use super::{AgentRun, Outcome, Phase, Refusal, Step};
use crate::JournalEntry;
use crate::budget::Limit;
use crate::guard::call_key;
use crate::sub_agents::tools::ATTEMPT_COMPLETION;

/// Rounds in which every call repeats earlier ones, after which the run pauses.
const MAX_REPETITIONS: u32 = 2;

impl AgentRun {
    /// What comes next, if the conversation fits into the model's context.
    pub fn next(&self) -> Step {
        self.next_within(None)
    }

    /// What comes next with a model that has this room.
    pub(crate) fn next_within(&self, limits: Option<&ContextLimits>) -> Step {
        if self.outcome.is_some() {
            return Step::Over;
        }
        if self.paused.is_some() {
            return Step::Paused;
        }
        match &self.phase {
            Phase::Said { text, .. } => finish(Outcome::Completed { text: text.clone() }),
            Phase::Ending(outcome) => finish(outcome.clone()),
            Phase::Calling { calls, refusal } => self.next_of_calls(calls, *refusal),
            // A request without an answer: its process ended.
            Phase::Asking { attempt, .. } | Phase::Summarizing { attempt } => {
                self.ask(attempt + 1, limits)
            }
            Phase::Ready => self.ask(self.lost.before + self.lost.during + 1, limits),
        }
    }

    fn ask(&self, attempt: u32, limits: Option<&ContextLimits>) -> Step {
        if self.repetitions >= MAX_REPETITIONS {
            let reason = "the model repeats the same calls with the same results".to_owned();
            return Step::Append(vec![JournalEntry::Paused { reason }]);
        }
        let last = self.budget.reached(&self.spent);
        if last == Some(Limit::Time) {
            return finish(Outcome::over_budget(Limit::Time));
        }
        if last.is_none()
            && let Some(limit) = self.budget.near(&self.spent)
            && !self.noticed.contains(&limit)
        {
            let text = format!(
                "Nine tenths of this run's budget ({limit}) are used. Finish soon: when it is used up, you must answer \
                 without tools."
            );
            let item =
                Item::Input(Input { role: Role::System, content: vec![Content::Text(text)] });
            return Step::Append(vec![JournalEntry::BudgetNotice { limit, item }]);
        }
        let compaction = limits.and_then(|limits| self.compaction(limits, attempt));
        compaction.unwrap_or(Step::Ask { round: self.rounds + 1, attempt, last })
    }

    fn next_of_calls(&self, calls: &[RoundCall], refusal: Option<Refusal>) -> Step {
        let answers: Vec<_> = self.answers_without_running(calls, refusal);
        if !answers.is_empty() {
            return Step::Append(answers);
        }
        let own = calls.iter().filter(|call| !call.is_for_client);
        let planned: Vec<_> = own.filter_map(RoundCall::to_plan).collect();
        if !planned.is_empty() {
            return Step::Call(planned);
        }
        let is_left = |call: &&RoundCall| matches!(call.state, CallState::Planned);
        let calls: Vec<_> = calls.iter().filter(is_left).map(|call| call.id.clone()).collect();
        if calls.is_empty() {
            return Step::Wait;
        }
        Step::Append(vec![JournalEntry::CallsHandedOver { calls }])
    }

    /// The answers to calls that must not run, or whose final answer was lost with their process.
    fn answers_without_running(
        &self,
        calls: &[RoundCall],
        refusal: Option<Refusal>,
    ) -> Vec<JournalEntry> {
        let mut guard = self.guard.clone();
        let mut left = self.budget.max_calls.map(|max| max.saturating_sub(self.spent.calls));
        let mut answers = Vec::new();
        for call in calls {
            let mut repetition = false;
            let error = match (&call.state, refusal) {
                (CallState::HandedOver | CallState::Waiting(_) | CallState::Done(_), _) => continue,
                (CallState::Ended(result), _) => {
                    let result = result.clone();
                    answers.push(JournalEntry::CallFinished { result, repetition });
                    continue;
                }
                (CallState::Started, _) if call.is_repeatable() || self.asks_about_lost_calls() => {
                    continue;
                }
                (CallState::Started, _) => lost(),
                (CallState::Planned, Some(refusal)) => refusal.error(),
                (CallState::Planned, None) if !self.allows(&call.tool) => not_allowed(&call.tool),
                // What repeats there is the client's to judge.
                (CallState::Planned, None) if call.is_for_client => continue,
                (CallState::Planned, None)
                    if &*call.tool == ATTEMPT_COMPLETION && calls.len() > 1 =>
                {
                    not_alone()
                }
                (CallState::Planned, None) => {
                    let key = call_key(&call.tool, &call.arguments);
                    if let Some(period) = guard.repeats(key)
                        && !self.is_polled(&call.tool)
                    {
                        guard.record_refused(key);
                        repetition = true;
                        repeated(period)
                    } else if left == Some(0) {
                        Refusal::LastRound(Limit::Calls).error()
                    } else {
                        left = left.map(|left| left - 1);
                        continue;
                    }
                }
            };
            let result =
                ToolResult::failure(call.id.clone(), call.tool.as_ref(), error, Duration::ZERO);
            answers.push(JournalEntry::CallFinished { result: Box::new(result), repetition });
        }
        answers
    }

    /// Whether the last request of a client allows a tool.
    fn allows(&self, tool: &str) -> bool {
        self.request.as_ref().is_none_or(|request| request.settings.allows(tool))
    }

    pub(crate) fn is_polled(&self, tool: &str) -> bool {
        self.poll_tools.iter().any(|polled| polled == tool)
    }
}

pub(super) fn finish(outcome: Outcome) -> Step {
    Step::Append(vec![JournalEntry::Finished { outcome }])
}

impl Refusal {
    fn error(self) -> ToolError {
        match self {
            Self::Incomplete => ToolError::new(
                ErrorKind::Cancelled,
                "the call was not run, because the answer was stopped before it was complete",
            )
            .with_hint("Make the call again, with shorter arguments if the answer was too long."),
            Self::LastRound(limit) => {
                ToolError::denied(format!("the budget of the run is used up ({limit})"))
                    .with_hint("Answer without tools.")
            }
        }
    }
}

/// The error for a call whose process ended while it ran.
pub(crate) fn lost() -> ToolError {
    ToolError::outcome_unknown(
        "whether the tool ran is not known, because the program ended meanwhile",
    )
    .with_hint("Look before you make the call again.")
}

/// The result of a call that somebody was asked about because its process had ended while it ran: if it was not run
/// again, its outcome is still unknown.
pub(crate) fn after_asking(result: ToolResult) -> ToolResult {
    use ErrorKind::{
        Cancelled, Constraint, Denied, InvalidArgs, InvalidJson, MissingContext, NotFound, Paused,
        RateLimited, RequiresApproval, Unavailable,
    };
    let Some(error) = result.error() else { return result };
    let has_not_run = matches!(
        error.kind(),
        NotFound
            | InvalidJson
            | InvalidArgs
            | Constraint
            | MissingContext
            | Denied
            | RequiresApproval
            | Unavailable
            | RateLimited
            | Cancelled
            | Paused
    );
    if !has_not_run {
        return result;
    }
    let told = lost().with_hint(format!("It was not run again: {}", error.message()));
    ToolResult::failure(result.call_id().clone(), result.tool(), told, result.duration())
}

/// The error for a call that ends the run beside other calls, whose results it cannot know.
fn not_alone() -> ToolError {
    let message = format!("not run: `{ATTEMPT_COMPLETION}` has to be the only call of an answer");
    ToolError::invalid_args(message)
        .with_hint("Read the results of the other calls first. Then make this call alone.")
}

fn not_allowed(tool: &str) -> ToolError {
    ToolError::denied(format!("not run: the request does not allow `{tool}`"))
        .with_hint("Use the tools that you were given, or answer.")
}

fn repeated(period: usize) -> ToolError {
    let what = if period == 1 {
        "this call was made twice with the same result".to_owned()
    } else {
        format!("the last {period} calls were made twice with the same results")
    };
    ToolError::denied(format!("not run: {what}")).with_hint("Do something else, or answer.")
}
