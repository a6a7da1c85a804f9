//! Spans and events of calls, named as OpenTelemetry's conventions for generative AI name them.
//!
//! A call is a span `execute_tool` (`otel.name` carries the tool) with two events in it:
//! `execute_start` at info, and `execute_done` at a level that says who has to act: error and warn are for
//! the operator. That a model gave wrong arguments or was refused is no fault of the system: info.
//! Where nobody listens, a call pays for a look at a flag.

use std::time::Duration;

use serde_json::Value;
use toolcrib_tool::{ErrorKind, ToolError};
use tracing::field::Empty;
use tracing::{Level, Span};

use crate::UNKNOWN_TOOLS;
use crate::output::masking::LiveMask;

/// Who speaks, as people who filter logs know it.
const COMPONENT: &str = "AgentTool";

/// Characters of a name that belongs to no tool that are logged.
const SHOWN_NAME: usize = 64;

/// A call, as its span and its events name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanCall<'a> {
    /// The name that was called.
    pub(crate) name: &'a str,
    /// Whether it belongs to a tool. Names that do not all have one label: a model can make up any
    /// number of them.
    pub(crate) known: bool,
    /// The caller's id.
    pub(crate) id: &'a str,
    /// Hides secrets in what the caller chose: the id, and a name that belongs to no tool.
    pub(crate) mask: Option<&'a LiveMask>,
}

impl<'a> SpanCall<'a> {
    pub(crate) fn label(self) -> &'a str {
        if self.known { self.name } else { UNKNOWN_TOOLS }
    }

    /// The name of a call of no tool, so that an operator can find out what a model wanted.
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

/// The span of a call, to be entered for all of it; disabled where nobody listens.
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

/// Says that a call has begun. The arguments, redacted, are made only if somebody reads them.
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

/// Says what became of a call, in `span` and in its own event. Error and source must have been
/// masked.
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

/// The level of a failure: error for one that an operator has to look at, info for one that is between
/// the model, its user and whoever decides on its calls, warn for the others.
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
