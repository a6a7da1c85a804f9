//! Cancels runs, also those that other processes drive, and removes runs that have ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolcrib_core::run::{Journal, MessageNumber, RunId};
use toolcrib_core::suspension::{StoreError, Suspension};
use toolcrib_tool::BoxFuture;

use super::control::RunControl;
use super::driver::Driver;
use super::{Agent, AgentError, AgentState, RunReport};
use crate::entry::JournalEntry;
use crate::journal;
use crate::sub_agents::{is_group, tasks};

/// How often the journal is asked for a request.
const EVERY: Duration = Duration::from_millis(500);
/// How often a run at work in another process is looked at, once that was asked for something.
pub(super) const LOOK: Duration = Duration::from_millis(200);

impl Agent {
    /// Cancels a run with its waiting calls, unless this process drives it ([`RunControl`]). If another process drives
    /// it, that one [is asked](Self::request_cancel), and this waits up to `wait` until it has done so. Fails with
    /// [`StoreError::Claimed`] if it is still at work then: it cancels the run when its current work lets it.
    pub async fn cancel_within(
        &self,
        run: &RunId,
        reason: impl Into<String>,
        wait: Duration,
    ) -> Result<RunReport, AgentError> {
        let reason = reason.into();
        let mut asked = None;
        loop {
            let claimed = match self.cancel(run, reason.as_str()).await {
                Err(AgentError::Store(claimed @ StoreError::Claimed { .. })) => claimed,
                done => return done,
            };
            match asked {
                None => {
                    self.request_cancel(run, reason.as_str()).await?;
                    asked = Some(Instant::now());
                }
                Some(asked) if asked.elapsed() > wait => return Err(claimed.into()),
                Some(_) => {}
            }
            sleep(LOOK).await;
        }
    }
}

/// Looks for what other processes want of a run while this one works on it: to cancel it, or to tell it something.
pub(super) struct OutsideRequests {
    journal: Arc<dyn Journal>,
    run: RunId,
    control: RunControl,
    /// A sub-agent's run ends with the run that started it.
    is_root: bool,
}

impl OutsideRequests {
    pub(super) fn of(driver: &Driver<'_>) -> Self {
        Self {
            journal: Arc::clone(&driver.agent.journal),
            run: driver.id.clone(),
            control: driver.control.clone(),
            is_root: driver.run.parent().is_none(),
        }
    }

    /// Does work on the run, which is cancelled if somebody asks for that or has asked before.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        if !self.is_root {
            return work.await;
        }
        let mut heard = 0;
        let is_asked = self.look(&mut heard).await;
        let looks = async {
            let mut is_asked = is_asked;
            while !is_asked {
                sleep(EVERY).await;
                is_asked = self.look(&mut heard).await;
            }
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            done = work => done,
            never = looks => match never {},
        }
    }

    /// Cancels the run if somebody has asked for that, and takes over what was said to it after the message `heard`.
    async fn look(&self, heard: &mut MessageNumber) -> bool {
        let requests = match self.journal.requests(&self.run).await {
            Ok(requests) => requests,
            Err(error) => {
                tracing::debug!(run = %self.run, %error, "what others want of a run cannot be read");
                return false;
            }
        };
        for (number, message) in requests.messages {
            if number <= *heard {
                continue;
            }
            *heard = number;
            match serde_json::from_str(&message) {
                // Whoever has said it looks whether it is recorded.
                Ok(items) => drop(self.control.inbox().put_message(items, Some(number))),
                Err(error) => {
                    tracing::warn!(run = %self.run, %error, "a message to a run cannot be read");
                }
            }
        }
        let reason = requests.cancel;
        let is_asked = reason.is_some();
        if let Some(reason) = reason {
            self.control.cancel(reason);
        }
        is_asked
    }
}

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
