//! Makes responses.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolcrib_wire::api::{ApiError, ErrorType};
use toolcrib_wire::responses::ResponseRequest;

use super::error::{Refused, locked};
use super::{previous, responses, served, stream};
use crate::api::agent_runs::active::Work;
use crate::api::agent_runs::stopped;
use crate::api::problem::Problem;
use crate::api::{Api, json};
use crate::auth::client::Client;
use crate::idempotency::Request;
use crate::serving::request_body::JsonBody;
use crate::{
    AgentRunControl, BegunResponse, NewResponse, ResponseId, ResponseLog, Right, ShownResponse,
    UnstoredResponse,
};

/// How long work on a response may take after its last event.
const AFTER_THE_END: Duration = Duration::from_secs(5);

pub(crate) async fn create(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refused> {
    let (text, value) = read(&api, &headers, &body)?;
    let request = ResponseRequest::read(&text).map_err(|error| Refused::new(&api, &error))?;
    let asked = (request, value);
    if asked.0.stream {
        Request::none(&headers)?;
        return streamed(&api, &client, asked).await;
    }
    let key = Request::of(&headers, &client.key_owner, &["responses"], &body)?;
    let own = api.clone();
    let work = async move { whole(&own, &client, asked).await.unwrap_or_else(Response::from) };
    Ok(api.idempotency().once_if(&api, key, Box::pin(work)).await?)
}

/// A body as text and as JSON. Secrets in it are masked, because the response repeats parts of the request.
pub(super) fn read<'b>(
    api: &Api,
    headers: &HeaderMap,
    body: &'b Bytes,
) -> Result<(Cow<'b, str>, Value), Problem> {
    JsonBody::parse(headers, body)?;
    let text = std::str::from_utf8(body).unwrap_or_default();
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let masked = api.backend().executor().mask().value(value.clone());
    let text = if masked == value { text.into() } else { masked.to_string().into() };
    Ok((text, masked))
}

/// A request and its JSON.
pub(super) type Asked = (ResponseRequest, Value);

/// A response that is sent event by event.
async fn streamed(api: &Api, client: &Client, asked: Asked) -> Result<Response, Refused> {
    let is_stored = asked.0.store;
    let making = Making::begin(api, client, asked, None).await;
    let making = making.map_err(|error| Refused::new(api, &error))?;
    // What is not stored ends with its connection.
    let guard = (!is_stored).then(|| making.cancel.clone().drop_guard());
    Ok(stream::events(making.log, None, guard))
}

/// A response that is sent when it is made, or at once if it is made in the background.
async fn whole(api: &Api, client: &Client, asked: Asked) -> Result<Response, Refused> {
    let (is_stored, is_background) = (asked.0.store, asked.0.background);
    let making = Making::begin(api, client, asked, None).await;
    let making = making.map_err(|error| Refused::new(api, &error))?;
    if is_background {
        return Ok(json(StatusCode::OK, &making.value));
    }
    let guard = (!is_stored).then(|| making.cancel.clone().drop_guard());
    // Its end is in the log, whatever became of the work.
    let _ = making.work.await;
    if let Some(guard) = guard {
        guard.disarm();
    }
    let response = making.log.response().ok_or_else(|| {
        let error =
            ApiError::new(ErrorType::Server, "the response was lost: the server's log says why");
        Refused::new(api, &error)
    })?;
    Ok(json(StatusCode::OK, &response))
}

/// A response that is being made.
pub(super) struct Making {
    /// How it looked before anything was done.
    pub(super) value: Value,
    pub(super) log: ResponseLog,
    /// Cancels it.
    pub(super) cancel: CancellationToken,
    pub(super) work: JoinHandle<()>,
    /// What is known of it, if it is not stored.
    pub(super) unstored: Option<UnstoredResponse>,
}

impl Making {
    /// Begins a response, which may go on from one that is not stored.
    pub(super) async fn begin(
        api: &Api,
        client: &Client,
        asked: Asked,
        unstored: Option<UnstoredResponse>,
    ) -> Result<Self, ApiError> {
        Self::begin_as(api, client, asked, unstored, false).await
    }

    /// Begins the response that becomes a chat completion.
    pub(super) async fn begin_chat(
        api: &Api,
        client: &Client,
        asked: Asked,
    ) -> Result<Self, ApiError> {
        Self::begin_as(api, client, asked, None, true).await
    }

    async fn begin_as(
        api: &Api,
        client: &Client,
        (request, body): Asked,
        unstored: Option<UnstoredResponse>,
        is_chat: bool,
    ) -> Result<Self, ApiError> {
        let own = served(api)?;
        let is_stored = request.store;
        let previous = previous(request.previous_response_id.as_deref())?;
        // Only one request at a time goes on in a run.
        let lock = match &previous {
            Some(id) => continuing(api, id).await,
            None => None,
        };
        let new = NewResponse {
            request,
            body,
            may_continue: lock.is_some(),
            may_approve: client.may(Right::Approve),
            previous: previous.clone(),
            unstored,
            is_chat,
        };
        let begun = own.begin(client.turn_options(), new).await?;
        let is_same = previous.is_some_and(|previous| previous.run == begun.id.run);
        let active = match lock.filter(|_| is_same) {
            Some(lock) => lock,
            None => api.active_runs().begin(&begun.id.run).map_err(|_| locked())?,
        };
        Ok(Self::working(api, begun, active, is_stored))
    }

    /// Works on a response, which goes on even if the client disconnects. It is paused when the server stops or the
    /// client may not continue, and counts as a request of the client until it rests.
    fn working(api: &Api, begun: BegunResponse, mut active: Work, is_stored: bool) -> Self {
        let BegunResponse { id, value, work, unstored } = begun;
        let log = ResponseLog::default();
        if is_stored {
            api.live_responses().begin(&id, &log);
        }
        let (own, events, cancel) = (api.clone(), log.clone(), active.run.cancel.clone());
        let begun_as = value.clone();
        let work = api.spawn(async move {
            let stopped = Box::pin(stopped(own.clone(), active.run.cancel.clone()));
            let said = active.said.take().unwrap_or_else(|| mpsc::unbounded_channel().1);
            let followers = active.run.followers();
            work(events.clone(), AgentRunControl { stopped, said, followers }).await;
            drop::<Work>(active);
            // Its readers are not kept waiting.
            events.end(begun_as);
            own.live_responses().end(&id);
        });
        Self { value, log, cancel, work, unstored }
    }
}

/// Begins work on the run of an earlier response, unless there is work on it. A client that has read the last event of a
/// response goes on from it at once, so what is done after that event is waited for.
async fn continuing(api: &Api, id: &ResponseId) -> Option<Work> {
    if let Some(active) = api.active_runs().get(&id.run)
        && api.live_responses().get(id).is_some_and(|log| log.is_over())
    {
        let _ = timeout(AFTER_THE_END, active.ended.cancelled()).await;
    }
    api.active_runs().begin(&id.run).ok()
}

/// The log of a response, if there is one. Work on a response that goes on begins again if nobody does it, for example
/// because its server was killed.
pub(super) async fn continued(
    api: &Api,
    client: &Client,
    id: &ResponseId,
    response: &ShownResponse,
) -> Result<Option<ResponseLog>, Refused> {
    if let Some(log) = api.live_responses().get(id)
        && (log.response().is_none() || !response.goes_on)
    {
        return Ok(Some(log));
    }
    if !response.goes_on {
        return Ok(None);
    }
    let Ok(active) = api.active_runs().begin(&id.run) else { return Ok(None) };
    let begun = responses(api)?.resume(client.turn_options(), id.clone()).await;
    let begun = begun.map_err(|error| Refused::new(api, &error))?;
    Ok(Some(Making::working(api, begun, active, true).log))
}

/// A request for a response, with the members that matter most. All others of OpenAI's protocol are read as well.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
pub(crate) struct ResponseBody {
    /// An agent of the server's config, or `PROVIDER/MODEL`.
    model: Option<String>,
    /// What is said: a text, or a list of items.
    #[schemars(with = "Value")]
    input: Value,
    /// Instructions, which follow those of the agent.
    instructions: Option<String>,
    /// The response from which this one goes on.
    previous_response_id: Option<String>,
    /// Tools that the client runs itself, or built-in types, each of which selects the server's tool of that job.
    tools: Option<Vec<Value>>,
    /// Whether the response is kept. Default: true.
    store: Option<bool>,
    /// Whether to answer with events. Default: false.
    stream: Option<bool>,
    /// Whether to answer at once, while the response is made. Default: false.
    background: Option<bool>,
}
