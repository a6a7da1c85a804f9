//! Failed requests: what happened, and what to do next.

use std::time::Duration;

use toolcrib_manifest::declaration::{HttpSpec, UrlOrigin, UrlSpec};
use toolcrib_manifest::template::{Reference, Template};
use toolcrib_net::{Error, Response, StatusCode};
use toolcrib_tool::{Annotations, ErrorKind, ToolError};

const TELL_USER: &str = "No argument can change that: tell the user.";
const CHECK_FIRST: &str = "It may have taken effect: check before you call again, or ask the user.";

/// The error for a request without a response.
pub(super) fn without_response(
    error: Error,
    spec: &HttpSpec,
    annotations: Annotations,
) -> ToolError {
    let unsent = error.nothing_was_sent();
    let (kind, hint) = match innermost(&error) {
        Error::Address { .. } | Error::Url(_) | Error::Redirect { .. } => {
            (ErrorKind::Denied, Some(TELL_USER))
        }
        Error::Unresolved { .. } | Error::Connect { .. } => {
            (ErrorKind::Unavailable, Some("Try again later, or tell the user."))
        }
        Error::Setup(_) => (ErrorKind::Unavailable, Some(TELL_USER)),
        Error::Timeout { .. } => (ErrorKind::Timeout, None),
        Error::TooLarge { .. } => (ErrorKind::Execution, Some("Ask for less.")),
        Error::Broken { .. } if !unsent && !repeatable(annotations) => {
            (ErrorKind::OutcomeUnknown, None)
        }
        _ => (ErrorKind::Execution, None),
    };
    // Sending it again does no harm.
    let broken = matches!(innermost(&error), Error::Broken { .. });
    let retryable = match innermost(&error) {
        Error::Unresolved { .. } | Error::Connect { .. } => unsent || annotations.idempotent,
        _ => broken && annotations.idempotent,
    };
    let mut failure = ToolError::new(kind, text(&error, spec)).with_retryable(retryable);
    failure = match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    };
    if !unsent && !annotations.read_only && (broken || kind == ErrorKind::Timeout) {
        failure = failure.with_hint(CHECK_FIRST);
    }
    match spec.url.origin {
        UrlOrigin::Literal(_) => failure.with_source(error),
        // The error contains the host.
        UrlOrigin::Secret(_) => failure,
    }
}

/// Whether a call that may have taken effect can be repeated without harm.
fn repeatable(annotations: Annotations) -> bool {
    annotations.read_only || annotations.idempotent
}

/// The message for the model: the host and the reason.
fn text(error: &Error, spec: &HttpSpec) -> String {
    match (&spec.url.origin, error) {
        (UrlOrigin::Literal(origin), Error::Timeout { .. }) => {
            format!("{} gave {error}", host(origin))
        }
        (UrlOrigin::Literal(_), other) => other.to_string(),
        (UrlOrigin::Secret(secret), other) => text_without_host(innermost(other), secret),
    }
}

/// The message if a secret holds the URL.
fn text_without_host(error: &Error, secret: &Reference) -> String {
    let server = server_of(secret);
    match error {
        Error::Timeout { .. } => format!("{server} gave {error}"),
        Error::TooLarge { .. } | Error::Setup(_) => error.to_string(),
        Error::Address { .. } => {
            format!("{server} has an address to which connections are not allowed")
        }
        Error::Unresolved { .. } => format!("{server} has a name without an address"),
        Error::Connect { .. } => format!("no connection to {server} could be made"),
        Error::Broken { .. } => format!("the response from {server} is invalid"),
        Error::Redirect { .. } => format!("a redirect from {server} is not followed"),
        _ => format!("the request to {server} failed"),
    }
}

/// A name for a server whose host is not shown.
fn server_of(secret: &Reference) -> String {
    format!("the server of `{secret}`")
}

/// A name for the server that answered.
pub(super) fn answering(response: &Response, spec: &HttpSpec) -> String {
    match &spec.url.origin {
        UrlOrigin::Literal(_) => host(&response.target.origin()).to_owned(),
        UrlOrigin::Secret(secret) => server_of(secret),
    }
}

/// The last error of a chain of redirects.
fn innermost(error: &Error) -> &Error {
    match error {
        Error::Redirected { source, .. } => innermost(source),
        other => other,
    }
}

/// The error for a status that is not a success. The caller adds the response's text.
pub(super) fn status(response: &Response, spec: &HttpSpec, annotations: Annotations) -> ToolError {
    let status = response.status;
    let wait = response.retry_after();
    let message = format!("{} answered {}", answering(response, spec), phrase(status));
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimited,
        // A proxy sends these for a service that may have completed the request. If the call cannot be repeated safely,
        // its outcome is unknown.
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
            if !repeatable(annotations) =>
        {
            ErrorKind::OutcomeUnknown
        }
        StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
        _ => ErrorKind::Execution,
    };
    // With 429 the request was not processed; with 503 it may have been.
    let retryable = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => annotations.idempotent,
        _ => false,
    };
    let mut failure = ToolError::new(kind, message).with_retryable(retryable);
    if let Some(wait) = wait {
        failure = failure.with_retry_after(wait);
    }
    if let Some(hint) = hint(status, wait, response, spec) {
        failure = failure.with_hint(hint);
    }
    if status.is_server_error() && !repeatable(annotations) {
        failure = failure.with_hint(CHECK_FIRST);
    }
    failure
}

fn hint(
    status: StatusCode,
    wait: Option<Duration>,
    response: &Response,
    spec: &HttpSpec,
) -> Option<String> {
    Some(match status.as_u16() {
        400 | 422 => {
            "The service did not accept the arguments: read its answer and correct them.".into()
        }
        401 | 403 | 407 if response.redirects > 0 => {
            "The request was redirected, and credentials are not sent after a redirect: the \
             tool's URL has to be the final one. Tell the user."
                .into()
        }
        401 | 403 | 407 => format!("The tool's credentials do not allow this. {TELL_USER}"),
        404 | 410 if !has_argument(&spec.url) => {
            format!("The tool's URL does not exist there, and it contains no argument. {TELL_USER}")
        }
        404 | 410 => "It does not exist: check the arguments, and do not guess.".into(),
        409 | 412 => "It conflicts with the current state: check that first.".into(),
        429 | 503 => match wait {
            Some(wait) => format!("Wait {} s before you call again.", wait.as_secs().max(1)),
            None => "Wait before you call again.".into(),
        },
        300..400 => "The response is a redirect, which was not followed. Tell the user.".into(),
        500..600 => "The service failed; the arguments are not the cause.".into(),
        200..300 => format!("The tool does not count this status as a success. {TELL_USER}"),
        _ => return None,
    })
}

/// Whether an argument of the call is part of the URL.
fn has_argument(url: &UrlSpec) -> bool {
    let values = url.query.iter().filter_map(|pair| pair.value.as_ref());
    let mut references = values.chain([&url.path]).flat_map(Template::references);
    references.any(|reference| matches!(reference, Reference::Arg(_)))
}

/// `404 Not Found`.
pub(super) fn phrase(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Host and port of an origin.
fn host(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}
