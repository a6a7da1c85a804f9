//! Shutdown: the request for it, and how servers end.

use std::fmt;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolcrib::Toolcrib;
use toolcrib::core::ShutdownReport;

use crate::screen::{self, count};
use crate::serving::service_manager::ServiceManager;

/// How long running calls may take after a stop request.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A command was interrupted before it had a result.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// How the process was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Completes when the process is asked to stop by Ctrl-C or SIGTERM.
pub(crate) async fn requested() {
    signalled().await;
}

/// The output of the work; `None` if the process is asked to stop first, which drops the work.
pub(crate) async fn unless_requested<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        () = requested() => None,
        output = work => Some(output),
    }
}

/// The same as [`requested`], and which of the two it was.
pub(crate) async fn signalled() -> StopSignal {
    StopRequests::begin().next().await
}

/// The requests to stop since this was made, also those that came before somebody waits for them.
#[derive(Debug)]
pub(crate) struct StopRequests {
    interrupt: Option<Signal>,
    /// Without a handler, SIGTERM ends the process directly.
    terminate: Option<Signal>,
}

impl StopRequests {
    /// Must be called on a runtime.
    pub(crate) fn begin() -> Self {
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
        }
    }

    async fn next(&mut self) -> StopSignal {
        async fn received(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = received(&mut self.interrupt) => StopSignal::Interrupt,
            () = received(&mut self.terminate) => StopSignal::Terminate,
        }
    }
}

/// Completes when a server may close its connections: it was asked to stop, and every call has its
/// answer. Running calls have [`GRACE`] to end, unless a second stop request arrives.
pub(crate) async fn drained(mut requests: StopRequests, crib: &Toolcrib, manager: &ServiceManager) {
    requests.next().await;
    manager.stopping();
    let at_work = crib.executor().calls_at_work();
    if at_work > 0 {
        screen::note(format!(
            "waiting for {}, at most {} s; press Ctrl-C again to stop now",
            count(at_work, "call"),
            GRACE.as_secs()
        ));
    }
    let report = tokio::select! {
        report = crib.shutdown(GRACE) => report,
        _ = requests.next() => crib.shutdown(Duration::ZERO).await,
    };
    say(report);
}

/// Reports calls that did not end by themselves.
fn say(report: ShutdownReport) {
    if report.cancelled > 0 {
        screen::note(format!(
            "{} did not finish and had to be ended",
            count(report.cancelled, "call")
        ));
    }
    if report.abandoned > 0 {
        screen::note(format!(
            "{} did not end and went down with it",
            count(report.abandoned, "call")
        ));
    }
}
