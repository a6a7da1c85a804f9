//! Logs go to standard error, since standard output is for data and protocols.

mod lines;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;
use tracing::Level;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
#[cfg(not(feature = "otlp"))]
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use lines::{Lines, Writer};

/// How long a server waits at its end for the last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

type Stderr = anstream::AutoStream<std::io::Stderr>;

/// The log lines of a server, which are written asynchronously, and their format. Other commands have none.
static LINES: OnceLock<(Arc<Lines<Stderr>>, LogFormat)> = OnceLock::new();

/// What a server tells its operator beside the log, in the JSON format: it is logged whatever the level.
const NOTES: &str = "toolcrib_cli::notes";

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// The line that stands for dropped lines, from their number.
    fn dropped_lines(self) -> fn(u64) -> String {
        match self {
            Self::Text => |dropped| {
                format!("{dropped} lines of the log were dropped: nobody read standard error")
            },
            Self::Json => |dropped| {
                let message = "lines of the log were dropped: nobody read standard error";
                json!({"level": "WARN", "message": message, "lines": dropped, "target": NOTES})
                    .to_string()
            },
        }
    }
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
    let filter = match format!("{NOTES}=info").parse() {
        Ok(notes) => filter.add_directive(notes),
        Err(_) => filter,
    };
    let writer = if server {
        let new = || (Arc::new(Lines::new(anstream::stderr, format.dropped_lines())), format);
        let (lines, _) = LINES.get_or_init(new);
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
    if let Some((lines, _)) = LINES.get() {
        lines.start();
    }
}

/// Writes a text in order with the log lines of a server, in their format. Returns `false` and writes nothing if
/// this is not a server.
pub(crate) fn line(level: Level, text: &str) -> bool {
    let Some((lines, format)) = LINES.get() else { return false };
    let plain = || anstream::adapter::strip_str(text).to_string();
    match (format, level) {
        (LogFormat::Text, _) => lines.push(format!("{text}\n").into_bytes()),
        (LogFormat::Json, _) if text.is_empty() => {}
        (LogFormat::Json, Level::ERROR) => tracing::error!(target: NOTES, "{}", plain()),
        (LogFormat::Json, Level::WARN) => tracing::warn!(target: NOTES, "{}", plain()),
        (LogFormat::Json, _) => tracing::info!(target: NOTES, "{}", plain()),
    }
    true
}

/// Whether a command line that could not be parsed asks for log lines in JSON.
pub(crate) fn asks_for_json(arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().take_while(|argument| *argument != "--");
    let named = options.find_map(|option| match option.to_str()? {
        "--log-format" => Some(None),
        option => option.strip_prefix("--log-format=").map(Some),
    });
    match named {
        Some(Some(format)) => format == "json",
        Some(None) => options.next().is_some_and(|format| format == "json"),
        None => std::env::var_os("TOOLCRIB_LOG_FORMAT").is_some_and(|format| format == "json"),
    }
}

/// Waits briefly until all log lines are written.
pub(crate) fn finish() {
    if let Some((lines, _)) = LINES.get() {
        lines.flush(FLUSH_TIMEOUT);
    }
}

/// Logs panics instead of printing them: the default message could block on standard error.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(panic = %panic, "a panic was caught, or ends the server");
    }));
}
