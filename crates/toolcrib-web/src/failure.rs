//! Failed requests: what happened, and what to do next.

use toolcrib_net::{Error, RedirectRefusal, Response, StatusCode};
use toolcrib_tool::{ErrorKind, ToolError};

/// The error for a page without a response.
///
/// A slow site is no fault of the tool, so it is not a timeout, which would pause the tool.
pub(crate) fn of_page(error: Error, shown: &str) -> ToolError {
    let (kind, hint, retryable) = match innermost(&error) {
        Error::Url(_) => (ErrorKind::InvalidArgs, "Send the full URL of a public page.", false),
        Error::Address { .. } => (
            ErrorKind::Denied,
            "Only public addresses are fetched. If the user wants this one, the operator has to add it to \
             `web.allow_private`.",
            false,
        ),
        Error::Redirect { reason: RedirectRefusal::TooMany(_), .. } => {
            (ErrorKind::Execution, "The page redirects in a circle: use another source.", false)
        }
        Error::Redirect { .. } => (
            ErrorKind::Denied,
            "The page leads where nothing is fetched: use another source.",
            false,
        ),
        Error::Unresolved { .. } => {
            (ErrorKind::Execution, "Check the host name, or search for the page.", true)
        }
        Error::TooLarge { .. } => (
            ErrorKind::Execution,
            "Fetch a page that is smaller, such as a part of it or a printable version.",
            false,
        ),
        Error::Setup(_) => {
            (ErrorKind::Unavailable, "No argument can change that: tell the user.", false)
        }
        _ => (ErrorKind::Execution, "Try again later, or use another source.", true),
    };
    let message = format!("{shown} could not be fetched: {error}");
    let failure = ToolError::new(kind, message).with_retryable(retryable).with_hint(hint);
    failure.with_source(error)
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::Redirected { source, .. } => innermost(source),
        other => other,
    }
}

/// The error for a page whose server answers with another status than success.
pub(crate) fn of_status(response: &Response, shown: &str) -> ToolError {
    let status = response.status;
    let hint = match status.as_u16() {
        404 | 410 => "The page does not exist: correct the URL, or search for the page.",
        401 | 403 | 407 | 451 => {
            "The server does not show this page to programs or without a login: use another source."
        }
        429 | 503 => "Wait before you fetch from this host again, or use another source.",
        _ => "Try again later, or use another source.",
    };
    let retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let failure = ToolError::execution(format!("{shown} answered {}", described(status)))
        .with_retryable(retryable)
        .with_hint(hint);
    match response.retry_after() {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    }
}

/// A status with its usual text.
pub(crate) fn described(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}
