//! Begins responses.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_agent::{Agent, AgentBuilder, ClientRequest};
use toolcrib_core::approval::Decision;
use toolcrib_core::run::{Journal, MemoryRuns};
use toolcrib_core::suspension::Suspension;
use toolcrib_core::{ToolFilter, Toolset, TurnOptions};
use toolcrib_http::{AgentRunStep, BegunResponse, NewResponse, ResponseId, UnstoredResponse};
use toolcrib_tool::{ToolFiles, fully_visible};
use toolcrib_wire::api::{ApiError, ErrorType};
use toolcrib_wire::responses::{ApprovalAnswer, Dialect, ResponseRequest};

use super::input::{answered, check_items, continued, results, unknown_outputs, unsupported, with};
use super::presenter::{Presenter, approval_id};
use super::segment::{Segment, note};
use super::settings::{built_ins, metadata, settings};
use super::{fault, locked, of_run, unusable, work};
use crate::Toolcrib;
use crate::agents::AgentName;

impl Toolcrib {
    pub(super) async fn begin_response(
        &self,
        client: TurnOptions,
        new: NewResponse,
    ) -> Result<BegunResponse, ApiError> {
        let NewResponse { mut request, body, previous, unstored, .. } = new;
        let (may_continue, may_approve, is_chat) = (new.may_continue, new.may_approve, new.is_chat);
        let mut previous = match &previous {
            Some(id) => Some(self.previous(&client, id, unstored.as_ref()).await?),
            None => None,
        };
        if is_chat && let Some(before) = previous.take() {
            previous = Some(self.chat_before(&client, before, &mut request.input).await?);
        }
        check(&request)?;
        if request.model.is_none()
            && let Some(previous) = &previous
        {
            request.model = previous.request()?.model;
        }
        let model = request.model.clone().ok_or_else(|| ApiError::missing("model"))?;
        let name = self.named(&model)?;
        let is_kept = request.store || is_chat && self.keeps_chat(&name, &request);
        let files = files(&request, previous.as_ref())?;
        let options = options_of(client.clone(), &name, &request).files(files);
        let agent = || self.agent(&name, options.clone()).map_err(|error| unusable(&model, &error));
        let settings = settings(&request, &agent()?.build().tools())?;
        let history = self.history(&client, &request.input).await?;
        let mut asked = ClientRequest { note: kept(&body, &request), settings, ..with(history) };

        let store: Option<Arc<dyn Journal>> = (!is_kept).then(|| Arc::new(MemoryRuns::new()) as _);
        let builder = || -> Result<AgentBuilder, ApiError> {
            let builder = agent()?.for_clients().metadata(metadata(&request));
            let builder = limited(builder, request.max_tool_calls);
            Ok(match &store {
                Some(journal) => builder.journal(Arc::clone(journal)),
                None => builder,
            })
        };
        let (mut id, mut decisions) = (None, Vec::new());
        if let Some(previous) = &previous {
            let state = previous.state()?;
            let is_at_rest = state.outcome().is_some()
                || state.paused().is_some()
                || state.handed_over().next().is_some();
            let is_worked_on = !may_continue && (previous.is_tip() || previous.is_before_tip());
            let waits = previous.is_tip() && state.waiting().next().is_some();
            if is_worked_on || (previous.is_tip() && !is_at_rest && !waits) {
                return Err(locked());
            }
            let reader = match &unstored {
                Some(UnstoredResponse(journal)) => self.reader_of(client.clone(), Some(journal)),
                None => self.reader(client.clone()),
            };
            let waiting = previous.waiting(&reader).await?;
            decisions = decided(&request, &waiting, may_approve)?;
            asked.results = results(request.submissions(), &state)?;
            let is_same_agent = state.agent() == name.to_string();
            let is_alone = asked.input.is_empty() && asked.history.is_empty();
            let may_decide = request.store && is_alone && is_same_agent;
            if !decisions.is_empty() && !may_decide {
                let message = "send the decisions alone, with `store` and the same `model`: their results \
                               come with the answer";
                return Err(ApiError::invalid(message)
                    .with_code("approval_pending")
                    .with_param("input"));
            }
            let goes_on = previous.is_tip()
                && unstored.is_none()
                && is_kept
                && is_same_agent
                && built_ins(&request).is_empty();
            if goes_on || !decisions.is_empty() {
                id = Some(self.added(builder()?.build(), previous, asked.clone()).await?);
            } else {
                let (old, results) = (state, std::mem::take(&mut asked.results));
                let mut history = continued(old, results)?;
                history.append(&mut asked.history);
                asked.history = history;
            }
        } else {
            no_outputs(&request)?;
            unknown_approvals(request.approvals())?;
        }
        let id = match id {
            Some(id) => id,
            None => begun(builder()?.build(), asked.clone()).await?,
        };
        let mut shown_by = self.shown_by(options.clone());
        if is_chat {
            // Calls that ran here have to differ from the client's.
            shown_by.1 = Dialect::OpenAi;
        }
        let mut presenter = Presenter::new(&id, work::now(), &request, &asked.settings, shown_by);
        let events = presenter.begin();
        if let Some(previous) = &previous {
            presenter.take_over(&previous.state()?);
        }
        let is_new = previous.is_none_or(|previous| previous.id().run != id.run);
        let plan = work::Plan { decisions, is_forgotten: is_chat && is_kept && is_new };
        let unstored = store.clone().map(UnstoredResponse);
        let begun = work::begun(id, builder()?, presenter, events, plan);
        Ok(BegunResponse { unstored, ..begun })
    }

    pub(super) async fn previous(
        &self,
        client: &TurnOptions,
        id: &ResponseId,
        unstored: Option<&UnstoredResponse>,
    ) -> Result<Segment, ApiError> {
        let found = match unstored {
            Some(UnstoredResponse(journal)) => {
                let reader = self.reader_of(client.clone(), Some(journal));
                Segment::load(&reader, id).await
            }
            None => Segment::load(&self.reader(client.clone()), id).await,
        };
        found.map_err(|error| match error.status {
            404 => ApiError::previous_response_not_found(&id.to_string()),
            _ => error,
        })
    }

    /// The agent or model of this name.
    pub(super) fn named(&self, model: &str) -> Result<AgentName, ApiError> {
        if self.live_agents().current().agents.contains_key(model) {
            return Ok(AgentName::Entry(model.to_owned()));
        }
        model.parse().map(AgentName::Model).map_err(|_: &str| ApiError::model_not_found(model))
    }

    /// Adds a request to the run of the response before.
    async fn added(
        &self,
        agent: Agent,
        previous: &Segment,
        request: ClientRequest,
    ) -> Result<ResponseId, ApiError> {
        let before = previous.id();
        let added = Box::pin(agent.add_request(&before.run, before.row, request)).await;
        let report = added.map_err(|error| of_run(before, error))?;
        let row = report.run().last_request().unwrap_or_default();
        Ok(ResponseId { run: before.run.clone(), row })
    }
}

/// The files for the tools.
fn files(request: &ResponseRequest, previous: Option<&Segment>) -> Result<ToolFiles, ApiError> {
    match (previous, request.approvals().next()) {
        // Decided calls have the files of the request that made them.
        (Some(previous), Some(_)) => Ok(previous.request()?.tool_files),
        _ => Ok(request.tool_files.clone()),
    }
}

/// An agent that makes at most so many calls.
fn limited(builder: AgentBuilder, most: Option<u64>) -> AgentBuilder {
    let Some(most) = most else { return builder };
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    builder.change_budget(|mut own| {
        own.max_calls = Some(own.max_calls.map_or(most, |own| own.min(most)));
        own
    })
}

/// Refuses what there is not.
pub(super) fn check(request: &ResponseRequest) -> Result<(), ApiError> {
    if request.conversation.is_some() {
        return Err(unsupported(
            "conversation",
            "there are no conversations of their own: go on with `previous_response_id`",
        ));
    }
    check_items(&request.input)?;
    answered(&request.unanswered_calls())
}

fn unknown_approvals<'a>(
    mut answers: impl Iterator<Item = &'a ApprovalAnswer>,
) -> Result<(), ApiError> {
    match answers.next() {
        None => Ok(()),
        Some(answer) => {
            let message = format!("no call waits for the approval {:?}", answer.request_id);
            Err(ApiError::invalid(message)
                .with_code("unknown_approval_request")
                .with_param(format!("input[{}].approval_request_id", answer.index)))
        }
    }
}

/// The decisions on all calls that wait for approval; none if no call waits.
fn decided(
    request: &ResponseRequest,
    waiting: &[Suspension],
    may_approve: bool,
) -> Result<Vec<AgentRunStep>, ApiError> {
    let is_for =
        |call: &Suspension, answer: &ApprovalAnswer| approval_id(call.id()) == answer.request_id;
    let is_unknown = |answer: &&ApprovalAnswer| !waiting.iter().any(|call| is_for(call, answer));
    unknown_approvals(request.approvals().filter(is_unknown))?;
    let mut steps = Vec::new();
    for call in waiting {
        let Some(answer) = request.approvals().find(|answer| is_for(call, answer)) else {
            let tool = fully_visible(call.tool());
            let repair = if may_approve {
                format!(
                    "send an `mcp_approval_response` with the `approval_request_id` {:?}",
                    approval_id(call.id())
                )
            } else {
                "somebody with the right `approve` decides on it, then GET the response continues it"
                    .to_owned()
            };
            let message = format!("a call of `{tool}` waits for approval: {repair}");
            return Err(ApiError::invalid(message)
                .with_code("approval_pending")
                .with_param("previous_response_id"));
        };
        if !may_approve {
            let message = "this decision needs the right `approve`";
            return Err(ApiError::new(ErrorType::Permission, message).with_code("forbidden"));
        }
        let decision = if answer.approve {
            Decision::approve()
        } else {
            Decision::deny(
                answer.reason.clone().unwrap_or_else(|| "the client denied it".to_owned()),
            )
        };
        steps.push(AgentRunStep::Resolve {
            call: call.id().clone(),
            resolution: Box::new(decision.into()),
            may_approve,
        });
    }
    Ok(steps)
}

/// Without a response before, outputs answer nothing.
pub(super) fn no_outputs(request: &ResponseRequest) -> Result<(), ApiError> {
    unknown_outputs(request.submissions())
}

/// Begins a run with a request.
async fn begun(agent: Agent, request: ClientRequest) -> Result<ResponseId, ApiError> {
    let begun = Box::pin(agent.begin_request(request)).await;
    let none = |error| match error {
        toolcrib_agent::AgentError::Store(error) => {
            let message = error.to_string();
            ApiError::new(ErrorType::Server, message).with_status(503).with_code("unavailable")
        }
        error => fault("the response could not be begun", &error),
    };
    let report = begun.map_err(none)?;
    let row = report.run().last_request().unwrap_or_default();
    Ok(ResponseId { run: report.id().clone(), row })
}

/// The options of the client. A model alone has the tools of the request only, of which those of the server are
/// selected by their jobs.
pub(super) fn options_of(
    client: TurnOptions,
    name: &AgentName,
    request: &ResponseRequest,
) -> TurnOptions {
    if matches!(name, AgentName::Entry(_)) {
        return client;
    }
    // A toolset that includes nothing by name would include everything.
    let none = Toolset::new().include(ToolFilter::new().name(""));
    let selected = built_ins(request);
    let tools =
        selected.iter().fold(none, |set, (_, name)| set.include(ToolFilter::new().name(*name)));
    let tools = if selected.is_empty() { tools } else { tools.with_read_output() };
    client.narrow(&tools)
}

/// What is kept of a request to show it again.
fn kept(body: &Value, request: &ResponseRequest) -> Value {
    let mut body = body.clone();
    if let Some(members) = body.as_object_mut() {
        members.remove("input");
        if let Some(model) = &request.model {
            members.insert("model".to_owned(), model.as_str().into());
        }
    }
    let mut made = 0_u32;
    let base = toolcrib_core::run::RunId::random().map(|id| id.to_string()).unwrap_or_default();
    let mut new_id = |prefix: &str| {
        made += 1;
        format!("{prefix}{base}{made:04x}")
    };
    let input: Vec<Value> = request.input.iter().map(|item| item.to_value(&mut new_id)).collect();
    note(&body, &input)
}
