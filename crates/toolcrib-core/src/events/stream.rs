//! The stream of one call, as an MCP or HTTP client gets it: no floor, and nobody to wait for.

use std::fmt;
use std::sync::Arc;

use super::channel::{ChannelOptions, ChannelReport, EventReader, SharedChannel, Speaker};
use super::event::Occurrence;

/// The stream of one request: everything its call says, and the calls made from within it, as it
/// is said, numbered 1, 2, 3 and so on.
///
/// A call that streams waits for a slow reader. A status never waits: what does not fit is lost,
/// and [`Payload::Lagged`](super::Payload::Lagged) says so in its place. A reader that stalls or is
/// dropped is detached; the call goes on without it.
///
/// Cloning it is cheap. The stream ends when the last clone is dropped and the calls have ended.
#[derive(Clone)]
pub struct CallStream(Arc<Speaker>);

impl CallStream {
    /// A stream and its reader.
    pub fn new(options: &ChannelOptions) -> (Self, EventReader) {
        let shell = Arc::new(SharedChannel::new(options, None));
        // All calls speak with one voice: there is no floor to wait for.
        let speaker = Speaker::new(&shell, 0);
        shell.close();
        (Self(Arc::new(speaker)), EventReader::new(shell, 0))
    }

    /// What has become of the events so far.
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
