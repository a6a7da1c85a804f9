//! Makes the conversation of a run shorter: stores old outputs, and asks a model for a summary.

mod summarizing;

use std::sync::Arc;

use toolcrib_core::spill::{READ_OUTPUT, Spilled};
use toolcrib_wire::model::{
    Answer, Conversation, DecoderSettings, Item, RequestError, StopReason, ToolChoice,
};
use tracing::Instrument as _;

use super::AgentError;
use super::asking::{jitter, sleep_for};
use super::driver::Driver;
use super::telemetry::ChatAttempt;
use crate::budget::Limit;
use crate::entry::{JournalEntry, ShortenedOutput};
use crate::model::{AttemptError, AttemptErrorKind, ModelClient};
use crate::run::{
    CompactionPlan, ContextLimits, FailureReason, Outcome, WrittenSummary, short_text,
};
use crate::summary::{INSTRUCTIONS, cut, transcript, transcript_bytes};

impl Driver<'_> {
    /// The room of the model in use.
    pub(super) fn context_limits(&mut self) -> ContextLimits {
        let agent = self.agent;
        let window = agent.models[self.model].context_window();
        let reads_outputs = *self.reads_outputs.get_or_insert_with(|| {
            let turn = agent.turn(&self.id, None);
            agent.executor.outputs().is_some() && turn.describe(READ_OUTPUT).is_some()
        });
        ContextLimits {
            window,
            compact_from: window.map(|window| agent.compaction.limit(window)),
            kept_input: agent.compaction.kept_input_tokens,
            head: self.head,
            reads_outputs,
        }
    }

    /// Makes the conversation shorter, or tries to.
    pub(super) async fn compact(
        &mut self,
        round: u32,
        attempt: u32,
        plan: CompactionPlan,
    ) -> Result<(), AgentError> {
        let stored = self.store_outputs(&plan).await;
        if plan.left_out.is_empty() {
            return self.record_compaction(&plan, stored, None).await;
        }
        let agent = self.agent;
        let model = agent.compaction.model.clone();
        let model = model.unwrap_or_else(|| Arc::clone(&agent.models[self.model]));
        let max_bytes = transcript_bytes(model.context_window().unwrap_or(plan.before));
        let text = transcript(self.run.left_out(&plan), &stored, max_bytes);
        let request = summary_request(&*model, text)?;
        let source = model.head().source;
        let requested =
            JournalEntry::SummaryRequested { round, attempt, model: source.to_string() };
        self.append(vec![requested]).await?;

        let time_left = self.time_left();
        let chat = ChatAttempt::begin(&*model, &self.id, agent.executor.model_statistics());
        // Nobody is shown how a summary is written.
        let mut events = drop;
        let asked = model.ask(request, DecoderSettings::new(source), &mut events);
        let control = self.control.clone();
        let answer = Box::pin(async {
            tokio::select! {
                answer = asked.instrument(chat.span.clone()) => Ok(answer),
                () = control.stopped() => Err(None),
                () = sleep_for(time_left) => Err(Some(Outcome::over_budget(Limit::Time))),
            }
        });
        let answer = match self.attend(answer).await {
            Ok(answer) => answer,
            Err(None) => {
                return self.append(vec![lost("the run was stopped".to_owned())]).await;
            }
            Err(Some(outcome)) => {
                let lost = lost("the time of the run is used up".to_owned());
                return self.append(vec![lost, JournalEntry::Finished { outcome }]).await;
            }
        };
        match answer.and_then(summary_of) {
            Ok(answer) => {
                chat.answered(&answer);
                let text = cut(&answer.text());
                let usage = answer.usage;
                let cost = model.prices().zip(usage).map(|(prices, usage)| prices.cost(&usage));
                self.record_compaction(&plan, stored, Some(WrittenSummary { text, usage, cost }))
                    .await
            }
            Err(error) => {
                chat.failed(&error);
                self.append(vec![lost(error.to_string())]).await?;
                let wait = agent.retry.wait(self.run.lost_attempts(), &error, jitter());
                if let Some(wait) = wait {
                    return self.wait_for_retry(wait).await;
                }
                let reason = if error.is_context_exceeded() {
                    FailureReason::ContextExceeded
                } else {
                    FailureReason::Model
                };
                let message = format!("the conversation could not be summarized: {error}");
                let outcome = Outcome::Failed { reason, message, text: None };
                self.append(vec![JournalEntry::Finished { outcome }]).await
            }
        }
    }

    /// Stores the old outputs of a plan, so that they can be read again. Those that cannot be stored stay as they are.
    async fn store_outputs(&mut self, plan: &CompactionPlan) -> Vec<ShortenedOutput> {
        let agent = self.agent;
        let Some(store) = agent.executor.outputs() else { return Vec::new() };
        let owner = agent.turn(&self.id, None).owner();
        let mut stored = Vec::new();
        for output in &plan.outputs {
            let Some(text) = self.run.old_output(output) else { continue };
            let known = output.handle.clone().or_else(|| self.stored.get(&output.call).cloned());
            let handle = match known {
                Some(handle) => handle,
                None => match store.put(&owner, Spilled::text(text.clone())).await {
                    Ok(handle) => handle.to_string(),
                    Err(error) => {
                        tracing::warn!(run = %self.id, %error, "an old output stays in the conversation");
                        continue;
                    }
                },
            };
            self.stored.insert(output.call.clone(), handle.clone());
            let text = short_text(&text, &handle);
            stored.push(ShortenedOutput {
                group: output.group,
                call: output.call.clone(),
                handle,
                text,
            });
        }
        stored
    }

    async fn record_compaction(
        &mut self,
        plan: &CompactionPlan,
        stored: Vec<ShortenedOutput>,
        summary: Option<WrittenSummary>,
    ) -> Result<(), AgentError> {
        // What a summary replaces needs no shorter outputs.
        let kept = |output: &ShortenedOutput| !plan.left_out.contains(&output.group);
        let shortened = stored.into_iter().filter(kept).collect();
        let entry = self.run.compacted(plan, shortened, summary, self.head);
        let entry = entry.unwrap_or_else(|| JournalEntry::Finished {
            outcome: Outcome::Failed {
                reason: FailureReason::ContextExceeded,
                message: "the conversation is too long for the model".to_owned(),
                text: None,
            },
        });
        self.stored.clear();
        self.append(vec![entry]).await
    }
}

fn lost(reason: String) -> JournalEntry {
    JournalEntry::ModelLost { reason, began: false, shown_chars: 0, context_exceeded: false }
}

/// The request of a summary: a conversation of its own, without tools.
fn summary_request(model: &dyn ModelClient, transcript: String) -> Result<String, RequestError> {
    let head = model.head().with_instructions(INSTRUCTIONS);
    let mut conversation = Conversation::new(model.wire(), &head)?;
    conversation.push(&[Item::user(transcript)])?;
    conversation.request(&ToolChoice::Auto)
}

/// The answer, if it is a summary.
fn summary_of(answer: Answer) -> Result<Answer, AttemptError> {
    let is_whole = matches!(answer.stop, StopReason::End | StopReason::Length);
    if is_whole && !answer.text().trim().is_empty() {
        Ok(answer)
    } else {
        let message = "the model wrote no summary";
        Err(AttemptError::new(AttemptErrorKind::Malformed, message))
    }
}
