//! Makes conversations shorter, and counts their tokens.

use serde_json::Value;
use toolcrib_agent::run::{FailureReason, Outcome};
use toolcrib_agent::{ClientRequest, RunControl, is_summary};
use toolcrib_core::TurnOptions;
use toolcrib_core::run::RunId;
use toolcrib_http::{AgentRunStop, ResponseId};
use toolcrib_tool::BoxFuture;
use toolcrib_wire::api::{ApiError, ErrorType};
use toolcrib_wire::model::{Input, Item, Role};
use toolcrib_wire::responses::{
    CompactRequest, ResponseRequest, Submission, compaction, compaction_item, input_message,
};

use super::input::{answered, check_items, continued, results, unknown_outputs, with};
use super::segment::Segment;
use super::settings::settings;
use super::{fault, unusable, work};
use crate::Toolcrib;
use crate::agents::AgentName;
use crate::agents::responses::begin::{check, options_of};
use crate::settings::AgentCompaction;

/// Bytes of text for each token, as an estimate.
const BYTES_PER_TOKEN: u64 = 4;

impl Toolcrib {
    /// A conversation in short: what the user said last, and a summary of everything, which is sealed.
    pub(super) async fn compacted(
        &self,
        client: TurnOptions,
        request: CompactRequest,
        previous: Option<ResponseId>,
        stopped: BoxFuture<'static, AgentRunStop>,
    ) -> Result<Value, ApiError> {
        check_items(&request.input)?;
        answered(&request.unanswered_calls())?;
        let mut conversation = self.before(&client, previous, request.submissions()).await?.0;
        conversation.extend(self.history(&client, &request.input).await?);
        if conversation.is_empty() {
            return Err(ApiError::missing("input"));
        }
        let name = self.named(&request.model)?;
        let agent = self.agent(&name, client.clone());
        let agent = agent.map_err(|error| unusable(&request.model, &error))?.build();
        let control = RunControl::new();
        let mut writing =
            Box::pin(agent.summarize(&conversation, request.instructions.as_deref(), &control));
        let written = tokio::select! {
            written = &mut writing => written,
            stop = stopped => {
                match stop {
                    AgentRunStop::Pause(reason) => control.pause(reason),
                    AgentRunStop::Cancel(reason) => control.cancel(reason),
                }
                writing.await
            }
        };
        let report =
            written.map_err(|error| fault("the conversation could not be summarized", &error))?;
        ended(report.outcome())?;
        if report.text().trim().is_empty() {
            let message = "the model wrote no summary";
            return Err(ApiError::new(ErrorType::Model, message).with_code("model_error"));
        }
        let summary = self.sealed(&client, report.text()).await?;
        let base = RunId::random().map_err(|error| fault("there are no random numbers", &error))?;
        let mut output: Vec<Value> = kept(&conversation, self.kept_input_tokens(&name))
            .zip(0..)
            .map(|(input, at)| input_message(&format!("msg_{base}{at:04x}"), input))
            .collect();
        output.push(compaction_item(&format!("cmp_{base}"), &summary));
        let usage = report.run().spent_in_all().usage;
        Ok(compaction(&format!("resp_{base}"), work::now(), &output, &usage))
    }

    /// An estimate of the tokens of a request.
    pub(super) async fn counted(
        &self,
        client: TurnOptions,
        request: ResponseRequest,
        previous: Option<ResponseId>,
    ) -> Result<u64, ApiError> {
        check(&request)?;
        let (before, segment) = self.before(&client, previous, request.submissions()).await?;
        let model = match (&request.model, &segment) {
            (None, Some(segment)) => segment.request()?.model,
            (model, _) => model.clone(),
        };
        let model = model.ok_or_else(|| ApiError::missing("model"))?;
        let name = self.named(&model)?;
        let options = options_of(client.clone(), &name, &request);
        let agent = self.agent(&name, options).map_err(|error| unusable(&model, &error))?.build();
        let settings = settings(&request, &agent.tools())?;
        let own = with(self.history(&client, &request.input).await?);
        let history = before.into_iter().chain(own.history).collect();
        let asked =
            ClientRequest { history, settings, input: own.input, ..ClientRequest::default() };
        let count = agent.estimate_tokens(None, asked);
        count.map_err(|error| fault("the tokens could not be counted", &error))
    }

    /// The conversation up to the end of a response, with the outputs of the calls that its client has.
    async fn before<'a>(
        &self,
        client: &TurnOptions,
        previous: Option<ResponseId>,
        outputs: impl Iterator<Item = &'a Submission>,
    ) -> Result<(Vec<Item>, Option<Segment>), ApiError> {
        let Some(id) = previous else {
            unknown_outputs(outputs)?;
            return Ok((Vec::new(), None));
        };
        let segment = self.previous(client, &id, None).await?;
        let state = segment.state()?;
        if let Some(call) = state.waiting().next() {
            let message = format!("the call {} of the response waits for approval", call.call_id());
            return Err(ApiError::invalid(message)
                .with_code("approval_pending")
                .with_param("previous_response_id"));
        }
        let results = results(outputs, &state)?;
        Ok((continued(state, results)?, Some(segment)))
    }

    /// How many tokens of the user's newest messages stay.
    fn kept_input_tokens(&self, name: &AgentName) -> u64 {
        let config = self.live_agents().current();
        let own = match name {
            AgentName::Entry(entry) => config.agents.get(entry).map(|own| own.compaction.clone()),
            AgentName::Model(_) => None,
        };
        own.as_ref().unwrap_or(&AgentCompaction::default()).compaction().kept_input_tokens
    }
}

/// The messages that stay: what the program said, and the user's newest messages of up to `tokens`, of which the last
/// one stays in any case.
fn kept(conversation: &[Item], tokens: u64) -> impl Iterator<Item = &Input> {
    let (mut bytes, mut has_kept) = (0_u64, false);
    let mut kept: Vec<&Input> = Vec::new();
    for item in conversation.iter().rev().filter(|item| !is_summary(item)) {
        let Item::Input(input) = item else { continue };
        if input.role == Role::User {
            let size: usize = input.content.iter().map(|part| part.as_text().len()).sum();
            bytes = bytes.saturating_add(size as u64);
            if has_kept && bytes / BYTES_PER_TOKEN > tokens {
                continue;
            }
            has_kept = true;
        }
        kept.push(input);
    }
    kept.into_iter().rev()
}

/// Fails if there is no summary.
fn ended(outcome: Option<&Outcome>) -> Result<(), ApiError> {
    match outcome {
        Some(Outcome::Completed { .. }) => Ok(()),
        Some(Outcome::Failed { reason, message, .. }) => {
            let code = match reason {
                FailureReason::Model => "model_error",
                FailureReason::ContextExceeded => "context_length_exceeded",
                reason => reason.as_str(),
            };
            Err(ApiError::new(ErrorType::Model, message.clone()).with_code(code.to_owned()))
        }
        _ => {
            let message = "the summary was interrupted: try again";
            Err(ApiError::new(ErrorType::Server, message).with_status(503).with_code("unavailable"))
        }
    }
}
