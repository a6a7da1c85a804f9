//! What happens in a crib, told to an OpenTelemetry collector: a trace of every call, and the numbers of
//! `/metrics` about tools, their answers, manifests and other servers, as protobuf over HTTP (OTLP).
//!
//! It is switched on and set by the variables that OpenTelemetry has for it, and by no other settings:
//!
//! | variable | says |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | where the collector is, such as `http://127.0.0.1:4318`; without it and the two below nothing is told |
//! | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` | whole URLs for either |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT` | headers for the collector, as `name=value,…`; milliseconds |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | who tells; `toolcrib` by default |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`, `OTEL_METRIC_EXPORT_INTERVAL` | which traces, and when |
//! | `OTEL_SDK_DISABLED` | `true` switches all of it off |
//!
//! A collector that is not there costs spans and figures, never a call. What is told is masked, as
//! everything that calls hand out is.
#![forbid(unsafe_code)]

mod exporter;
mod figures;
mod late;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, MetricExporter, SpanExporter};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider, SpanProcessor as _};
use toolcrib_core::RemoteTrace;
use toolcrib_http::Backend;
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::exporter::Exporter;
use crate::late::LateSpans;

/// The variables that switch it on.
const SWITCHES: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
];

/// A way to a collector. Nothing is sent, and no thread started, before [`start`](Self::start): a layer of
/// the log is wanted earlier than that.
pub struct Otlp {
    /// Where the collector is; without it the variables say so.
    endpoint: Option<String>,
    resource: Resource,
    spans: LateSpans,
    tracer: SdkTracerProvider,
    meter: Mutex<Option<SdkMeterProvider>>,
}

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The variables name no collector that could be reached.
    #[error("the OpenTelemetry collector: {0}: see the variables OTEL_EXPORTER_OTLP_…")]
    Exporter(#[from] ExporterBuildError),
    /// There is no thread to send from.
    #[error("the OpenTelemetry exporter cannot be started: {0}")]
    Runtime(#[from] std::io::Error),
}

impl Otlp {
    /// What the variables of this process say; none where they switch nothing on.
    pub fn from_environment() -> Option<Self> {
        let said = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_off = std::env::var("OTEL_SDK_DISABLED")
            .is_ok_and(|value| value.trim().eq_ignore_ascii_case("true"));
        let is_on = !is_off && SWITCHES.into_iter().any(said);
        is_on.then(|| Self::new(None))
    }

    /// To the collector at this address, such as `http://127.0.0.1:4318`; the rest is said by variables.
    pub fn to(endpoint: impl Into<String>) -> Self {
        Self::new(Some(endpoint.into()))
    }

    fn new(endpoint: Option<String>) -> Self {
        let resource = resource();
        let spans = LateSpans::default();
        let tracer = SdkTracerProvider::builder()
            .with_resource(resource.clone())
            .with_span_processor(spans.clone())
            .build();
        Self { endpoint, resource, spans, tracer, meter: Mutex::new(None) }
    }

    /// The layer by which spans of the log become spans of a trace: those of toolcrib, from the level info
    /// on, whatever else is logged. What ends before [`start`](Self::start) is not told. Traces that callers
    /// name are gone on with (W3C Trace Context).
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        RemoteTrace::follow_by(follow);
        let tracer = self.tracer.tracer("toolcrib");
        let own = Targets::new().with_target("toolcrib", Level::INFO);
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(own)
    }

    /// Begins to tell, from threads of its own.
    pub fn start(&self, backend: impl Backend) -> Result<(), OtlpError> {
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let client = Arc::new(Exporter::new()?);
        let mut spans = SpanExporter::builder().with_http().with_shared_http_client(client.clone());
        let mut metrics = MetricExporter::builder().with_http().with_shared_http_client(client);
        if let Some(endpoint) = &self.endpoint {
            spans = spans.with_endpoint(format!("{endpoint}/v1/traces"));
            metrics = metrics.with_endpoint(format!("{endpoint}/v1/metrics"));
        }
        let mut processor = BatchSpanProcessor::builder(spans.build()?).build();
        processor.set_resource(&self.resource);
        self.spans.send_to(processor);
        let meter = SdkMeterProvider::builder()
            .with_resource(self.resource.clone())
            .with_reader(PeriodicReader::builder(metrics.build()?).build())
            .build();
        figures::observe(&meter, &backend);
        *self.meter.lock().unwrap_or_else(PoisonError::into_inner) = Some(meter);
        Ok(())
    }

    /// Tells what is left, and ends. Blocks for some seconds at most; not to be called on a runtime.
    pub fn finish(&self) {
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = meter.map_or(Ok(()), |meter| meter.shutdown());
        for ended in [ended, self.tracer.shutdown()] {
            if let Err(error) = ended {
                tracing::warn!(%error, "the OpenTelemetry collector has not heard everything");
            }
        }
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Makes a span a child of the one that a caller has named.
fn follow(span: &Span, trace: RemoteTrace<'_>) {
    let mut named = HashMap::from([("traceparent".to_owned(), trace.parent.to_owned())]);
    if let Some(state) = trace.state {
        named.insert("tracestate".to_owned(), state.to_owned());
    }
    // One that has begun, or that is not told, stays where it is.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&named));
}

/// Who tells: what the variables say, `toolcrib` where they say nothing.
fn resource() -> Resource {
    let builder = Resource::builder();
    let is_named = std::env::var_os("OTEL_SERVICE_NAME").is_some()
        || std::env::var("OTEL_RESOURCE_ATTRIBUTES")
            .is_ok_and(|attributes| attributes.contains("service.name="));
    if is_named { builder.build() } else { builder.with_service_name("toolcrib").build() }
}
