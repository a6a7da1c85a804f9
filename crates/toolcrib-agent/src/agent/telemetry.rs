//! Spans of runs and of requests to models, named after OpenTelemetry's conventions for generative AI. Calls have spans of
//! their own inside the run's.

use toolcrib_core::run::RunId;
use toolcrib_wire::model::{Answer, RequestHead};
use tracing::Span;
use tracing::field::{Empty, display};

use crate::model::AttemptError;

/// The span of a run while one process drives it; disabled without a subscriber.
pub(super) fn invoke_agent(agent: &str, run: &RunId) -> Span {
    tracing::info_span!(
        "invoke_agent",
        otel.name = display(format_args!("invoke_agent {agent}")),
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = run.as_str(),
    )
}

/// The span of one attempt to ask a model.
pub(super) fn chat(head: &RequestHead) -> Span {
    tracing::info_span!(
        "chat",
        otel.name = display(format_args!("chat {}", head.model)),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.request.model = head.model,
        gen_ai.response.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
    )
}

/// Records an answer.
pub(super) fn answered(span: &Span, answer: &Answer) {
    if span.is_disabled() {
        return;
    }
    if let Some(model) = &answer.model {
        span.record("gen_ai.response.model", model);
    }
    if let Some(usage) = &answer.usage {
        span.record("gen_ai.usage.input_tokens", usage.input);
        span.record("gen_ai.usage.output_tokens", usage.output);
    }
}

/// Records a failure. Its kind has no secrets.
pub(super) fn failed(span: &Span, error: &AttemptError) {
    if !span.is_disabled() {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", display(error.kind));
    }
}
