//! OpenAI's Responses API over the runs of agents.

mod chat;
mod compact;
mod create;
pub(crate) mod error;
pub(crate) mod live;
pub(crate) mod schema;
#[cfg(feature = "websocket")]
mod socket;
mod stream;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde_json::Value;
use toolcrib_wire::api::{ApiError, model_list};
use toolcrib_wire::responses::{Include, ItemPage, deleted};

use crate::api::agent_runs::finished;
use crate::api::{Api, agent_runs, json};
use crate::auth::client::Client;
use crate::{AgentRunStep, ResponseId, Responses, ShownResponse};
use error::{Refused, not_served};

pub(crate) use chat::{ChatBody, complete};
pub(crate) use compact::{CompactBody, CountBody, compact, input_tokens};
pub(crate) use create::{ResponseBody, create};
pub(crate) use error::ErrorBody;
#[cfg(feature = "websocket")]
pub(crate) use socket::open;

/// The statuses in which nothing changes any more.
const OVER: [&str; 4] = ["completed", "incomplete", "failed", "cancelled"];

fn served(api: &Api) -> Result<&dyn Responses, ApiError> {
    api.backend().responses().ok_or_else(not_served)
}

fn responses(api: &Api) -> Result<&dyn Responses, Refused> {
    served(api).map_err(|error| Refused::new(api, &error))
}

/// A response of this client.
async fn shown(
    api: &Api,
    client: &Client,
    id: &str,
    include: Include,
) -> Result<(ResponseId, ShownResponse), Refused> {
    let refused = |error: &ApiError| Refused::new(api, error);
    let own = responses(api)?;
    let known: ResponseId = id.parse().map_err(|()| refused(&ApiError::response_not_found(id)))?;
    let response = own.show(client.turn_options(), known.clone(), include).await;
    Ok((known, response.map_err(|error| refused(&error))?))
}

/// The response from which a request goes on.
fn previous(id: Option<&str>) -> Result<Option<ResponseId>, ApiError> {
    id.map(|id| id.parse().map_err(|()| ApiError::previous_response_not_found(id))).transpose()
}

pub(crate) async fn models(State(api): State<Api>) -> Result<Response, Refused> {
    let models = responses(&api)?.models();
    Ok(json(StatusCode::OK, &model_list(models)))
}

pub(crate) async fn show(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refused> {
    let wanted = stream::Wanted::of(&uri).map_err(|error| Refused::new(&api, &error))?;
    let (id, response) = shown(&api, &client, &id, wanted.include).await?;
    let log = create::continued(&api, &client, &id, &response).await?;
    if !wanted.is_stream {
        return Ok(json(StatusCode::OK, &response.value));
    }
    // The events that were kept have what the request wants to see.
    let log = log.filter(|log| wanted.include == Include::default() || log.response().is_none());
    let log = log.unwrap_or_else(|| stream::log_of(response));
    Ok(stream::events(log, wanted.after, None))
}

pub(crate) async fn cancel(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let (known, response) = shown(&api, &client, &id, Include::default()).await?;
    match response.value["status"].as_str() {
        Some("cancelled") => return Ok(json(StatusCode::OK, &response.value)),
        Some(status) if OVER.contains(&status) => {
            let message = format!("the response is {status}: there is nothing to cancel");
            let error = ApiError::invalid(message).with_status(409).with_code("already_over");
            return Err(Refused::new(&api, &error));
        }
        _ => {}
    }
    if let Some(active) = api.active_runs().get(&known.run) {
        active.cancel.cancel();
        active.ended.cancelled().await;
    } else {
        let step = AgentRunStep::Cancel("the client cancelled the response".to_owned());
        finished(agent_runs::work(&api, &client, &known.run, step)?).await?;
    }
    let (_, response) = shown(&api, &client, &id, Include::default()).await?;
    Ok(json(StatusCode::OK, &response.value))
}

pub(crate) async fn remove(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
) -> Result<Response, Refused> {
    let refused = |error: &ApiError| Refused::new(&api, error);
    let (known, _) = shown(&api, &client, &id, Include::default()).await?;
    // Nobody continues it meanwhile.
    let _work = api.active_runs().begin(&known.run).map_err(|_| {
        let message = "the response is being made: cancel it first, or wait";
        refused(&ApiError::invalid(message).with_status(409).with_code("conversation_locked"))
    })?;
    let removed = responses(&api)?.remove(client.turn_options(), known.clone()).await;
    removed.map_err(|error| refused(&error))?;
    api.live_responses().remove(&known);
    Ok(json(StatusCode::OK, &deleted(&id)))
}

pub(crate) async fn input_items(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refused> {
    let refused = |error: &ApiError| Refused::new(&api, error);
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query: Vec<_> = query.filter(|(key, _)| !stream::is_include(key)).collect();
    let page = ItemPage::read(query.iter().map(|(key, value)| (&**key, &**value)));
    let page = page.map_err(|error| refused(&error))?;
    let (known, _) = shown(&api, &client, &id, Include::default()).await?;
    let items = responses(&api)?.input_items(client.turn_options(), known).await;
    let items: Vec<Value> = items.map_err(|error| refused(&error))?;
    let mask = api.backend().executor().mask();
    // A value may have become a secret since it was stored.
    let items: Vec<Value> = items.into_iter().map(|item| mask.value(item)).collect();
    let list = page.list(&items).map_err(|error| refused(&error))?;
    Ok(json(StatusCode::OK, &list))
}
