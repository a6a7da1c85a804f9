//! Logs go to standard error, since standard output is for data and protocols.

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

/// How long a server waits at its end for the last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

type Stderr = anstream::AutoStream<std::io::Stderr>;

/// The log lines of a server, which are written asynchronously. Other commands have none.
static LINES: OnceLock<Arc<Lines<Stderr>>> = OnceLock::new();

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. `RUST_LOG` takes precedence. Without it, servers log warnings and errors, and
/// commands only which secrets cannot be masked, since they print everything else themselves. Each
/// `-v` raises the level.
pub(crate) fn start(format: LogFormat, verbose: u8, server: bool) {
    let level = match (verbose, server) {
        (0, false) => "off,toolcrib::settings=warn",
        // The users of the protocol library log its errors once, without URLs.
        (0, true) => "warn,rmcp=off",
        (1, _) => "info",
        (2, _) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let writer = if server {
        let lines = LINES.get_or_init(|| Arc::new(Lines::new(anstream::stderr)));
        log_panics();
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
    // The collector receives more than is logged.
    #[cfg(feature = "otlp")]
    let log = crate::collector::add_layer(log.with_filter(filter), server);
    #[cfg(not(feature = "otlp"))]
    let log = tracing_subscriber::registry().with(filter).with(log);
    // An embedding program may already have a subscriber, which is kept.
    let _ = tracing::subscriber::set_global_default(log);
}

/// From now on log lines do not block the server. Call it when threads may be started.
pub(crate) fn serve() {
    if let Some(lines) = LINES.get() {
        lines.start();
    }
}

/// Writes a line in order with the log lines of a server. Returns `false` and writes nothing if
/// this is not a server.
pub(crate) fn line(text: &str) -> bool {
    let Some(lines) = LINES.get() else { return false };
    lines.push(format!("{text}\n").into_bytes());
    true
}

/// Waits briefly until all log lines are written.
pub(crate) fn finish() {
    if let Some(lines) = LINES.get() {
        lines.flush(FLUSH_TIMEOUT);
    }
}

/// Logs panics instead of printing them: the default message could block on standard error.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(panic = %panic, "a panic was caught, or ends the server");
    }));
}
