//! The OpenTelemetry collector that the environment names, if it names one: told of servers only.

use std::sync::OnceLock;

use toolcrib::Toolcrib;
use toolcrib_otlp::{Otlp, OtlpError};
use tracing::Subscriber;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// The log is set up long before there is anything to tell of.
static COLLECTOR: OnceLock<Otlp> = OnceLock::new();

/// The log, and beside it the collector's view of it.
pub(crate) fn beside(
    log: impl Layer<Registry> + Send + Sync,
    is_server: bool,
) -> impl Subscriber + Send + Sync + for<'a> LookupSpan<'a> {
    let named = if is_server { Otlp::from_environment() } else { None };
    let collector = named.map(|otlp| COLLECTOR.get_or_init(|| otlp));
    Registry::default().with(log).with(collector.map(Otlp::layer))
}

/// As long as this is there, the collector is told. Not to be dropped on a runtime: it waits for what is
/// still to be sent.
pub(crate) struct Told(());

/// Begins to tell of a server, once its threads may be started.
pub(crate) fn tell(crib: &Toolcrib) -> Result<Told, OtlpError> {
    if let Some(collector) = COLLECTOR.get() {
        collector.start(crib.clone())?;
    }
    Ok(Told(()))
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(collector) = COLLECTOR.get() {
            collector.finish();
        }
    }
}
