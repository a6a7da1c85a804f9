//! The reader of an event stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::events::channel::shared::SharedChannel;
use crate::events::event::Event;

/// Reads the events of an [`OutputChannel`](super::OutputChannel) or a
/// [`CallStream`](crate::events::CallStream), in order; it is a [`Stream`] of them.
///
/// Dropping it detaches it, so that no call waits for it. It is also detached if it reads nothing
/// for too long while a call waits for it; its last event reports that ([`Payload::Detached`]).
///
/// [`Payload::Detached`]: crate::events::Payload::Detached
pub struct EventReader {
    shell: Arc<SharedChannel>,
    generation: u64,
    over: bool,
}

impl EventReader {
    pub(crate) fn new(shell: Arc<SharedChannel>, generation: u64) -> Self {
        Self { shell, generation, over: false }
    }

    /// The next event; `None` at the end. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Ends the stream after the events emitted so far. For readers that have got the answer they
    /// waited for: a suspended call may continue to emit events.
    pub fn finish(&self) {
        self.shell.finish();
    }

    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = self.shell.poll_next(self.generation, cx);
        next.map(|next| {
            self.over = !matches!(next, Ok(Some(_)));
            next.unwrap_or_else(Some)
        })
    }
}

impl Stream for EventReader {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.get_mut().poll_event(cx)
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.shell.left(self.generation);
    }
}

impl fmt::Debug for EventReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReader").field("over", &self.over).finish_non_exhaustive()
    }
}
