//! Makes conversations shorter, and counts their tokens.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolcrib_wire::api::ApiError;
use toolcrib_wire::responses::{CompactRequest, ResponseRequest};

use super::create::read;
use super::error::Refused;
use super::{previous, responses};
use crate::api::agent_runs::stopped;
use crate::api::{Api, json};
use crate::auth::client::Client;
use crate::idempotency::Request;

/// A conversation to make shorter.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
pub(crate) struct CompactBody {
    /// An agent of the server's config, or `PROVIDER/MODEL`.
    model: String,
    /// The conversation: a text, or a list of items.
    #[schemars(with = "Value")]
    input: Option<Value>,
    /// What the summary has to contain, beside the usual.
    instructions: Option<String>,
    /// The response whose conversation comes first.
    previous_response_id: Option<String>,
}

/// A request whose tokens are counted.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
pub(crate) struct CountBody {
    /// An agent of the server's config, or `PROVIDER/MODEL`.
    model: Option<String>,
    /// What is said: a text, or a list of items.
    #[schemars(with = "Value")]
    input: Option<Value>,
    /// Instructions, which follow those of the agent.
    instructions: Option<String>,
    /// The response from which the request goes on.
    previous_response_id: Option<String>,
    /// The tools of the request.
    tools: Option<Vec<Value>>,
}

pub(crate) async fn compact(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refused> {
    let (text, _) = read(&api, &headers, &body)?;
    let request = CompactRequest::read(&text).map_err(|error| Refused::new(&api, &error))?;
    let key = Request::of(&headers, &client.key_owner, &["compact"], &body)?;
    let own = api.clone();
    let work =
        async move { compacted(&own, &client, request).await.unwrap_or_else(Response::from) };
    Ok(api.idempotency().once_if(&api, key, Box::pin(work)).await?)
}

async fn compacted(
    api: &Api,
    client: &Client,
    request: CompactRequest,
) -> Result<Response, Refused> {
    let before = previous(request.previous_response_id.as_deref());
    let before = before.map_err(|error| Refused::new(api, &error))?;
    let stopped = Box::pin(stopped(api.clone(), CancellationToken::new()));
    let done = responses(api)?.compact(client.turn_options(), request, before, stopped).await;
    let mask = api.backend().executor().mask();
    let compaction = done.map_err(|error| Refused::new(api, &error))?;
    Ok(json(StatusCode::OK, &mask.value(compaction)))
}

pub(crate) async fn input_tokens(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refused> {
    let refused = |error: ApiError| Refused::new(&api, &error);
    let (text, _) = read(&api, &headers, &body)?;
    let request = ResponseRequest::read_counted(&text).map_err(refused)?;
    let before = previous(request.previous_response_id.as_deref()).map_err(refused)?;
    let count = responses(&api)?.count_tokens(client.turn_options(), request, before).await;
    let count = count.map_err(refused)?;
    Ok(json(StatusCode::OK, &toolcrib_wire::responses::input_tokens(count)))
}
