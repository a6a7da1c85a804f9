//! Logs go to standard error, because standard output belongs to data and to protocols.

use std::io::IsTerminal;

use clap::ValueEnum;
#[cfg(not(feature = "otlp"))]
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// What a line of the log looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object per line, for programs.
    Json,
}

/// Starts logging. `RUST_LOG` wins; without it servers say what goes wrong, and commands only which
/// secrets cannot be hidden: the rest they print themselves. Every `-v` says more.
pub(crate) fn start(format: LogFormat, verbose: u8, server: bool) {
    let level = match (verbose, server) {
        (0, false) => "off,toolcrib::config=warn",
        // What goes wrong in the protocol library is told by whoever uses it, once and without URLs.
        (0, true) => "warn,rmcp=off",
        (1, _) => "info",
        (2, _) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => {
            log.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
    };
    // A collector is told of more than is logged.
    #[cfg(feature = "otlp")]
    let log = crate::collector::beside(log.with_filter(filter), server);
    #[cfg(not(feature = "otlp"))]
    let log = tracing_subscriber::registry().with(filter).with(log);
    // A host that embeds this and has a subscriber of its own keeps it.
    let _ = tracing::subscriber::set_global_default(log);
}
