//! Buffers nothing before the exporter starts: the log is set up before the first thread may be started, so earlier
//! spans are dropped.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanProcessor};

/// Forwards spans to a processor once there is one; until then they are dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateSpans(Arc<OnceLock<BatchSpanProcessor>>);

impl LateSpans {
    /// Forwards spans that end from now on. Only the first call has an effect.
    pub(crate) fn send_to(&self, processor: BatchSpanProcessor) {
        let _ = self.0.set(processor);
    }
}

impl SpanProcessor for LateSpans {
    fn on_start(&self, span: &mut Span, cx: &Context) {
        if let Some(processor) = self.0.get() {
            processor.on_start(span, cx);
        }
    }

    fn on_end(&self, span: SpanData) {
        if let Some(processor) = self.0.get() {
            processor.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.get().map_or(Ok(()), SpanProcessor::force_flush)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.get().map_or(Ok(()), |processor| processor.shutdown_with_timeout(timeout))
    }
}
