//! Errors as `application/problem+json` (RFC 9457).

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolcrib_core::masking::LiveMask;
use toolcrib_core::run::RunError;
use toolcrib_core::suspension::{RedeemError, StoreError, SubmitError};
use toolcrib_tool::{ErrorKind, ToolError, ToolResult};

use crate::api::json_text;
use crate::api::result::CallResult;
use crate::idempotency::STORE_RETRY;

/// The longest detail taken from another layer, in bytes.
const DETAIL_MAX: usize = 4 * 1024;

/// How long a client waits before it sends a decision again that a server did not take because it was shutting down.
const AFTER_SHUTDOWN: Duration = Duration::from_secs(5);

/// What a client is told whose request could not be stored, or not to its end.
const STORE_FAILED: &str = "the state folder cannot be used at present, for example because its disk is full: nothing that \
     was confirmed is lost; look how far it got, and send the request again later";

/// What is wrong with a request and what to do about it.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
    call: Option<Box<CallResult>>,
    run: Option<String>,
    retry_after: Option<Duration>,
    nothing_done: bool,
}

/// Marks a request that was refused before anything was done: with the same key it can be sent
/// again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NothingDone;

/// A problem as it is sent (RFC 9457).
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemBody<'a> {
    /// Always `about:blank`: `status` and `kind` identify the problem.
    r#type: &'static str,
    /// The status in words.
    title: &'a str,
    /// The status.
    status: u16,
    /// What went wrong and what to do about it.
    detail: &'a str,
    /// A stable identifier: the kind of a failed call, such as `invalid_args`, or of a refused
    /// request, such as `unauthorized`.
    kind: &'a str,
    /// The answer of the call, if a call has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a CallResult>,
    /// The run that the request had begun before its answer was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let kind = kind_of(status);
        let detail = detail.into();
        Self { status, kind, detail, call: None, run: None, retry_after: None, nothing_done: false }
    }

    /// A request that is well-formed but invalid.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// An error that is not the client's fault; `cause` goes to the log for the operator.
    pub(crate) fn internal(what: &str, cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "{what}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{what}: the server's log says why"))
    }

    /// Sets another kind.
    pub(crate) fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    /// States that nothing was done, so that the same request can be sent again.
    pub(crate) fn nothing_done(mut self) -> Self {
        self.nothing_done = true;
        self
    }

    /// Names the run that the request had begun.
    pub(crate) fn of_run(mut self, run: String) -> Self {
        self.run = Some(run);
        self
    }

    /// Adds a sentence to the detail.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.detail.push_str(". ");
        self.detail.push_str(more);
        self
    }

    /// Sets how long to wait before the next attempt.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// A failed call with its whole answer. `repeatable` calls can safely be made again, even if
    /// they were started.
    pub(crate) fn of_call(result: &ToolResult, error: &ToolError, repeatable: bool) -> Self {
        let nothing_done = match error.kind() {
            ErrorKind::RateLimited | ErrorKind::Unavailable | ErrorKind::Paused => true,
            ErrorKind::Cancelled => repeatable,
            _ => false,
        };
        Self {
            nothing_done,
            status: status_of(error.kind()),
            kind: error.kind().as_str(),
            detail: error.message().to_owned(),
            call: Some(Box::new(CallResult::from(result))),
            run: None,
            retry_after: error.retry_after(),
        }
    }

    pub(crate) fn body(&self) -> String {
        let body = ProblemBody {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            kind: self.kind,
            result: self.call.as_deref(),
            run: self.run.as_deref(),
        };
        // Strings, numbers and JSON values always serialise.
        json_text(&body).unwrap_or_default()
    }
}

/// The HTTP status of a failed call; 2xx means that a call has succeeded or waits.
fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::InvalidJson => StatusCode::BAD_REQUEST,
        ErrorKind::InvalidArgs | ErrorKind::Constraint | ErrorKind::MissingContext => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorKind::Denied | ErrorKind::RequiresApproval => StatusCode::FORBIDDEN,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable | ErrorKind::Paused | ErrorKind::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        // The server works; the tool has failed. A 5xx would alert the wrong people. The same goes
        // for unknown outcomes, and clients do not retry a 424 automatically.
        ErrorKind::Execution | ErrorKind::OutcomeUnknown => StatusCode::FAILED_DEPENDENCY,
        // Panics, invalid output, internal errors and other faults of this side.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn kind_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::NOT_ACCEPTABLE => "not_acceptable",
        StatusCode::REQUEST_TIMEOUT => "request_timeout",
        StatusCode::CONFLICT => "conflict",
        StatusCode::GONE => "expired",
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        StatusCode::TOO_MANY_REQUESTS => "rate_limited",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        status if status.is_client_error() => "invalid_request",
        _ => "internal",
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let detail = error.to_string();
        match error {
            RunError::Unknown | RunError::Redeem(RedeemError::Unknown) => Self::not_found(detail),
            RunError::Redeem(RedeemError::AlreadyResolved(_)) | RunError::PartlyCancelled(_) => {
                Self::new(StatusCode::CONFLICT, detail).kind("already_resolved")
            }
            RunError::Redeem(RedeemError::Expired | RedeemError::NotExpired) => {
                Self::new(StatusCode::CONFLICT, detail)
            }
            RunError::Redeem(RedeemError::ShuttingDown) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
                    .retry_after(AFTER_SHUTDOWN)
                    .nothing_done()
            }
            RunError::Redeem(RedeemError::NotAllowed) => Self::new(StatusCode::FORBIDDEN, detail),
            RunError::Redeem(RedeemError::Store(error)) | RunError::Store(error) => error.into(),
            RunError::Submit(SubmitError::Invalid { error, .. })
            | RunError::Redeem(RedeemError::Answer(error) | RedeemError::Arguments(error)) => {
                Self::unprocessable(detail).kind(error.kind().as_str())
            }
            _ => Self::unprocessable(detail),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full(full) => {
                let detail = StoreError::Full(full.clone()).to_string();
                let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
                match full.retry_after {
                    Some(wait) => problem.retry_after(wait),
                    None => problem,
                }
            }
            StoreError::Claimed { .. } => Self::new(StatusCode::CONFLICT, error.to_string()),
            StoreError::Expired => Self::new(StatusCode::GONE, error.to_string()),
            StoreError::Failed { .. } => {
                tracing::warn!(%error, "the state folder could not be used");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, STORE_FAILED).retry_after(STORE_RETRY)
            }
            error => Self::internal("waiting calls could not be stored or read", &error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, media_type());
        if let Some(wait) = self.retry_after {
            // Rounded up to whole seconds.
            let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.nothing_done {
            response.extensions_mut().insert(NothingDone);
        }
        response
    }
}

/// Whether a response is an error that another layer wrote as plain text.
fn is_bare_text(response: &Response<Body>) -> bool {
    let status = response.status();
    let error = status.is_client_error() || status.is_server_error();
    error && !response.headers().contains_key(CONTENT_TYPE)
}

/// Converts an error that another layer wrote as plain text to a problem. Other headers, such as
/// `Allow`, are kept; responses with another media type are not changed.
pub(crate) async fn from_bare_text(response: Response<Body>) -> Response<Body> {
    if !is_bare_text(&response) {
        return response;
    }
    let status = response.status();
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, DETAIL_MAX).await.unwrap_or_default();
    let detail = match String::from_utf8_lossy(&text) {
        none if none.is_empty() && status == StatusCode::METHOD_NOT_ALLOWED => {
            "this path does not support the method: the header Allow names the supported ones"
                .into()
        }
        detail => detail,
    };
    let problem = Problem::new(status, detail);
    parts.headers.insert(CONTENT_TYPE, media_type());
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(problem.body()))
}

/// Masks a problem, whose texts may repeat what the client sent. Other responses are not changed: what calls return is
/// masked before it gets here.
pub(crate) async fn masked(response: Response<Body>, mask: &LiveMask) -> Response<Body> {
    if response.headers().get(CONTENT_TYPE) != Some(&media_type()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // A problem is in memory already, and small.
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let masked = match serde_json::from_slice::<Value>(&bytes) {
        Ok(value) => Some(mask.value(value.clone())).filter(|masked| *masked != value),
        Err(_) => None,
    };
    let Some(masked) = masked else { return Response::from_parts(parts, Body::from(bytes)) };
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(masked.to_string()))
}

fn media_type() -> HeaderValue {
    HeaderValue::from_static("application/problem+json")
}
