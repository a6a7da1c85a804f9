//! Exports telemetry to the OpenTelemetry collector that the environment names, for servers only.

use std::sync::OnceLock;

use toolcrib::Toolcrib;
use toolcrib_otlp::{Otlp, OtlpError};
use tracing::Subscriber;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Set up together with the log, before the server exists.
static COLLECTOR: OnceLock<Otlp> = OnceLock::new();

/// Adds the collector's layer to the log's.
pub(crate) fn add_layer(
    log: impl Layer<Registry> + Send + Sync,
    is_server: bool,
) -> impl Subscriber + Send + Sync + for<'a> LookupSpan<'a> {
    let named = if is_server { Otlp::from_environment() } else { None };
    let collector = named.map(|otlp| COLLECTOR.get_or_init(|| otlp));
    Registry::default().with(log).with(collector.map(Otlp::layer))
}

/// Exports while this guard exists. Do not drop it on a runtime: it waits for the last export.
pub(crate) struct ExportGuard(());

/// Starts to export a server's telemetry, once threads may be started.
pub(crate) fn start_export(crib: &Toolcrib) -> Result<ExportGuard, OtlpError> {
    if let Some(collector) = COLLECTOR.get() {
        collector.start(crib.clone())?;
    }
    Ok(ExportGuard(()))
}

impl Drop for ExportGuard {
    fn drop(&mut self) {
        if let Some(collector) = COLLECTOR.get() {
            collector.finish();
        }
    }
}
