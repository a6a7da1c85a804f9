//! Health and readiness.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Api, json};
use crate::Health;

/// The health of the server. This needs no token, so it contains numbers but no names.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HealthBody {
    status: Status,
    #[serde(flatten)]
    health: Health,
}

/// The overall status.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// Everything works.
    Ok,
    /// Calls are answered, but something needs an operator's attention: see the numbers.
    Degraded,
    /// The server is stopping: running calls are answered, new ones are refused.
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

/// A server that answers is alive.
pub(crate) async fn health(State(api): State<Api>) -> Response {
    json(StatusCode::OK, &body(&api))
}

/// A degraded server still serves; taking it out of service would not help.
pub(crate) async fn ready(State(api): State<Api>) -> Response {
    let body = body(&api);
    let status = match body.status {
        Status::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        Status::Ok | Status::Degraded => StatusCode::OK,
    };
    json(status, &body)
}
