//! Input for runs of agents, whether there is work on them or not.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use toolcrib_core::run::RunId;

use super::{check_input, finished, own_run, report, work};
use crate::AgentRunStep;
use crate::api::problem::Problem;
use crate::api::runs::{store, unknown};
use crate::api::{Api, json};
use crate::auth::client::Client;
use crate::idempotency::Request;
use crate::serving::request_body::JsonBody;

/// What a run is told.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SteerRequest {
    /// What the agent is told with the next request to its model.
    #[schemars(extend("pattern" = "\\S"))]
    input: String,
}

pub(crate) async fn steer(
    State(api): State<Api>,
    Extension(client): Extension<Arc<Client>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    store(&api)?;
    let SteerRequest { input } = JsonBody::parse(&headers, &body)?.read()?;
    check_input(&input)?;
    let request = Request::of(&headers, &client.key_owner, &["steer", &id], &body)?;
    let own = api.clone();
    let work = async move { steered(&own, &client, &id, &input).await.into_response() };
    api.idempotency().once_if(&api, request, Box::pin(work)).await
}

async fn steered(api: &Api, client: &Client, id: &str, input: &str) -> Result<Response, Problem> {
    let id: RunId = id.parse().map_err(|_| unknown())?;
    let run = own_run(api, client, &id).await?;
    loop {
        if let Some(active) = api.active_runs().get(&id) {
            if !active.may_be_told_by(client.entitlement()) {
                return Err(others_work());
            }
            match active.say(input.to_owned()).await {
                Some(recorded) => {
                    recorded?;
                    break;
                }
                // It has just come to rest.
                None => active.ended.cancelled().await,
            }
        } else if run.active && !client.entitlement().allows_every_call() {
            // Nothing is known here of the client that works on it.
            return Err(others_work());
        } else if let Ok(work) = work(api, client, &id, AgentRunStep::Steer(input.to_owned())) {
            finished(work).await?;
            break;
        }
        // Somebody has just begun to work on it.
    }
    Ok(json(StatusCode::OK, &report(api, client, &id).await?))
}

/// Input of a client becomes calls with the tools, rules and context values of the one that works on the run.
fn others_work() -> Problem {
    let detail = "another client, or another server, works on this run, and may do there what this client may not: wait until \
                  the run rests and resume it with this client, or cancel it";
    Problem::new(StatusCode::CONFLICT, detail).nothing_done()
}
