//! Logs go to standard error, because standard output belongs to data and to protocols.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging. `RUST_LOG` wins; without it servers say what goes wrong, and commands only which
/// secrets cannot be hidden: the rest they print themselves. Every `-v` says more.
pub(crate) fn start(verbose: u8, server: bool) {
    let level = match (verbose, server) {
        (0, false) => "off,toolcrib::config=warn",
        (0, true) => "warn,rmcp=error",
        (1, _) => "info",
        (2, _) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // A host that embeds this and has a subscriber of its own keeps it.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
