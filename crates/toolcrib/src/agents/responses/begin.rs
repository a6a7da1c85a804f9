//! Begins responses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_agent::run::AgentRun;
use toolcrib_agent::{Agent, AgentBuilder, ClientRequest, JournalEntry, JournalRow};
use toolcrib_core::approval::Decision;
use toolcrib_core::run::{Journal, MemoryRuns};
use toolcrib_core::suspension::Suspension;
use toolcrib_core::{ToolFilter, Toolset, TurnOptions};
use toolcrib_http::{AgentRunStep, BegunResponse, NewResponse, ResponseId, UnstoredResponse};
use toolcrib_tool::{ToolOutput, ToolResult};
use toolcrib_wire::api::{ApiError, ErrorType};
use toolcrib_wire::model::Item;
use toolcrib_wire::responses::{ApprovalAnswer, InputKind, ResponseRequest, Submission};

use super::presenter::{Presenter, approval_id};
use super::segment::{Segment, note};
use super::settings::{built_ins, metadata, settings};
use super::{fault, locked, of_run, unusable, work};
use crate::Toolcrib;
use crate::agents::AgentName;

/// The source of what a client says that a model has said. No model has it, so each gets what it means.
const CLIENT: &str = "client";

/// What the model reads in place of a blank output.
const BLANK: &str = "(no output)";

impl Toolcrib {
    pub(super) async fn begin_response(
        &self,
        client: TurnOptions,
        new: NewResponse,
    ) -> Result<BegunResponse, ApiError> {
        let NewResponse { mut request, body, previous, unstored, may_continue, may_approve } = new;
        check(&request)?;
        let previous = match &previous {
            Some(id) => Some(self.previous(&client, id, unstored.as_ref()).await?),
            None => None,
        };
        if request.model.is_none()
            && let Some(previous) = &previous
        {
            request.model = previous.request()?.model;
        }
        let model = request.model.clone().ok_or_else(|| ApiError::missing("model"))?;
        let name = self.named(&model)?;
        let options = options_of(client.clone(), &name, &request);
        let agent = || self.agent(&name, options.clone()).map_err(|error| unusable(&model, &error));
        let settings = settings(&request, &agent()?.build().tools())?;
        let history = request.history(CLIENT);
        let mut asked = ClientRequest { note: kept(&body, &request), settings, ..with(history) };

        let store: Option<Arc<dyn Journal>> =
            (!request.store).then(|| Arc::new(MemoryRuns::new()) as _);
        let builder = || -> Result<AgentBuilder, ApiError> {
            let builder = agent()?.for_clients().metadata(metadata(&request));
            let builder = match request.max_tool_calls {
                Some(most) => builder.change_budget(|mut own| {
                    let most = u32::try_from(most).unwrap_or(u32::MAX);
                    own.max_calls = Some(own.max_calls.map_or(most, |own| own.min(most)));
                    own
                }),
                None => builder,
            };
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
            let waits = state.waiting().next().is_some();
            if is_worked_on || (previous.is_tip() && !is_at_rest && !waits) {
                return Err(locked());
            }
            decisions = decided(&request, &state, previous.is_tip(), may_approve)?;
            asked.results = results(&request, &state)?;
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
                && request.store
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
        let turn = self.executor().turn(options.clone());
        let mut presenter = Presenter::new(&id, work::now(), &request, &asked.settings, turn);
        let events = presenter.begin();
        if let Some(previous) = &previous {
            presenter.take_over(&previous.state()?);
        }
        let unstored = store.clone().map(UnstoredResponse);
        let begun = work::begun(id, builder()?, presenter, events, decisions);
        Ok(BegunResponse { unstored, ..begun })
    }

    async fn previous(
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
    fn named(&self, model: &str) -> Result<AgentName, ApiError> {
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

/// Refuses what there is not.
fn check(request: &ResponseRequest) -> Result<(), ApiError> {
    let unsupported = |param: &str, problem: &str| {
        Err(ApiError::invalid(problem).with_code("unsupported_parameter").with_param(param))
    };
    if request.conversation.is_some() {
        return unsupported(
            "conversation",
            "there are no conversations of their own: go on with `previous_response_id`",
        );
    }
    for item in &request.input {
        let param = format!("input[{}]", item.index);
        match &item.kind {
            InputKind::Reference { .. } => {
                return unsupported(
                    &param,
                    "items are not kept by their ids: send the item itself, or `previous_response_id`",
                );
            }
            InputKind::Compaction { .. } => {
                return unsupported(&param, "this server makes no compactions: send the items");
            }
            _ => {}
        }
    }
    let open = request.unanswered_calls();
    if !open.is_empty() {
        return Err(missing_outputs(&open));
    }
    Ok(())
}

fn missing_outputs(calls: &[&str]) -> ApiError {
    let message = format!("no output for the calls {}: send one for each", calls.join(", "));
    ApiError::invalid(message).with_code("missing_tool_output").with_param("input")
}

fn unknown_outputs<'a>(outputs: impl Iterator<Item = &'a Submission>) -> Result<(), ApiError> {
    let calls: Vec<&str> = outputs.map(|one| one.answer.call_id.as_str()).collect();
    if calls.is_empty() {
        return Ok(());
    }
    let message = format!("no call waits for the outputs of {}", calls.join(", "));
    Err(ApiError::invalid(message).with_code("unknown_tool_output").with_param("input"))
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
    state: &AgentRun,
    is_tip: bool,
    may_approve: bool,
) -> Result<Vec<AgentRunStep>, ApiError> {
    let waiting: Vec<&Suspension> = state.waiting().collect();
    let is_for =
        |call: &Suspension, answer: &ApprovalAnswer| approval_id(call.id()) == answer.request_id;
    let is_unknown =
        |answer: &&ApprovalAnswer| !is_tip || !waiting.iter().any(|call| is_for(call, answer));
    unknown_approvals(request.approvals().filter(is_unknown))?;
    let mut steps = Vec::new();
    for call in waiting {
        let Some(answer) = request.approvals().find(|answer| is_for(call, answer)) else {
            let message = format!("the call {} of the response waits for approval", call.call_id());
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
fn no_outputs(request: &ResponseRequest) -> Result<(), ApiError> {
    unknown_outputs(request.submissions())
}

/// The results of the calls that the client has.
fn results(request: &ResponseRequest, state: &AgentRun) -> Result<Vec<ToolResult>, ApiError> {
    let submitted: Vec<&Submission> = request.submissions().collect();
    let is_for = |call: &str, one: &Submission| one.answer.call_id.as_str() == call;
    let missing: Vec<&str> = state
        .handed_over()
        .map(|(call, _)| call.as_str())
        .filter(|call| !submitted.iter().any(|one| is_for(call, one)))
        .collect();
    if !missing.is_empty() {
        return Err(missing_outputs(&missing));
    }
    let waits = |one: &Submission| state.handed_over().any(|(call, _)| is_for(call.as_str(), one));
    unknown_outputs(submitted.iter().copied().filter(|one| !waits(one)))?;
    let result = |one: &Submission| {
        let tool = state.handed_over().find(|(call, _)| is_for(call.as_str(), one))?.1.to_owned();
        let is_blank = one.answer.output.content().is_empty()
            && one.answer.output.data().is_none()
            && one.answer.output.text().trim().is_empty();
        let output = if is_blank { ToolOutput::from(BLANK) } else { one.answer.output.clone() };
        Some(ToolResult::success(one.answer.call_id.clone(), tool, output, Duration::ZERO))
    };
    Ok(submitted.into_iter().filter_map(result).collect())
}

/// A request with this conversation. The messages at its end are what the client says now.
fn with(mut history: Vec<Item>) -> ClientRequest {
    let is_message = |item: &Item| matches!(item, Item::Input(_));
    let at = history.iter().rposition(|item| !is_message(item)).map_or(0, |last| last + 1);
    let input = history.split_off(at);
    ClientRequest { history, input, ..ClientRequest::default() }
}

/// The conversation of a run with the results of its open calls.
fn continued(mut run: AgentRun, results: Vec<ToolResult>) -> Result<Vec<Item>, ApiError> {
    let request = ClientRequest { results, ..ClientRequest::default() };
    let entry = JournalEntry::Requested(Box::new(request));
    run.apply(JournalRow { at: run.last_at(), entry })
        .map_err(|error| fault("the conversation cannot be continued", &error))?;
    Ok(run.conversation().iter().flatten().cloned().collect())
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
fn options_of(client: TurnOptions, name: &AgentName, request: &ResponseRequest) -> TurnOptions {
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
