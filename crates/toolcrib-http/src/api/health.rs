//! Whether the server lives, whether it takes calls, and whether somebody should look after it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Api, json};
use crate::Health;

/// How the server stands. No token is asked for here, so there are numbers and no names.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HealthBody {
    status: Status,
    #[serde(flatten)]
    health: Health,
}

/// How it stands in a word.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// All is well.
    Ok,
    /// Calls are answered, and something needs an operator: the numbers say what.
    Degraded,
    /// It is stopping: calls that run are answered, others are refused.
    Stopping,
}

fn body(api: &Api) -> HealthBody {
    let health = api.backend().health();
    let status = if api.backend().executor().is_shutting_down() {
        Status::Stopping
    } else if health.is_degraded() {
        Status::Degraded
    } else {
        Status::Ok
    };
    HealthBody { status, health }
}

/// It lives as long as it answers.
pub(crate) async fn health(State(api): State<Api>) -> Response {
    json(StatusCode::OK, &body(&api))
}

/// What is degraded still serves: taken out of service, it would help nobody.
pub(crate) async fn ready(State(api): State<Api>) -> Response {
    let body = body(&api);
    let status = match body.status {
        Status::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        Status::Ok | Status::Degraded => StatusCode::OK,
    };
    json(status, &body)
}
