//! Logs go to standard error, because standard output belongs to data and to protocols.

mod lines;

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::ValueEnum;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
#[cfg(not(feature = "otlp"))]
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use lines::{Lines, Writer};

/// How long the end of a server waits for its last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

type Stderr = anstream::AutoStream<std::io::Stderr>;

/// The lines of a server, which does not wait for them to be read. Other commands have none.
static LINES: OnceLock<Arc<Lines<Stderr>>> = OnceLock::new();

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
        (0, false) => "off,toolcrib::settings=warn",
        // What goes wrong in the protocol library is told by whoever uses it, once and without URLs.
        (0, true) => "warn,rmcp=off",
        (1, _) => "info",
        (2, _) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let writer = if server {
        let lines = LINES.get_or_init(|| Arc::new(Lines::new(anstream::stderr)));
        told_of_panics();
        BoxMakeWriter::new(Writer(Arc::clone(lines)))
    } else {
        BoxMakeWriter::new(std::io::stderr)
    };
    let log = tracing_subscriber::fmt::layer().with_writer(writer);
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

/// From now on a server does not wait for its log to be read. To be called once threads may be started.
pub(crate) fn serve() {
    if let Some(lines) = LINES.get() {
        lines.start();
    }
}

/// Writes a server's own line in its place among those of the log. Returns `false` where this is no
/// server, and nothing was written.
pub(crate) fn line(text: &str) -> bool {
    let Some(lines) = LINES.get() else { return false };
    lines.push(format!("{text}\n").into_bytes());
    true
}

/// Waits a moment until what was logged is written.
pub(crate) fn finish() {
    if let Some(lines) = LINES.get() {
        lines.flush(LAST_LINES);
    }
}

/// Panics of tools are caught, and told of in the log: the usual message would wait for a reader.
fn told_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(panic = %panic, "a panic was caught, or ends the server");
    }));
}
