//! Errors in the shape of OpenAI's APIs.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolcrib_wire::api::{ApiError, ErrorType};

use crate::api::problem::{NothingDone, Problem};
use crate::api::{Api, json};

/// An error as it is sent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ApiError")]
pub(crate) struct ErrorBody {
    error: ErrorMembers,
}

/// What is wrong with a request, and what to do about it.
#[derive(Serialize, JsonSchema)]
struct ErrorMembers {
    /// The problem and what to do.
    message: String,
    /// The kind of error, for example `invalid_request_error`.
    r#type: String,
    /// The wrong parameter.
    param: Option<String>,
    /// A stable name for programs, for example `model_not_found`.
    code: Option<String>,
}

/// A request that is not answered.
pub(crate) struct Refused(Box<Response>);

impl Refused {
    /// The answer to a request that was refused before anything was done.
    pub(crate) fn new(api: &Api, error: &ApiError) -> Self {
        let status =
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // The message may repeat what the client sent.
        let body = api.backend().executor().mask().value(error.to_value());
        let mut response = json(status, &body);
        if status.is_client_error() {
            response.extensions_mut().insert(NothingDone);
        }
        Self(Box::new(response))
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem.into_response()))
    }
}

impl From<Refused> for Response {
    fn from(refused: Refused) -> Self {
        *refused.0
    }
}

/// Converts a problem of a layer before the handler to an error of OpenAI's APIs. Other responses stay as they are.
pub(crate) async fn from_problem(response: Response) -> Response {
    if response.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != "application/problem+json") {
        return response;
    }
    let status = response.status();
    let (mut parts, body) = response.into_parts();
    // A problem is in memory already, and small.
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let problem: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    let error_type = match status {
        StatusCode::UNAUTHORIZED => ErrorType::Authentication,
        StatusCode::FORBIDDEN => ErrorType::Permission,
        StatusCode::NOT_FOUND => ErrorType::NotFound,
        StatusCode::TOO_MANY_REQUESTS => ErrorType::TooManyRequests,
        status if status.is_client_error() => ErrorType::InvalidRequest,
        _ => ErrorType::Server,
    };
    let error = ApiError::new(error_type, text("detail"))
        .with_status(status.as_u16())
        .with_code(text("kind"));
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(error.to_value().to_string()))
}

/// The error for a server that has no agents.
pub(super) fn not_served() -> ApiError {
    ApiError::new(ErrorType::Server, "this server has no agents and no models")
        .with_status(501)
        .with_code("unavailable")
}

/// When another request works on the same conversation.
pub(super) fn locked() -> ApiError {
    ApiError::invalid("another request goes on from this response: wait until it has ended")
        .with_code("conversation_locked")
        .with_param("previous_response_id")
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}
