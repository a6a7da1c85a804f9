//! Logs go to standard error, because standard output belongs to data and to protocols.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

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
        (0, true) => "warn,rmcp=error",
        (1, _) => "info",
        (2, _) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A host that embeds this and has a subscriber of its own keeps it.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(
            builder.with_ansi(std::io::stderr().is_terminal()).finish(),
        ),
        LogFormat::Json => tracing::subscriber::set_global_default(
            builder
                .json()
                .flatten_event(true)
                .with_current_span(true)
                .with_span_list(false)
                .finish(),
        ),
    };
}
