//! Responses of OpenAI's protocol: each is a part of an agent's run.

mod begin;
mod chat;
mod compact;
mod input;
mod presenter;
mod sealed;
mod segment;
mod settings;
mod submitted;
mod work;

use serde_json::Value;
use toolcrib_agent::AgentError;
use toolcrib_core::suspension::{StoreError, Suspension};
use toolcrib_core::{Turn, TurnOptions};
use toolcrib_http::{
    AgentRunStop, BegunResponse, NewResponse, ResponseId, Responses, ShownResponse,
};
use toolcrib_tool::BoxFuture;
use toolcrib_wire::api::{ApiError, ErrorType, ModelEntry};
use toolcrib_wire::responses::{CompactRequest, Dialect, Include, ResponseRequest};

use super::AgentSetupError;
use crate::Toolcrib;
use crate::settings::ResponsesDialect;
use segment::Segment;
pub(super) use submitted::submitted;

/// The label of the tools that ran here, as those of an MCP server.
const LABEL: &str = "toolcrib";

impl Responses for Toolcrib {
    fn begin(
        &self,
        client: TurnOptions,
        request: NewResponse,
    ) -> BoxFuture<'_, Result<BegunResponse, ApiError>> {
        Box::pin(self.begin_response(client, request))
    }

    fn resume(
        &self,
        client: TurnOptions,
        id: ResponseId,
    ) -> BoxFuture<'_, Result<BegunResponse, ApiError>> {
        Box::pin(async move {
            let segment = Segment::load(&self.reader(client.clone()), &id).await?;
            let with_files = client.clone().files(segment.request()?.tool_files);
            let builder = self.agent_of(with_files, &id.run).await.map_err(|error| {
                ApiError::new(ErrorType::Server, error.to_string()).with_status(503)
            })?;
            let mut presenter = segment.presenter(self.shown_by(client), Include::default())?;
            let events = segment.events(&mut presenter);
            presenter.skip_unrecorded();
            Ok(work::begun(id, builder, presenter, events, work::Plan::default()))
        })
    }

    fn show(
        &self,
        client: TurnOptions,
        id: ResponseId,
        include: Include,
    ) -> BoxFuture<'_, Result<ShownResponse, ApiError>> {
        Box::pin(async move {
            let reader = self.reader(client.clone());
            let segment = Segment::load(&reader, &id).await?;
            let shown_by = self.shown_by(client);
            let waiting = undecided(&shown_by.0, segment.waiting(&reader).await?).await?;
            let mut presenter = segment.presenter(shown_by, include)?;
            let mut events = segment.events(&mut presenter);
            let state = segment.state()?;
            events.extend(presenter.rest(&state, &waiting));
            let mask = self.executor().mask();
            Ok(ShownResponse {
                // A value may have become a secret since it was stored.
                value: mask.value(presenter.value()),
                is_background: segment.is_background()?,
                goes_on: segment.is_tip() && presenter.goes_on(&state, &waiting),
                events,
            })
        })
    }

    fn input_items(
        &self,
        client: TurnOptions,
        id: ResponseId,
    ) -> BoxFuture<'_, Result<Vec<Value>, ApiError>> {
        Box::pin(async move { Ok(Segment::load(&self.reader(client), &id).await?.input()) })
    }

    fn remove(&self, client: TurnOptions, id: ResponseId) -> BoxFuture<'_, Result<(), ApiError>> {
        Box::pin(async move {
            let removed = Box::pin(self.reader(client).remove_request(&id.run, id.row)).await;
            removed.map_err(|error| of_run(&id, error))
        })
    }

    fn compact(
        &self,
        client: TurnOptions,
        request: CompactRequest,
        previous: Option<ResponseId>,
        stopped: BoxFuture<'static, AgentRunStop>,
    ) -> BoxFuture<'_, Result<Value, ApiError>> {
        Box::pin(self.compacted(client, request, previous, stopped))
    }

    fn count_tokens(
        &self,
        client: TurnOptions,
        request: ResponseRequest,
        previous: Option<ResponseId>,
    ) -> BoxFuture<'_, Result<u64, ApiError>> {
        Box::pin(self.counted(client, request, previous))
    }

    fn models(&self) -> Vec<ModelEntry> {
        let config = self.live_agents().current();
        let agents = config.agents.keys().map(|name| (name.clone(), LABEL.to_owned()));
        let models = config.providers.iter().flat_map(|(provider, own)| {
            own.models.keys().map(move |model| (format!("{provider}/{model}"), provider.clone()))
        });
        let entry = |(id, owned_by)| ModelEntry { id, created: 0, owned_by };
        agents.chain(models).map(entry).collect()
    }
}

impl Toolcrib {
    /// What shows responses to a client: its tools, and the dialect of the config.
    fn shown_by(&self, client: TurnOptions) -> (Turn, Dialect) {
        let dialect = match self.live_agents().current().responses.dialect {
            ResponsesDialect::Open => Dialect::Open,
            _ => Dialect::OpenAi,
        };
        (self.executor().turn(client), dialect)
    }
}

/// The calls on which nobody has decided yet. The run takes over a decision that was made elsewhere when it goes on.
async fn undecided(turn: &Turn, waiting: Vec<Suspension>) -> Result<Vec<Suspension>, ApiError> {
    let mut left = Vec::new();
    for call in waiting {
        let outcome = turn.outcome(call.id()).await;
        let outcome = outcome.map_err(|error| fault("the decision cannot be read", &error))?;
        if outcome.is_none() {
            left.push(call);
        }
    }
    Ok(left)
}

/// A failure of this side; `what` is for the client, the cause for the log.
fn fault(what: &str, cause: &dyn std::fmt::Display) -> ApiError {
    tracing::error!(%cause, "{what}");
    ApiError::new(ErrorType::Server, format!("{what}: the server's log says why"))
}

fn unusable(model: &str, error: &AgentSetupError) -> ApiError {
    match error {
        AgentSetupError::NoKey { .. } | AgentSetupError::Unreachable { .. } => {
            ApiError::new(ErrorType::Server, error.to_string()).with_status(503)
        }
        AgentSetupError::UnknownModel { .. } => ApiError::model_not_found(model),
        error => ApiError::invalid(error.to_string()).with_param("model"),
    }
}

/// Why a stored run cannot be read or continued.
fn of_run(id: &ResponseId, error: AgentError) -> ApiError {
    match error {
        AgentError::Unknown | AgentError::Store(StoreError::Expired) => {
            ApiError::response_not_found(&id.to_string())
        }
        AgentError::NotNow { .. } | AgentError::Store(StoreError::Claimed { .. }) => locked(),
        AgentError::Store(StoreError::Full(full)) => {
            let message = StoreError::Full(full).to_string();
            ApiError::new(ErrorType::Server, message).with_status(503).with_code("unavailable")
        }
        error => fault("the conversation could not be read or stored", &error),
    }
}

fn locked() -> ApiError {
    ApiError::invalid("another request goes on from this response: wait until it has ended")
        .with_code("conversation_locked")
        .with_param("previous_response_id")
}
