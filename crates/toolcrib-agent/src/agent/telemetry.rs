//! Spans and figures of runs and of requests to models, named after OpenTelemetry's conventions for generative AI. Calls have
//! spans of their own inside the run's.

use tokio::time::Instant;
use toolcrib_core::run::RunId;
use toolcrib_core::{ModelRequestRecord, ModelStatistics};
use toolcrib_wire::model::{Answer, Wire};
use tracing::Span;
use tracing::field::Empty;

use crate::model::{AttemptError, ModelClient};

/// The span of a run while one process drives it; disabled without a subscriber.
pub(super) fn invoke_agent(agent: &str, run: &RunId, model: &dyn ModelClient) -> Span {
    tracing::info_span!(
        "invoke_agent",
        otel.name = display(format_args!("invoke_agent {agent}")),
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = provider(model.wire()),
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = run.as_str(),
    )
}

/// One attempt to ask a model: its span, and its figures when it has ended. One that is dropped was given up.
pub(super) struct ChatAttempt {
    pub(super) span: Span,
    statistics: ModelStatistics,
    provider: &'static str,
    model: String,
    began: Instant,
    is_over: bool,
}

impl ChatAttempt {
    pub(super) fn begin(
        model: &dyn ModelClient,
        run: &RunId,
        statistics: &ModelStatistics,
    ) -> Self {
        let (name, provider) = (model.head().model, provider(model.wire()));
        let span = tracing::info_span!(
            "chat",
            otel.name = display(format_args!("chat {name}")),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider,
            gen_ai.conversation.id = run.as_str(),
            gen_ai.request.model = name,
            gen_ai.response.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            error.r#type = Empty,
        );
        let (statistics, began) = (statistics.clone(), Instant::now());
        Self { span, statistics, provider, model: name, began, is_over: false }
    }

    /// Records an answer.
    pub(super) fn answered(mut self, answer: &Answer) {
        let tokens = answer.usage.map(|usage| (usage.input, usage.output));
        self.end(None, tokens);
        if self.span.is_disabled() {
            return;
        }
        if let Some(model) = &answer.model {
            self.span.record("gen_ai.response.model", model);
        }
        if let Some(usage) = &answer.usage {
            self.span.record("gen_ai.usage.input_tokens", usage.input);
            self.span.record("gen_ai.usage.output_tokens", usage.output);
            self.span.record("gen_ai.usage.cache_read.input_tokens", usage.cached_input);
        }
    }

    /// Records a failure. Its kind has no secrets.
    pub(super) fn failed(mut self, error: &AttemptError) {
        self.end(Some(error.kind.as_str()), None);
    }

    fn end(&mut self, error: Option<&'static str>, tokens: Option<(u64, u64)>) {
        self.is_over = true;
        if let Some(error) = error {
            self.span.record("otel.status_code", "ERROR");
            self.span.record("error.type", error);
        }
        self.statistics.record(&ModelRequestRecord {
            provider: self.provider,
            model: &self.model,
            duration: self.began.elapsed(),
            error,
            tokens,
        });
    }
}

impl Drop for ChatAttempt {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(Some("cancelled"), None);
        }
    }
}

/// The provider whose format a protocol is, as the conventions name it.
const fn provider(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "anthropic",
        _ => "openai",
    }
}
