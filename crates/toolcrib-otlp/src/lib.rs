//! Exports telemetry to an OpenTelemetry collector: a trace of every call, and the numbers of `/metrics` about tools,
//! their caches, manifests and other servers, as protobuf over HTTP (OTLP).
//!
//! It is switched on and configured by OpenTelemetry's own variables only:
//!
//! | variable | content |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | the collector's address, such as `http://127.0.0.1:4318`; without it and the two below nothing is exported |
//! | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` | complete URLs for traces or metrics |
//! | `OTEL_EXPORTER_OTLP_LOGS_ENDPOINT` | a complete URL for audit records, which are sent only with `audit.otlp: true` |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `…_TIMEOUT` | headers for the collector, as `name=value,…`; milliseconds |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | the name and attributes of this service; `toolcrib` by default |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`, `OTEL_METRIC_EXPORT_INTERVAL` | which traces are exported, and when |
//! | `OTEL_SDK_DISABLED` | `true` switches all of it off |
//!
//! If the collector is unreachable, spans and metrics are lost, but never a call. Audit records ([`OtlpAudit`]) wait, and
//! those that are lost are counted. Exported data is masked like
//! everything that calls return.
#![forbid(unsafe_code)]

mod audit;
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

pub use crate::audit::OtlpAudit;
use crate::exporter::Exporter;
use crate::late::LateSpans;

/// The variables that switch the export on.
const SWITCHES: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
];

/// A connection to a collector. Before [`start`](Self::start) nothing is sent and no thread is started, because the log
/// layer is needed earlier than that.
pub struct Otlp {
    /// The collector's address; `None` to use the variables.
    endpoint: Option<String>,
    resource: Resource,
    spans: LateSpans,
    tracer: SdkTracerProvider,
    meter: Mutex<Option<SdkMeterProvider>>,
}

/// Why nothing can be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The variables contain no usable collector address.
    #[error(
        "the OpenTelemetry collector cannot be used: {0}; check the variables \
             OTEL_EXPORTER_OTLP_…"
    )]
    Exporter(#[from] ExporterBuildError),
    /// The sending threads could not be started.
    #[error("the OpenTelemetry exporter cannot be started: {0}")]
    Runtime(#[from] std::io::Error),
}

impl Otlp {
    /// The export that this process's variables configure; `None` if they switch nothing on.
    pub fn from_environment() -> Option<Self> {
        let is_on = !is_disabled() && SWITCHES.into_iter().any(is_set);
        is_on.then(|| Self::new(None))
    }

    /// An export to the collector at this address, such as `http://127.0.0.1:4318`; variables configure the rest.
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

    /// The layer that turns the log's spans into spans of a trace: those of toolcrib, from level info on, whatever else
    /// is logged. Spans that end before [`start`](Self::start) are not exported. Traces that callers name are continued
    /// (W3C Trace Context).
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        RemoteTrace::follow_by(follow);
        let tracer = self.tracer.tracer("toolcrib");
        let own = Targets::new().with_target("toolcrib", Level::INFO);
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(own)
    }

    /// Starts the export on its own threads.
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

    /// Exports what is left, and stops. Blocks for a few seconds at most; do not call it on a runtime.
    pub fn finish(&self) {
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = meter.map_or(Ok(()), |meter| meter.shutdown());
        for ended in [ended, self.tracer.shutdown()] {
            if let Err(error) = ended {
                tracing::warn!(%error, "some telemetry was not sent to the OpenTelemetry \
                                        collector");
            }
        }
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Whether a variable has a value.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Whether the environment switches all exports off.
fn is_disabled() -> bool {
    std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Makes a span a child of the caller's span.
fn follow(span: &Span, trace: RemoteTrace<'_>) {
    let mut named = HashMap::from([("traceparent".to_owned(), trace.parent.to_owned())]);
    if let Some(state) = trace.state {
        named.insert("tracestate".to_owned(), state.to_owned());
    }
    // A span that has begun, or that is not exported, stays unchanged.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&named));
}

/// The name and attributes of this service from the variables, with `toolcrib` as the default name.
fn resource() -> Resource {
    let builder = Resource::builder();
    let is_named = std::env::var_os("OTEL_SERVICE_NAME").is_some()
        || std::env::var("OTEL_RESOURCE_ATTRIBUTES")
            .is_ok_and(|attributes| attributes.contains("service.name="));
    if is_named { builder.build() } else { builder.with_service_name("toolcrib").build() }
}
