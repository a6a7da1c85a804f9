//! Where a run stands.

use serde_json::{Value, json};
use toolcrib_core::run::RunId;
use toolcrib_core::suspension::{Suspension, SuspensionId};

use crate::budget::Spent;
use crate::run::{AgentRun, Outcome, RunState};
use crate::sub_agents::is_group;

/// Where a run stands, when nobody drives it any more.
#[derive(Debug, Clone)]
pub struct RunReport {
    id: RunId,
    run: AgentRun,
    /// The runs of sub-agents for which calls wait.
    sub_agents: Vec<Self>,
}

impl RunReport {
    pub(super) fn new(id: RunId, run: AgentRun, sub_agents: Vec<Self>) -> Self {
        Self { id, run, sub_agents }
    }

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The run.
    pub fn run(&self) -> &AgentRun {
        &self.run
    }

    /// Its state. A run whose sub-agents wait for somebody requires action itself.
    pub fn state(&self) -> RunState {
        match self.run.state() {
            RunState::RequiresAction
                if self.waiting().next().is_none() && self.run.handed_over().next().is_none() =>
            {
                RunState::WaitingForSubtask
            }
            state => state,
        }
    }

    /// The runs of the sub-agents for which calls wait, as far as they have begun. Each says
    /// [what it is for](AgentRun::parent).
    pub fn sub_agents(&self) -> &[Self] {
        &self.sub_agents
    }

    /// How it ended, if it did.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.run.outcome()
    }

    /// The final answer; empty if there is none.
    pub fn text(&self) -> &str {
        match self.run.outcome() {
            Some(Outcome::Completed { text } | Outcome::Failed { text: Some(text), .. }) => text,
            _ => "",
        }
    }

    /// The calls that wait for somebody, in call order, and those of its sub-agents.
    pub fn waiting(&self) -> Box<dyn Iterator<Item = &Suspension> + '_> {
        let own = self.run.waiting().filter(|call| !is_group(call));
        Box::new(own.chain(self.sub_agents.iter().flat_map(Self::waiting)))
    }

    /// The run in which a call waits: this one or a sub-agent's.
    pub fn run_of(&self, call: &SuspensionId) -> Option<&Self> {
        if self.run.waiting().any(|waiting| waiting.id() == call) {
            return Some(self);
        }
        self.sub_agents.iter().find_map(|child| child.run_of(call))
    }

    /// This run and those of its sub-agents.
    pub(super) fn all(&self) -> Vec<&Self> {
        let sub_agents = self.sub_agents.iter().flat_map(Self::all);
        std::iter::once(self).chain(sub_agents).collect()
    }

    /// What it has used since it began or was continued by input after its end, as its limits count it.
    pub fn spent(&self) -> &Spent {
        self.run.spent()
    }

    /// The report as JSON: `run`, `agent`, `state`, `text`, `outcome`, `waiting` (the ids of waiting calls with their tools
    /// and arguments), `spent` since it began or was continued by input after its end, and `spent_in_all` since it began.
    pub fn to_value(&self) -> Value {
        let waiting = self.waiting().map(|call| {
            json!({
                "id": call.id().as_str(),
                "call_id": call.call_id(),
                "tool": call.tool(),
                "arguments": call.shown().arguments,
                "expires_at": call.expires_at().unix_millis(),
            })
        });
        json!({
            "run": self.id.as_str(),
            "agent": self.run.agent(),
            "state": self.state().as_str(),
            "text": self.text(),
            "outcome": self.outcome(),
            "waiting": waiting.collect::<Vec<_>>(),
            "spent": spent_value(self.spent()),
            "spent_in_all": spent_value(&self.run.spent_in_all()),
        })
    }
}

fn spent_value(spent: &Spent) -> Value {
    json!({
        "turns": spent.turns,
        "calls": spent.calls,
        "input_tokens": spent.usage.input,
        "output_tokens": spent.usage.output,
        "cost_nanodollars": spent.cost,
        "unknown_requests": spent.unknown_requests,
        "seconds": spent.time.as_secs_f64(),
    })
}
