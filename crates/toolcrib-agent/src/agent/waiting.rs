//! Takes over what was decided on waiting calls.

use std::collections::HashSet;

use serde_json::Value;
use toolcrib_core::run::{Run, RunError, is_lost};
use toolcrib_core::suspension::{Answer, Resolution, Submission, Suspension, SuspensionId};
use toolcrib_tool::{
    CHANGED_ARGUMENTS, CallId, Content, ToolError, ToolOutput, ToolResult, canonical_json,
};

use super::calls::finished;
use super::cancelling::OutsideRequests;
use super::driver::Driver;
use super::sub_agents::CALL_ENDED;
use super::{AgentError, RunReport};
use crate::entry::JournalEntry;
use crate::run::after_asking;
use crate::sub_agents::is_group;

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
        let requests = OutsideRequests::of(&self);
        let updated = requests.during(Box::pin(self.apply_update(update))).await;
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
        let waiting: Vec<_> = self.run.waiting().cloned().collect();
        for waiting in waiting {
            let is_its = |result: &ToolResult| result.call_id().as_str() == waiting.call_id();
            let next = if let Some(result) = core.answered().find(is_its) {
                let again = self.run.repeatable_wait(waiting.call_id());
                let again = again.filter(|_| takes_over && is_lost(&result) && !is_group(&waiting));
                match again {
                    // It runs again, and asks again for what it waited for.
                    Some(started) => JournalEntry::CallsStarted { calls: vec![started] },
                    None if self.run.is_asked_again(waiting.call_id()) => {
                        finished(self.with_change_told(after_asking(result)))
                    }
                    None => finished(self.with_change_told(result)),
                }
            } else if let Some(now) =
                core.outstanding().find(|now| now.call_id() == waiting.call_id())
                && now.id() != waiting.id()
            {
                JournalEntry::CallSuspended { suspension: Box::new(now.clone()) }
            } else {
                continue;
            };
            entries.extend(self.resolution(&waiting, &next).await?);
            entries.push(next);
        }
        if !entries.is_empty() {
            self.append(entries).await?;
        }
        Ok(updated?)
    }

    /// How a waiting call was resolved, and by whom, if that is still stored.
    async fn resolution(
        &self,
        waiting: &Suspension,
        next: &JournalEntry,
    ) -> Result<Option<JournalEntry>, AgentError> {
        let Some(store) = self.agent.executor.suspensions() else { return Ok(None) };
        let Some(resolved) = store.resolved(waiting.id()).await? else { return Ok(None) };
        let arguments = match next {
            JournalEntry::CallFinished { result, .. } => changed_arguments(result).cloned(),
            _ => None,
        };
        Ok(Some(JournalEntry::CallResolved {
            call: CallId::new(waiting.call_id()),
            kind: resolved.kind(),
            by: resolved.by().to_owned(),
            arguments,
        }))
    }

    /// A result whose text tells the model that its arguments were changed, if they were. The result of a call that ends
    /// the run is the answer, and stays as it is.
    fn with_change_told(&self, result: ToolResult) -> ToolResult {
        let Some(arguments) = changed_arguments(&result) else { return result };
        let is_answer = result.is_success() && self.run.is_terminal(result.call_id().as_str());
        if is_answer {
            return result;
        }
        let told = format!(
            "Whoever approved this call changed its arguments. It ran with: {}",
            canonical_json(arguments)
        );
        let (id, tool, duration) =
            (result.call_id().clone(), result.tool().to_owned(), result.duration());
        let (truncated, cached, skipped) = (result.truncated(), result.cached(), result.skipped());
        let told = match result.into_result() {
            Ok(output) => {
                let mut content = vec![Content::Text(told)];
                if output.content().is_empty() && !output.is_empty() {
                    content.push(Content::Text(output.text().into_owned()));
                }
                content.extend(output.content().iter().cloned());
                ToolResult::success(id, tool, output.replace_content(content), duration)
            }
            Err(error) => ToolResult::failure(id, tool, error.with_hint(told), duration),
        };
        told.with_truncated(truncated).with_cached(cached).with_skipped(skipped)
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

/// The note about changed arguments in a result.
fn changed_arguments(result: &ToolResult) -> Option<&Value> {
    let output = result.output().or_else(|| result.error().and_then(ToolError::partial));
    output.map(ToolOutput::meta).and_then(|notes| notes.get(CHANGED_ARGUMENTS))
}
