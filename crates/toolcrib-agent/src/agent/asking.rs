//! Asks the model, and again after a failure.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use toolcrib_wire::model::{Answer, DecoderSettings, ModelEvent, ToolChoice};
use tracing::Instrument as _;

use super::driver::Driver;
use super::event::AgentEvent;
use super::masked::MaskedAnswer;
use super::preview::{Preview, Previews};
use super::request::SentConversation;
use super::telemetry::ChatAttempt;
use super::{AgentError, AgentState};
use crate::budget::Limit;
use crate::entry::JournalEntry;
use crate::model::{AttemptError, AttemptErrorKind};
use crate::run::{AgentRun, FailureReason, Outcome};

/// How an attempt to ask the model ended.
enum Attempt {
    Answered(Box<Answer>),
    Failed(AttemptError),
    Stopped,
    TimeUp,
}

/// The row of an answer that was given up after this many characters had been shown.
fn lost(reason: &str, shown_chars: u64) -> JournalEntry {
    JournalEntry::ModelLost {
        reason: reason.to_owned(),
        began: shown_chars > 0,
        shown_chars,
        context_exceeded: false,
    }
}

impl Driver<'_> {
    pub(super) async fn ask(
        &mut self,
        round: u32,
        attempt: u32,
        last: Option<Limit>,
    ) -> Result<(), AgentError> {
        let agent = self.agent;
        let time_left = self.time_left();
        let turn = agent.turn(&self.id, time_left);
        let model = Arc::clone(&agent.models[self.model]);
        let sent = self.sent.take();
        let sent = SentConversation::of(sent, agent, &*model, &self.id, &self.run, &turn)?;
        self.head = sent.head_bytes();
        let names = sent.tool_names();
        let choice = agent.choice(last, &self.run, |name| names.to_provider(name));
        let request = sent.request(&choice)?;
        let source = model.head().source;
        let name = source.to_string();
        let requested = JournalEntry::ModelRequested { round, attempt, model: name, last };
        self.append(vec![requested]).await?;

        let mut settings = DecoderSettings::new(source);
        settings.call_id_prefix = format!("call_{round}");
        settings.taken_call_ids = Arc::clone(self.run.call_ids());
        let chat = ChatAttempt::begin(&*model, &self.id, agent.executor.model_statistics());
        let mask = agent.executor.mask();
        let client_tools = self.run.client_tools();
        let hides = |name: &str| {
            let own = sent.tool_names().from_provider(name).unwrap_or(name);
            agent.hides_arguments(&turn, own, &client_tools)
        };
        let mut masked = MaskedAnswer::new(&mask, &hides);
        let mut previews = Previews::new(&turn, sent.tool_names());
        let (run, control) = (self.id.clone(), self.control.clone());
        let mut show =
            |event: ModelEvent| {
                let preview = previews.after(&event);
                let preview = preview.map(|Preview { id: call, tool, status }| {
                    AgentEvent::Preview { run: &run, call, tool, status }
                });
                agent.show(&AgentEvent::Model { run: &run, event });
                if let Some(preview) = preview {
                    agent.show(&preview);
                }
            };
        let attempt = {
            let mut events = |event| masked.events(event).into_iter().for_each(&mut show);
            let asked = async {
                tokio::select! {
                    answer = model.ask(request, settings, &mut events).instrument(chat.span.clone()) => match answer {
                        Ok(answer) => Attempt::Answered(Box::new(answer)),
                        Err(error) => Attempt::Failed(error),
                    },
                    () = control.stopped() => Attempt::Stopped,
                    () = sleep_for(time_left) => Attempt::TimeUp,
                    () = sleep_for(agent.request_timeout) => Attempt::Failed(too_slow(agent.request_timeout)),
                }
            };
            self.attend(Box::pin(asked)).await
        };
        match attempt {
            Attempt::Answered(answer) => {
                masked.finish().into_iter().for_each(show);
                chat.answered(&answer);
                let names = sent.names(&answer);
                let Answer { items, usage, stop, .. } = *answer;
                let prices = model.prices();
                let cost = prices.zip(usage).map(|(prices, usage)| prices.cost(&usage));
                let hidden = agent.hidden_arguments(&turn, &items, &names, &client_tools);
                (self.sent, self.turn) = (Some(sent), Some(turn));
                let answered =
                    JournalEntry::ModelAnswered { items, usage, cost, stop, names, hidden };
                self.append(vec![answered]).await
            }
            Attempt::Failed(error) => {
                chat.failed(&error);
                let shown = masked.shown;
                self.sent = Some(sent);
                self.append(vec![JournalEntry::ModelLost {
                    reason: error.to_string(),
                    began: error.began,
                    shown_chars: shown,
                    context_exceeded: error.is_context_exceeded(),
                }])
                .await?;
                if error.is_context_exceeded() {
                    // The run decides whether the conversation can become shorter.
                    return Ok(());
                }
                self.retry_later(&error).await
            }
            Attempt::Stopped => self.append(vec![lost("the run was stopped", masked.shown)]).await,
            Attempt::TimeUp => {
                let outcome = Outcome::over_budget(Limit::Time);
                let entries = vec![
                    lost("the time of the run is used up", masked.shown),
                    JournalEntry::Finished { outcome },
                ];
                self.append(entries).await
            }
        }
    }

    /// Waits until the next attempt, or ends the run if there is none.
    async fn retry_later(&mut self, error: &AttemptError) -> Result<(), AgentError> {
        let wait = self.agent.retry.wait(self.run.lost_attempts(), error, jitter());
        let Some(wait) = wait else {
            if error.may_succeed_later() && self.model + 1 < self.agent.models.len() {
                self.model += 1;
                self.sent = None;
                return Ok(());
            }
            let reason = FailureReason::Model;
            let outcome = Outcome::Failed { reason, message: error.to_string(), text: None };
            return self.append(vec![JournalEntry::Finished { outcome }]).await;
        };
        self.wait_for_retry(wait).await
    }

    /// Waits until the next attempt.
    pub(super) async fn wait_for_retry(&mut self, wait: Duration) -> Result<(), AgentError> {
        self.agent.show(&AgentEvent::Retry { run: &self.id, wait });
        let (control, time_left) = (self.control.clone(), self.time_left());
        let is_time_up = async {
            tokio::select! {
                () = sleep(wait) => false,
                () = control.stopped() => false,
                () = sleep_for(time_left) => true,
            }
        };
        if !self.attend(is_time_up).await {
            return Ok(());
        }
        let outcome = Outcome::over_budget(Limit::Time);
        self.append(vec![JournalEntry::Finished { outcome }]).await
    }
}

fn too_slow(limit: Option<Duration>) -> AttemptError {
    let message = format!("no complete answer within {:?}", limit.unwrap_or_default());
    AttemptError::new(AttemptErrorKind::Timeout, message)
}

impl AgentState {
    /// Whether the model has to make a call. The answer may have to be the result of one.
    fn choice<'n>(
        &self,
        last: Option<Limit>,
        run: &AgentRun,
        to_provider: impl Fn(&str) -> Option<&'n str>,
    ) -> ToolChoice {
        match (last, &self.completion, run.request_settings()) {
            (Some(_), _, _) => ToolChoice::None,
            (None, Some(_), _) => ToolChoice::Required,
            (None, None, Some((settings, is_first))) => settings.tool_choice(is_first, to_provider),
            (None, None, None) => ToolChoice::Auto,
        }
    }
}

/// Completes after a time, or never.
pub(super) async fn sleep_for(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}

/// A number from 0 to 1 that differs between processes and calls.
pub(super) fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}
