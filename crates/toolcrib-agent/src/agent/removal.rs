//! Removes runs that have ended.

use toolcrib_core::run::RunId;
use toolcrib_core::suspension::Suspension;
use toolcrib_tool::BoxFuture;

use super::{Agent, AgentError, AgentState, RunReport};
use crate::children::{is_group, tasks};
use crate::entry::JournalEntry;
use crate::journal;

impl Agent {
    /// Removes a run that has ended, with its journal and those of its sub-agents. Fails while it can go on.
    pub async fn remove(&self, run: &RunId) -> Result<RunReport, AgentError> {
        let before = self.load(run).await?;
        let _driven = self.0.drive(run)?;
        let journal = &self.0.journal;
        // No other process continues it meanwhile.
        let claim = journal.claim(run).await?.ok_or(AgentError::Unknown)?;
        let removed = self.remove_sub_agents(run).await;
        journal.release(&claim).await?;
        removed?;
        journal.erase(run).await?;
        Ok(before)
    }

    async fn remove_sub_agents(&self, run: &RunId) -> Result<(), AgentError> {
        let now = self.0.load(run).await?;
        if now.outcome().is_none() {
            let problem = "has not ended: cancel it first";
            return Err(AgentError::NotNow { run: run.clone(), problem });
        }
        self.0.erase_sub_agents(run, now.parent().map_or(0, |parent| parent.depth)).await
    }
}

impl AgentState {
    /// Erases the runs of the sub-agents that calls of a run have started, and those of their sub-agents.
    fn erase_sub_agents<'a>(
        &'a self,
        run: &'a RunId,
        depth: u32,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            for call in self.groups_of(run).await? {
                for task in tasks(run, depth, &call)? {
                    if self.knows(&task.run).await? {
                        self.erase_sub_agents(&task.run, task.parent.depth).await?;
                        self.journal.erase(&task.run).await?;
                    }
                }
            }
            Ok(())
        })
    }

    /// The calls of a run that have waited for sub-agents.
    async fn groups_of(&self, run: &RunId) -> Result<Vec<Suspension>, AgentError> {
        let rows = journal::read_all(&*self.journal, run).await?.unwrap_or_default();
        let group = |entry| match entry {
            JournalEntry::CallSuspended { suspension } if is_group(&suspension) => {
                Some(*suspension)
            }
            _ => None,
        };
        Ok(rows.into_iter().filter_map(|row| group(row.entry)).collect())
    }
}
