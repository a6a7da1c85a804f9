//! Takes over what was decided on waiting calls.

use std::collections::HashSet;

use toolcrib_core::run::{Run, RunError, is_lost};
use toolcrib_core::suspension::{Answer, Resolution, Submission, SuspensionId};
use toolcrib_tool::CallId;

use super::calls::finished;
use super::children::CALL_ENDED;
use super::driver::Driver;
use super::{AgentError, RunReport};
use crate::children::is_group;
use crate::entry::JournalEntry;

/// What is done with the waiting calls of a run.
pub(super) enum CallUpdate {
    /// The answers of calls that others have decided on are taken over, and expired calls end. Calls that wait for
    /// sub-agents are left out, unless somebody has decided on them.
    TakeOver { with_groups: bool },
    /// A call is resolved.
    Resolve(SuspensionId, Box<Resolution>),
    /// The client's outputs arrive.
    Submit(Vec<Submission>),
    /// All waiting calls are cancelled.
    Cancel,
}

impl Driver<'_> {
    /// Updates waiting calls and releases the run.
    pub(super) async fn update(mut self, update: CallUpdate) -> Result<RunReport, AgentError> {
        if let CallUpdate::Resolve(call, _) = &update {
            let ended = self.cancel_children(CALL_ENDED, Some(call)).await;
            if ended.is_err() {
                return self.release(ended).await;
            }
        }
        let updated = self.apply_update(update).await;
        self.release(updated).await
    }

    /// Updates the waiting calls as core's runs do, and records their answers.
    pub(super) async fn apply_update(&mut self, update: CallUpdate) -> Result<(), AgentError> {
        let (turn, events) = self.watched(self.agent.turn(&self.id, None));
        let mut answers = self.run.answers();
        if matches!(update, CallUpdate::TakeOver { with_groups: false }) {
            answers.retain(|one| !matches!(one, Answer::Suspended(call) if is_group(call)));
        }
        let takes_over = matches!(update, CallUpdate::TakeOver { .. });
        let mut core = Run::from_answers(&turn, answers)?;
        let updated: Result<(), RunError> = match update {
            CallUpdate::TakeOver { .. } => core.expire(&turn).await.map(drop),
            CallUpdate::Resolve(id, resolution) => {
                let work = Box::pin(core.resolve(&turn, &id, *resolution));
                self.perform(&turn, events, work).await
            }
            CallUpdate::Submit(outputs) => core.submit(&turn, outputs).await,
            CallUpdate::Cancel => core.cancel(&turn).await.map(drop),
        };
        let mut entries = Vec::new();
        for waiting in self.run.waiting() {
            let mut answered = core.answered();
            if let Some(result) =
                answered.find(|result| result.call_id().as_str() == waiting.call_id())
            {
                let again = self.run.repeatable_wait(waiting.call_id());
                let again = again.filter(|_| takes_over && is_lost(&result) && !is_group(waiting));
                entries.push(match again {
                    // It runs again, and asks again for what it waited for.
                    Some(started) => JournalEntry::CallsStarted { calls: vec![started.clone()] },
                    None => finished(result),
                });
            } else if let Some(now) =
                core.outstanding().find(|now| now.call_id() == waiting.call_id())
                && now.id() != waiting.id()
            {
                entries.push(JournalEntry::CallSuspended { suspension: Box::new(now.clone()) });
            }
        }
        if !entries.is_empty() {
            self.append(entries).await?;
        }
        Ok(updated?)
    }

    /// Finds calls that were suspended just before their process ended.
    pub(super) async fn adopt_suspensions(&mut self) -> Result<(), AgentError> {
        let lost: HashSet<CallId> = self.run.lost_calls().cloned().collect();
        let Some(store) = self.agent.executor.suspensions() else { return Ok(()) };
        if lost.is_empty() {
            return Ok(());
        }
        let waiting = store.list(self.run.identity()).await?;
        let own = waiting.into_iter().filter(|one| {
            one.session() == Some(self.id.as_str()) && lost.contains(&CallId::new(one.call_id()))
        });
        let entries: Vec<_> = own
            .map(|suspension| JournalEntry::CallSuspended { suspension: Box::new(suspension) })
            .collect();
        if entries.is_empty() { Ok(()) } else { self.append(entries).await }
    }
}
