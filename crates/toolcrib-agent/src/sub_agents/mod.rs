//! Agents that work for another agent: their tasks and answers.

mod limits;
pub mod tools;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_core::fingerprint::Fingerprint;
use toolcrib_core::run::RunId;
use toolcrib_core::suspension::{Suspension, Waiting};
use toolcrib_tool::{CallId, ToolOutput};

use crate::budget::{Budget, Cost, Spent};
use crate::run::Outcome;

pub use limits::SubAgentLimits;

/// The tasks of one call of `multi_agent`.
pub(crate) const MAX_TASKS: usize = 5;

/// Whose sub-agent a run is, and what makes it one. It never has a tool that its parent has not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentCall {
    /// The run that started it.
    pub run: RunId,
    /// The call that started it.
    pub call: CallId,
    /// The position of the task in the call.
    pub index: usize,
    /// The name of the task.
    pub task: String,
    /// How many runs there are above it.
    pub depth: u32,
    /// The agent of a [`new_task`](tools::NEW_TASK); `None` for a task of [`multi_agent`](tools::MULTI_AGENT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tools it was given; all of its parent's if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// How a sub-agent has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubAgentEnd {
    /// The position of its task in the call.
    pub index: usize,
    /// The name of its task.
    pub task: String,
    /// Its run.
    pub run: RunId,
    /// Its answer, or why there is none.
    pub answer: Result<String, String>,
    /// What it has used.
    pub spent: Spent,
}

impl SubAgentEnd {
    pub(crate) fn of(parent: &ParentCall, run: RunId, outcome: &Outcome, spent: &Spent) -> Self {
        let answer = match outcome {
            Outcome::Completed { text } => Ok(text.clone()),
            Outcome::Failed { message, text: None, .. } => Err(message.clone()),
            Outcome::Failed { message, text: Some(text), .. } => {
                Err(format!("{message}; it had answered: {text}"))
            }
            Outcome::Cancelled { reason } => Err(format!("it was cancelled: {reason}")),
        };
        Self { index: parent.index, task: parent.task.clone(), run, answer, spent: spent.clone() }
    }

    /// The end of a run that cannot be read.
    pub(crate) fn lost(parent: &ParentCall, run: RunId, problem: String) -> Self {
        let (index, task) = (parent.index, parent.task.clone());
        Self { index, task, run, answer: Err(problem), spent: Spent::default() }
    }

    fn to_value(&self) -> Value {
        match &self.answer {
            Ok(text) => json!({"task_name": self.task, "success": true, "response": text}),
            Err(error) => json!({"task_name": self.task, "success": false, "error": error}),
        }
    }
}

/// Whether a waiting call is answered when its sub-agents have ended.
pub(crate) fn is_group(suspension: &Suspension) -> bool {
    let is_ticket =
        matches!(suspension.waiting(), Waiting::Pending { ticket } if ticket == tools::TICKET);
    is_ticket && [tools::MULTI_AGENT, tools::NEW_TASK].contains(&suspension.tool())
}

/// A task of a call, with what its agent is told.
pub(crate) struct Task {
    pub(crate) parent: ParentCall,
    pub(crate) run: RunId,
    pub(crate) input: String,
}

/// The tasks of a waiting call. They follow from the call alone, ids included, so every process that continues the run
/// finds the same ones.
pub(crate) fn tasks(
    run: &RunId,
    depth: u32,
    call: &Suspension,
) -> Result<Vec<Task>, serde_json::Error> {
    let planned = if call.tool() == tools::NEW_TASK {
        let task: tools::NewTask = serde_json::from_str(call.arguments())?;
        vec![(task.task_name, Some(task.agent_name), Vec::new(), task.input)]
    } else {
        let group: tools::MultiAgent = serde_json::from_str(call.arguments())?;
        let task = |task: tools::AgentTask| {
            (task.name, None, task.tools.unwrap_or_default(), task.instruction)
        };
        group.tasks.into_iter().map(task).collect()
    };
    let task = |(index, (task, agent, tools, input)): (usize, (String, _, _, _))| Task {
        run: child_id(call, index),
        parent: ParentCall {
            run: run.clone(),
            call: CallId::new(call.call_id()),
            index,
            task,
            depth: depth + 1,
            agent,
            tools,
        },
        input,
    };
    Ok(planned.into_iter().enumerate().map(task).collect())
}

/// The run of a task: as unguessable as the id of its call.
fn child_id(call: &Suspension, index: usize) -> RunId {
    let digest =
        Fingerprint::of_json(&json!({"call": call.id().as_str(), "task": index})).to_string();
    let digits: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    let digits = digits.get(digits.len().saturating_sub(32)..).unwrap_or_default();
    digits.parse().unwrap_or_else(|_| call.id().clone())
}

/// The output of a call whose sub-agents have ended, in the order of its tasks.
pub(crate) fn output(call: &Suspension, ends: &[&SubAgentEnd]) -> ToolOutput {
    let value = match ends {
        [only] if call.tool() == tools::NEW_TASK => only.to_value(),
        ends => {
            let results: Vec<_> = ends.iter().map(|end| end.to_value()).collect();
            let success = ends.iter().all(|end| end.answer.is_ok());
            json!({"success": success, "results": results, "total": ends.len()})
        }
    };
    ToolOutput::from(value.to_string()).with_data(value)
}

/// A sub-agent's share of what is left of its parent's budget: of turns, tokens, cost and calls as much as each of its
/// siblings gets, and all of the time. One turn is left for the parent's answer, and one is the least that a sub-agent
/// needs for its own.
pub(crate) fn share(own: &Budget, parent: &Budget, spent: &Spent, siblings: usize) -> Budget {
    let siblings = siblings.max(1) as u64;
    let tighter = |own: Option<u64>, limit: Option<u64>, used: u64| {
        let left = limit.map(|limit| limit.saturating_sub(used) / siblings);
        match (own, left) {
            (Some(own), Some(left)) => Some(own.min(left)),
            (own, left) => own.or(left),
        }
    };
    let calls =
        tighter(own.max_calls.map(u64::from), parent.max_calls.map(u64::from), spent.calls.into());
    let cost = |cost: Option<Cost>| cost.map(Cost::nanodollars);
    let max_cost = tighter(cost(own.max_cost), cost(parent.max_cost), spent.cost.nanodollars());
    let time_left = parent.max_time.map(|limit| limit.saturating_sub(spent.time));
    let turns_left = parent.max_turns.saturating_sub(spent.turns.saturating_add(1));
    let turns = turns_left / u32::try_from(siblings).unwrap_or(u32::MAX);
    Budget {
        max_turns: own.max_turns.min(turns).max(1),
        max_calls: calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
        max_tokens: tighter(own.max_tokens, parent.max_tokens, spent.usage.total()),
        max_cost: max_cost.map(Cost::from_nanodollars),
        max_time: own.max_time.into_iter().chain(time_left).min(),
    }
}
