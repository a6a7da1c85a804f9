//! The event stream of one request, for an MCP or HTTP client.

use std::fmt;
use std::sync::Arc;

use super::channel::{ChannelOptions, ChannelReport, EventReader, SharedChannel, Speaker};
use super::event::Occurrence;

/// The stream of one request: the events of its call and of nested calls, in order, numbered 1, 2,
/// 3 and so on.
///
/// A call that streams output waits for a slow reader. A status never waits: if it does not fit, it
/// is lost, and a [`Payload::Lagged`](super::Payload::Lagged) replaces it. A reader that stalls or
/// is dropped is detached; the call continues without it.
///
/// Cloning it is cheap. The stream ends when the last clone is dropped and the calls have ended.
#[derive(Clone)]
pub struct CallStream(Arc<Speaker>);

impl CallStream {
    /// A stream and its reader.
    pub fn new(options: &ChannelOptions) -> (Self, EventReader) {
        let shell = Arc::new(SharedChannel::new(options, None));
        // All calls share one speaker, so there is no floor to wait for.
        let speaker = Speaker::new(&shell, 0);
        shell.close();
        (Self(Arc::new(speaker)), EventReader::new(shell, 0))
    }

    /// The statistics so far.
    pub fn report(&self) -> ChannelReport {
        self.0.shell().report()
    }

    /// Says something. Never waits.
    pub(crate) fn say(&self, occurrence: Arc<Occurrence>) {
        self.0.say(occurrence);
    }

    /// Completes when the reader has caught up.
    pub(crate) async fn room(&self) {
        self.0.room().await;
    }
}

impl fmt::Debug for CallStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallStream").field("report", &self.report()).finish()
    }
}
