//! Where a run stands.

use toolcrib_core::run::RunId;
use toolcrib_core::suspension::Suspension;

use crate::budget::Spent;
use crate::run::{AgentRun, Outcome, RunState};

/// Where a run stands, when nobody drives it any more.
#[derive(Debug, Clone)]
pub struct RunReport {
    id: RunId,
    run: AgentRun,
}

impl RunReport {
    pub(super) fn new(id: RunId, run: AgentRun) -> Self {
        Self { id, run }
    }

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The run.
    pub fn run(&self) -> &AgentRun {
        &self.run
    }

    /// Its state.
    pub fn state(&self) -> RunState {
        self.run.state()
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

    /// The calls that wait for somebody, in call order.
    pub fn waiting(&self) -> impl Iterator<Item = &Suspension> {
        self.run.waiting()
    }

    /// What it has used.
    pub fn spent(&self) -> &Spent {
        self.run.spent()
    }
}
