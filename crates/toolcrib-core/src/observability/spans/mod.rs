//! Spans and log events of calls, named after OpenTelemetry's conventions for generative AI.
//!
//! A call is a span `execute_tool` (`otel.name` carries the tool) with two events in it:
//! `execute_start` at info, and `execute_done` at a level that depends on who has to act: error and
//! warn are for the operator. Invalid arguments and refusals are not faults of the system and are
//! logged at info. Without a subscriber, a call only checks a flag.

use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::{ErrorKind, ToolError};
use tracing::field::Empty;
use tracing::{Level, Span};

use crate::UNKNOWN_TOOLS;
use crate::output::masking::LiveMask;

/// The component name in logs.
const COMPONENT: &str = "AgentTool";

/// How many characters of an unknown tool name are logged.
const SHOWN_NAME: usize = 64;

/// The data of a call for its span and log events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanCall<'a> {
    /// The name that was called.
    pub(crate) name: &'a str,
    /// Whether the tool exists. Unknown names share one label, because a model can invent any
    /// number of them.
    pub(crate) known: bool,
    /// The caller's id.
    pub(crate) id: &'a str,
    /// Masks secrets in what the caller chose: the id, and an unknown name.
    pub(crate) mask: Option<&'a LiveMask>,
}

impl<'a> SpanCall<'a> {
    pub(crate) fn label(self) -> &'a str {
        if self.known { self.name } else { UNKNOWN_TOOLS }
    }

    /// The unknown name, so that an operator can see what a model wanted.
    fn requested(self) -> Option<String> {
        // Masked first: half a secret cannot be found.
        (!self.known).then(|| self.masked(self.name).chars().take(SHOWN_NAME).collect())
    }

    /// The caller's id, as logs show it.
    fn shown_id(self) -> String {
        self.masked(self.id)
    }

    fn masked(self, text: &str) -> String {
        match self.mask {
            Some(mask) => mask.text(text.to_owned()),
            None => text.to_owned(),
        }
    }
}

/// The span of a call; disabled without a subscriber.
pub(crate) fn span(call: SpanCall<'_>) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = tracing::field::display(format_args!("execute_tool {}", call.label())),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.label(),
        gen_ai.tool.call.id = call.shown_id(),
        gen_ai.tool.r#type = "function",
        error.r#type = Empty,
    )
}

/// Logs the start of a call. The redacted arguments are computed only if they are logged.
pub(crate) fn started(call: SpanCall<'_>, arguments: impl FnOnce() -> Value) {
    if tracing::enabled!(tracing::Level::INFO) {
        tracing::info!(
            component = COMPONENT,
            tool = call.label(),
            requested = call.requested(),
            call_id = call.shown_id(),
            arguments = tracing::field::display(arguments()),
            "execute_start"
        );
    }
}

/// Logs the outcome of a call, in `span` and in an event. Error and source must be masked.
pub(crate) fn ended(
    span: &Span,
    call: SpanCall<'_>,
    duration: Duration,
    error: Option<&ToolError>,
) {
    let Some(error) = error else {
        tracing::info!(
            parent: span,
            component = COMPONENT,
            tool = call.label(),
            call_id = call.shown_id(),
            ?duration,
            "execute_done"
        );
        return;
    };
    let kind = error.kind().as_str();
    if !span.is_disabled() {
        span.record("error.type", kind);
        span.record("otel.status_code", "ERROR");
    }
    macro_rules! done {
        ($level:ident) => {
            tracing::$level!(
                parent: span,
                component = COMPONENT,
                tool = call.label(),
                requested = call.requested(),
                call_id = call.shown_id(),
                ?duration,
                error.r#type = kind,
                error = error.message(),
                source = error.source().map(tracing::field::display),
                "execute_done"
            )
        };
    }
    match level(error.kind()) {
        Level::ERROR => done!(error),
        Level::WARN => done!(warn),
        _ => done!(info),
    }
}

/// The log level of an error: `error` if an operator has to act, `info` if it only concerns the
/// model, its user and approvers, `warn` for the others.
fn level(kind: ErrorKind) -> Level {
    match kind {
        ErrorKind::Panic
        | ErrorKind::Timeout
        | ErrorKind::Unavailable
        | ErrorKind::InvalidOutput
        | ErrorKind::Internal => Level::ERROR,
        ErrorKind::NotFound
        | ErrorKind::InvalidJson
        | ErrorKind::InvalidArgs
        | ErrorKind::Constraint
        | ErrorKind::Denied
        | ErrorKind::RequiresApproval
        | ErrorKind::Cancelled => Level::INFO,
        _ => Level::WARN,
    }
}

#[cfg(test)]
mod tests;
